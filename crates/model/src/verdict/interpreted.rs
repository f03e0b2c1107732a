//! What the verdict says of interpreters.

use super::percent::{percent, whole_shown};
use super::remedy::{self, Cause};
use super::{Grade, share};
use crate::interpreted::{InterpretedStacks, MissingFrames};
use crate::quality::Quality;
use crate::text::counted;

/// Whether many stacks show an interpreter's functions instead of those of the program.
pub(super) fn hides_much(quality: &Quality) -> bool {
    let mut interpreted = quality.interpreted().into_iter();
    interpreted.any(|(_, stacks)| lack_many(stacks))
}

fn lack_many(stacks: &InterpretedStacks) -> bool {
    share(stacks.known, stacks.all()).is_some_and(|known| known < Grade::FAIR_WHOLE)
}

/// The share of the stacks with an interpreter that has its frames.
pub(super) fn shown(quality: &Quality) -> String {
    let shares = quality.interpreted().into_iter();
    let shares = shares.filter_map(|(language, stacks)| {
        let known = share(stacks.known, stacks.all())?;
        let (known, language) = (percent(whole_shown(known)), language.name());
        Some(format!(
            ", {known} of {language} stacks show {language} functions"
        ))
    });
    shares.collect()
}

/// A line for each reason why stacks show only an interpreter's own functions.
pub(super) fn missing(quality: &Quality) -> impl Iterator<Item = String> {
    let interpreted = quality.interpreted().into_iter();
    interpreted.flat_map(move |(language, stacks)| {
        let unknown = stacks.unknown.iter().filter(|&(_, &count)| count > 0);
        unknown.map(move |(reason, &count)| {
            let remedy = match reason {
                MissingFrames::Changed | MissingFrames::Uncertain if lack_many(stacks) => {
                    remedy::ending(Cause::LateInterpreter, quality)
                }
                _ => String::new(),
            };
            format!(
                "{} ({}) without {} frames: {}{remedy}",
                counted(count, "stack"),
                percent(share(count, stacks.all()).unwrap_or(0.0)),
                language.name(),
                reason.describe(language)
            )
        })
    })
}
