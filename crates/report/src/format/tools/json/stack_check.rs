//! Where two unwinders differ.

use std::io::{self, Write};

use prof_model::StackEnd;
use serde::Serialize;

use super::Document;
use crate::profile::{Answer, CodePlace, Difference};
use crate::symbolize::SymbolizedProfile;
use crate::view::stack_check::{DifferenceNames, NamedStackCheck};

/// Writes how far prof's unwinder and framehop agree; `found` is the result for this profile.
///
/// # Errors
/// Those of `out`.
pub fn stack_check(
    symbolized: &SymbolizedProfile,
    found: &NamedStackCheck,
    out: impl Write,
) -> io::Result<()> {
    let all = found.check.differences.iter().zip(&found.names);
    let body = Body {
        stacks: found.check.stacks,
        same: found.check.same,
        same_frames: found.check.same_frames,
        whole: Whole {
            prof: found.check.whole_by_prof,
            framehop: found.check.whole_by_framehop,
        },
        differences: all
            .map(|(difference, names)| row(difference, names))
            .collect(),
    };
    Document::write(symbolized, "stack_check", body, out)
}

#[derive(Serialize)]
struct Body<'a> {
    stacks: u64,
    same: u64,
    same_frames: u64,
    whole: Whole,
    differences: Vec<Row<'a>>,
}

#[derive(Serialize)]
struct Whole {
    prof: u64,
    framehop: u64,
}

#[derive(Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    place: Code<'a>,
    stacks: u64,
    prof: CallerOrEnd<'a>,
    framehop: CallerOrEnd<'a>,
}

#[derive(Serialize)]
struct Code<'a> {
    module: Option<&'a str>,
    offset: u64,
    function: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum CallerOrEnd<'a> {
    Caller(Code<'a>),
    End(StackEnd),
}

fn row<'a>(difference: &'a Difference, names: &'a DifferenceNames) -> Row<'a> {
    let code = |place: &'a CodePlace, name: &'a Option<_>| Code {
        module: Some(place.module.as_str()).filter(|module| !module.is_empty()),
        offset: place.offset,
        function: Option::as_deref(name),
    };
    let said = |answer: &'a Answer, name: &'a Option<_>| match answer {
        Answer::Caller(place) => CallerOrEnd::Caller(code(place, name)),
        Answer::End(end) => CallerOrEnd::End(*end),
    };
    Row {
        place: code(&difference.place, &names.function),
        stacks: difference.stacks,
        prof: said(&difference.prof, &names.prof),
        framehop: said(&difference.framehop, &names.framehop),
    }
}
