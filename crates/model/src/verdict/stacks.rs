//! Which stacks are not whole, and why.

use super::percent::percent;
use super::remedy::{self, Cause};
use super::share;
use crate::module::{Module, ModuleKind};
use crate::quality::Quality;
use crate::stack::StackEnd;
use crate::text::counted;

/// A line for each reason why stacks are not whole.
pub(super) fn partial_stacks(quality: &Quality, stacks: u64) -> impl Iterator<Item = String> {
    quality
        .partial_stacks()
        .into_iter()
        .map(move |(end, count)| {
            let share = percent(share(count, stacks).unwrap_or(0.0));
            let stacks = counted(count, "stack");
            let place = match quality.failures.iter().find(|failure| failure.end == end) {
                // There is nothing to look up in run-time code.
                Some(failure) if is_file(&failure.module) => {
                    format!(" (most in {}+{:#x})", failure.module, failure.offset)
                }
                _ => String::new(),
            };
            format!(
                "{stacks} ({share}): {}{place}{}{}",
                end.describe(),
                why_missing(end, quality),
                remedy::ending(Cause::Stack(end), quality)
            )
        })
}

fn is_file(module: &str) -> bool {
    !module.is_empty() && Module::from_path(module).kind != ModuleKind::Anonymous
}

/// Why the memory where most of these stacks end could not be read; empty if unknown.
fn why_missing(end: StackEnd, quality: &Quality) -> String {
    let why = if quality.is_mostly(end, |missing| missing.denied) {
        "the kernel denies access to the process"
    } else if quality.is_mostly(end, |missing| missing.ended) {
        "the process had ended"
    } else {
        return String::new();
    };
    match end {
        StackEnd::UnreadableMemory => format!(", because {why}"),
        _ => format!(", and {why}"),
    }
}

/// How many stacks have more frames than a sample can hold.
pub(super) fn without_middle(quality: &Quality, stacks: u64) -> Option<String> {
    let count = quality.without_middle;
    (count > 0).then(|| {
        format!(
            "{} ({}): deeper than a sample can hold (about 8,000 frames), so the middle is left out",
            counted(count, "stack"),
            percent(share(count, stacks).unwrap_or(0.0)),
        )
    })
}
