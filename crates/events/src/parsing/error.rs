//! The errors in an event's name, and their places.

use std::fmt;
use std::ops::Range;

use prof_model::one_of;
use thiserror::Error;

/// The error in a list of events, and its place.
///
/// Displayed over three lines: the problem, the text, and a caret below the place.
///
/// ```text
/// unknown event "cycels": did you mean cycles?
///   instructions,cycels:u
///                ^^^^^^
/// ```
#[derive(Clone, Debug, PartialEq, Error)]
pub struct ParseError {
    /// The whole text.
    pub text: String,
    /// The bytes of `text` that the problem is about; may be empty, and may lie at its end.
    pub place: Range<usize>,
    /// The error.
    pub problem: Box<Problem>,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width =
            |range: Range<usize>| self.text.get(range).map_or(0, |part| part.chars().count());
        let before = width(0..self.place.start);
        let carets = width(self.place.clone()).max(1);
        // Characters that would break the line or move the carets.
        let line: String = self
            .text
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        writeln!(f, "{}", self.problem)?;
        writeln!(f, "  {line}")?;
        write!(f, "  {:before$}{:^<carets$}", "", "")
    }
}

/// An error in an event's name.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum Problem {
    /// There is no event here.
    #[error("an event's name is missing here")]
    Empty,
    /// Something else was expected here.
    #[error("expected here: {expected}")]
    Expected {
        /// The expected text.
        expected: &'static str,
    },
    /// No event of that name.
    #[error("unknown event {name:?}{}", meant_or_list(.nearest))]
    UnknownEvent {
        /// The name.
        name: String,
        /// The nearest existing names.
        nearest: Vec<String>,
    },
    /// An unknown letter after the colon.
    #[error(
        "unknown modifier {letter:?}: use u (user), k (kernel), h (hypervisor), G (guest), H (host), \
         I (not idle), p, pp, ppp or P (precise), D (pinned), e (exclusive), S (leader sampling)"
    )]
    UnknownModifier {
        /// The letter.
        letter: char,
    },
    /// A modifier that is repeated or misplaced.
    #[error("{0}")]
    Modifier(&'static str),
    /// No PMU of that name.
    #[error("this machine has no PMU {name:?}{}", meant_or_all(.nearest, .all))]
    UnknownPmu {
        /// The name.
        name: String,
        /// The nearest names.
        nearest: Vec<String>,
        /// All names.
        all: String,
    },
    /// A term that neither the PMU nor prof knows.
    #[error("unknown term {name:?}{}", meant_or_all(.nearest, .takes))]
    UnknownTerm {
        /// The term.
        name: String,
        /// The nearest terms.
        nearest: Vec<String>,
        /// All terms.
        takes: String,
    },
    /// A value of the wrong kind for the term.
    #[error("{term} takes {takes}, not {value:?}")]
    BadValue {
        /// The term.
        term: String,
        /// The kind of value that it takes.
        takes: &'static str,
        /// The given value.
        value: String,
    },
    /// A value that does not fit.
    #[error("{value:#x} does not fit the {bits} bits of {term}")]
    TooLarge {
        /// The term.
        term: String,
        /// Its bits.
        bits: u32,
        /// The value.
        value: u64,
    },
    /// Terms that exclude each other.
    #[error("{0} and {1} exclude each other")]
    Conflict(&'static str, &'static str),
    /// An invalid number.
    #[error("{text:?} is not {what}")]
    BadNumber {
        /// The given text.
        text: String,
        /// The expected kind of text.
        what: &'static str,
    },
    /// A tracepoint that is not there.
    #[error("there is no tracepoint {name:?}{}", did_you_mean(.nearest))]
    UnknownTracepoint {
        /// `system:event`.
        name: String,
        /// The nearest names.
        nearest: Vec<String>,
    },
    /// Tracepoints cannot be looked up.
    #[error(
        "cannot look up tracepoints in {path}: {reason}: tracefs is for root only unless it is \
         remounted (`sudo mount -o remount,mode=755 /sys/kernel/tracing`)"
    )]
    NoTracepoints {
        /// The folder.
        path: String,
        /// The system's error.
        reason: String,
    },
    /// The kernel has no uprobes.
    #[error("this kernel has no uprobes: {path} is missing")]
    NoUprobes {
        /// The file in sysfs.
        path: String,
    },
    /// The file of a uprobe is not there.
    #[error("there is no file {name:?}{}", looked_in(.searched))]
    NoFile {
        /// The name as typed.
        name: String,
        /// The places that were searched.
        searched: String,
    },
    /// The file of a uprobe cannot be used.
    #[error("cannot use {path}: {reason}")]
    BadFile {
        /// The file.
        path: String,
        /// Why.
        reason: String,
    },
    /// The function is not in the file.
    #[error("{path} has no function {symbol:?}{}{}", did_you_mean(.nearest), if *.stripped { STRIPPED } else { "" })]
    UnknownSymbol {
        /// The file.
        path: String,
        /// The function's name.
        symbol: String,
        /// The nearest names.
        nearest: Vec<String>,
        /// Whether the file has only the symbol table for dynamic linking.
        stripped: bool,
    },
    /// Several functions of that name.
    #[error("{path} has {count} functions {symbol:?}: choose one, such as {}", .examples.join(" or "))]
    AmbiguousSymbol {
        /// The file.
        path: String,
        /// The given text.
        symbol: String,
        /// How many there are.
        count: usize,
        /// Some of them, each in an unambiguous form.
        examples: Vec<String>,
    },
    /// A symbol that is not a function here.
    #[error("{symbol} {why}")]
    NotProbeable {
        /// The symbol.
        symbol: String,
        /// What it is and what to do.
        why: String,
    },
    /// An offset past the end of the function.
    #[error("{symbol} is {size} bytes long: an offset of {offset} is beyond it")]
    OffsetBeyondFunction {
        /// The function.
        symbol: String,
        /// Its length in bytes.
        size: u64,
        /// The requested offset.
        offset: u64,
    },
    /// An address without code.
    #[error("{address:#x} is outside the code of {path}")]
    OutsideCode {
        /// The file.
        path: String,
        /// The address, as the file's symbol table counts it.
        address: u64,
    },
}

const STRIPPED: &str = ": it is stripped, only its exported functions have names; install its \
                        debug symbols, or give an address as 0xADDRESS";

fn did_you_mean(nearest: &[String]) -> String {
    match nearest {
        [] => String::new(),
        nearest => format!(": did you mean {}?", one_of(nearest)),
    }
}

fn meant_or_list(nearest: &[String]) -> String {
    match nearest {
        [] => ": `prof list` shows all events".into(),
        nearest => did_you_mean(nearest),
    }
}

fn meant_or_all(nearest: &[String], all: &str) -> String {
    match nearest {
        [] if all.is_empty() => String::new(),
        [] => format!(": there are {all}"),
        nearest => did_you_mean(nearest),
    }
}

fn looked_in(places: &str) -> String {
    match places {
        "" => String::new(),
        places => format!(" (looked in {places})"),
    }
}
