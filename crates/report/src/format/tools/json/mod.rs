//! Views as JSON, as docs/json.md describes it.

mod annotation;
mod calls;
mod diff;
mod failures;
mod stack_check;
mod timeline;

use std::io::{self, Write};

use prof_model::{Coverage, Fallback, Grade, InterpretedStacks, Losses, ProbedPrograms, Verdict};
use serde::Serialize;

use crate::profile::{Event as ProfileEvent, Weight as Sum};
use crate::symbolize::{ModuleNaming, SymbolizedProfile};

pub use annotation::annotation;
pub use calls::{CallView, calls};
pub use diff::diff;
pub use failures::failures;
pub use stack_check::stack_check;
pub use timeline::timeline;

/// The version of the schema. Additions do not change it, everything else does.
pub const VERSION: u32 = 2;

/// The common members of all documents, and the view itself.
#[derive(Serialize)]
struct Document<'a, V> {
    format: &'static str,
    version: u32,
    view: &'static str,
    recording: Recording<'a>,
    quality: Option<ReportQuality<'a>>,
    modules: Vec<Module<'a>>,
    #[serde(flatten)]
    body: V,
}

impl<'a, V: Serialize> Document<'a, V> {
    /// Writes a view of a profile.
    fn write(
        symbolized: &'a SymbolizedProfile,
        view: &'static str,
        body: V,
        out: impl Write,
    ) -> io::Result<()> {
        let document = Self {
            format: "prof-report",
            version: VERSION,
            view,
            recording: recording(symbolized),
            quality: quality(symbolized),
            modules: symbolized.naming().iter().map(module).collect(),
            body,
        };
        crate::format::write_json(&document, out)
    }
}

#[derive(Serialize)]
struct Recording<'a> {
    command_line: &'a [String],
    hostname: Option<&'a str>,
    os_release: Option<&'a str>,
    arch: Option<&'a str>,
}

#[derive(Serialize)]
struct Event<'a> {
    name: &'a str,
    unit: &'a str,
}

#[derive(Serialize)]
struct Weight {
    value: u64,
    samples: u64,
}

/// The quality of the whole recording, whatever the filters.
#[derive(Serialize)]
struct ReportQuality<'a> {
    grade: Grade,
    samples: u64,
    user_stacks: u64,
    whole_stacks: u64,
    partial_stacks: Vec<Partial>,
    losses: &'a Losses,
    fallbacks: &'a [Fallback],
    coverage: &'a [Coverage],
    covered_event: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    probes: Option<&'a ProbedPrograms>,
    #[serde(skip_serializing_if = "InterpretedStacks::are_none")]
    python: &'a InterpretedStacks,
    #[serde(skip_serializing_if = "InterpretedStacks::are_none")]
    php: &'a InterpretedStacks,
    #[serde(skip_serializing_if = "InterpretedStacks::are_none")]
    ruby: &'a InterpretedStacks,
    problems: Vec<String>,
}

#[derive(Serialize)]
struct Partial {
    reason: prof_model::StackEnd,
    samples: u64,
}

#[derive(Serialize)]
struct Module<'a> {
    name: &'a str,
    samples: u64,
    addresses: usize,
    named: usize,
    problem: Option<String>,
}

impl From<Sum> for Weight {
    fn from(Sum { value, samples }: Sum) -> Self {
        Self { value, samples }
    }
}

impl<'a> From<&'a ProfileEvent> for Event<'a> {
    fn from(event: &'a ProfileEvent) -> Self {
        Self {
            name: &event.name,
            unit: event.unit.name(),
        }
    }
}

fn recording(symbolized: &SymbolizedProfile) -> Recording<'_> {
    let header = &symbolized.profile().header;
    Recording {
        command_line: &header.command_line,
        hostname: header.hostname.as_deref(),
        os_release: header.os_release.as_deref(),
        arch: header.arch.as_deref(),
    }
}

/// `None` if the profile has no quality.
fn quality(symbolized: &SymbolizedProfile) -> Option<ReportQuality<'_>> {
    let quality = symbolized.quality();
    let verdict = Verdict::new(quality);
    let partial = |(reason, samples)| Partial { reason, samples };
    (!symbolized.profile().missing_data.quality).then(|| ReportQuality {
        grade: verdict.grade,
        samples: quality.samples,
        user_stacks: quality.user_stacks(),
        whole_stacks: quality.whole_stacks(),
        partial_stacks: quality.partial_stacks().into_iter().map(partial).collect(),
        losses: &quality.losses,
        fallbacks: &quality.fallbacks,
        coverage: &quality.coverage,
        covered_event: quality.covered_event.as_deref(),
        probes: quality.probes.as_ref(),
        python: &quality.python,
        php: &quality.php,
        ruby: &quality.ruby,
        problems: verdict.problems().to_vec(),
    })
}

fn module(naming: &ModuleNaming) -> Module<'_> {
    Module {
        name: &naming.module,
        samples: naming.samples,
        addresses: naming.addresses,
        named: naming.named,
        problem: (!naming.status.is_named()).then(|| naming.status.to_string()),
    }
}
