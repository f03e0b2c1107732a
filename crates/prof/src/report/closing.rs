//! The lines below each view: what it does not show, and the verdict.

use std::fmt;

use prof_console::say;
use prof_model::{Grade, Verdict, counted};
use prof_report::profile::Event;
use prof_report::{Profile, SymbolizedProfile};

use crate::symbolization;

/// How far a profile can be trusted.
pub(super) enum ReportQuality {
    /// The recording's verdict.
    Verdict(Verdict),
    /// The format has no verdict; the number of invalid samples.
    Unknown {
        /// Samples that were left out.
        malformed: u64,
    },
}

impl ReportQuality {
    pub(super) fn of(profile: &SymbolizedProfile) -> Self {
        match profile.profile().missing_data.quality {
            true => Self::Unknown {
                malformed: profile.quality().losses.malformed,
            },
            false => Self::Verdict(profile.verdict()),
        }
    }

    /// Whether no problem is known.
    pub(super) fn is_good(&self) -> bool {
        match self {
            Self::Verdict(verdict) => verdict.grade == Grade::Good,
            Self::Unknown { malformed } => *malformed == 0,
        }
    }

    /// Whether `--strict` accepts it.
    pub(super) fn is_trusted(&self) -> bool {
        match self {
            Self::Verdict(verdict) => verdict.grade.is_trusted(),
            Self::Unknown { malformed } => *malformed == 0,
        }
    }
}

impl fmt::Display for ReportQuality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Verdict(verdict) => write!(f, "{verdict}"),
            Self::Unknown { malformed } => {
                write!(
                    f,
                    "no verdict: this format does not say which stacks are whole and what was lost"
                )?;
                match malformed {
                    0 => Ok(()),
                    1 => write!(f, "\n  - 1 sample is invalid and was left out"),
                    count => write!(f, "\n  - {count} samples are invalid and were left out"),
                }
            }
        }
    }
}

/// What a view of this event does not show.
pub(super) fn asides(profile: &SymbolizedProfile, event: &Event) -> Vec<String> {
    let others = other_events(profile.profile(), event).into_iter();
    others
        .chain(symbolization::unnamed(profile.naming()))
        .collect()
}

/// Prints it on the standard error output: the standard output may be the view.
pub(super) fn print_closing(asides: &[String], quality: &ReportQuality) {
    asides.iter().for_each(say);
    say(quality);
}

/// The other events of the profile, in one line; `None` if there are none.
fn other_events(profile: &Profile, shown: &Event) -> Option<String> {
    let others = profile.events.iter().zip(profile.sample_counts());
    let others: Vec<String> = others
        .filter(|(event, count)| *event != shown && *count > 0)
        .map(|(event, count)| format!("{} ({})", event.name, counted(count, "sample")))
        .collect();
    (!others.is_empty()).then(|| {
        format!(
            "this shows {}; --event NAME shows {}",
            shown.name,
            others.join(", ")
        )
    })
}
