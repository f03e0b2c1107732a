//! The terms between the slashes.

use std::ops::Range;

use super::cursor::{Cursor, Located};
use super::error::Problem;
use crate::rate::Rate;

/// The terms between the slashes that are not part of the encoding; `None` if not given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// `period=N` or `freq=N|max`: how often this event samples.
    pub rate: Option<Rate>,
    /// `call-graph=`: how this event's callers are found.
    pub call_graph: Option<CallGraphTerm>,
    /// `stack-size=`: bytes of stack with each sample.
    pub stack_size: Option<u32>,
    /// `max-stack=`: the most frames that the kernel follows.
    pub max_stack: Option<u16>,
    /// `inherit` or `no-inherit`: whether children count.
    pub inherit: Option<bool>,
}

/// `call-graph=` of one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallGraphTerm {
    /// Registers and a copy of the stack, unwound with the program's tables.
    Dwarf,
    /// Frame pointers, followed by the kernel.
    FramePointers,
    /// The CPU's record of its last branches.
    LastBranches,
    /// None.
    None,
}

/// A term as it was typed.
#[derive(Clone, Debug)]
pub(super) struct Term<'a> {
    pub(super) name: &'a str,
    pub(super) value: Option<&'a str>,
    pub(super) place: Range<usize>,
}

impl Term<'_> {
    pub(super) fn problem(&self, problem: Problem) -> Located {
        (self.place.clone(), problem)
    }

    /// The value as a number, 1 if there is none.
    pub(super) fn number(&self) -> Result<u64, Located> {
        match self.value {
            None => Ok(1),
            Some(value) => parse_number(value).ok_or_else(|| self.bad("a number")),
        }
    }

    fn positive(&self) -> Result<u64, Located> {
        match self.number()? {
            0 => Err(self.bad("a number above zero")),
            number => Ok(number),
        }
    }

    fn bad(&self, takes: &'static str) -> Located {
        self.problem(Problem::BadValue {
            term: self.name.to_owned(),
            takes,
            value: self.value.unwrap_or_default().to_owned(),
        })
    }
}

/// Reads `TERM[=VALUE],...` up to and including the closing slash. Values in quotes may hold
/// commas and slashes.
pub(super) fn read<'a>(cursor: &mut Cursor<'a>) -> Result<Vec<Term<'a>>, Located> {
    let opened = cursor.at();
    let mut terms = Vec::new();
    loop {
        cursor.skip_spaces();
        if cursor.eat("/") {
            return Ok(terms);
        }
        let start = cursor.at();
        let name =
            cursor.take_while(|c| !matches!(c, '=' | ',' | '/' | '{' | '}') && !c.is_whitespace());
        if name.is_empty() {
            let expected = match cursor.peek() {
                None => {
                    return Err((
                        opened..opened,
                        Problem::Expected {
                            expected: "a closing slash after the terms",
                        },
                    ));
                }
                Some(_) => "a term",
            };
            return Err(cursor.here(Problem::Expected { expected }));
        }
        let value = match cursor.eat("=") {
            true => Some(read_value(cursor)?),
            false => None,
        };
        let place = start..cursor.at();
        terms.push(Term { name, value, place });
        cursor.skip_spaces();
        if !cursor.eat(",") && cursor.peek() != Some('/') {
            let expected = "a comma or the closing slash";
            return Err(cursor.here(Problem::Expected { expected }));
        }
    }
}

fn read_value<'a>(cursor: &mut Cursor<'a>) -> Result<&'a str, Located> {
    if let Some(value) = cursor.quoted()? {
        return Ok(value);
    }
    let value = cursor.take_while(|c| !matches!(c, ',' | '/' | '}'));
    match value {
        "" => Err(cursor.here(Problem::Expected {
            expected: "a value",
        })),
        value => Ok(value),
    }
}

/// The terms of every event, for suggestions.
pub(super) const COMMON: [&str; 13] = [
    "config",
    "config1",
    "config2",
    "config3",
    "name",
    "period",
    "freq",
    "call-graph",
    "stack-size",
    "max-stack",
    "inherit",
    "no-inherit",
    "time",
];

impl Terms {
    /// Applies a term of every event; `false` if it is not one.
    pub(super) fn take(&mut self, term: &Term<'_>) -> Result<bool, Located> {
        match term.name {
            "period" => self.set_rate(term, Rate::Period(term.positive()?))?,
            "freq" if term.value == Some("max") => self.set_rate(term, Rate::Maximum)?,
            "freq" => self.set_rate(term, Rate::Hertz(term.positive()?))?,
            "call-graph" => self.call_graph = Some(call_graph(term)?),
            "stack-size" => self.stack_size = Some(stack_size(term)?),
            "max-stack" => {
                let frames = term.positive()?;
                let frames = frames
                    .try_into()
                    .map_err(|_| term.bad("at most 65535 frames"))?;
                self.max_stack = Some(frames);
            }
            "inherit" => self.inherit = Some(term.number()? != 0),
            "no-inherit" => self.inherit = Some(term.number()? == 0),
            // Samples always carry their time.
            "time" => {
                term.number()?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn set_rate(&mut self, term: &Term<'_>, rate: Rate) -> Result<(), Located> {
        if self.rate.is_some() {
            return Err(term.problem(Problem::Conflict("period", "freq")));
        }
        self.rate = Some(rate);
        Ok(())
    }
}

fn call_graph(term: &Term<'_>) -> Result<CallGraphTerm, Located> {
    match term.value {
        Some("dwarf") => Ok(CallGraphTerm::Dwarf),
        Some("fp") => Ok(CallGraphTerm::FramePointers),
        Some("lbr") => Ok(CallGraphTerm::LastBranches),
        Some("no" | "none") => Ok(CallGraphTerm::None),
        _ => Err(term.bad("dwarf, fp, lbr or no")),
    }
}

fn stack_size(term: &Term<'_>) -> Result<u32, Located> {
    let largest = u64::from(crate::rate::MAX_STACK_DUMP);
    match term.positive()?.checked_next_multiple_of(8) {
        // Users who type 64 KiB mean the maximum.
        Some(bytes) if bytes <= 65_536 => Ok(bytes.min(largest) as u32),
        _ => Err(term.bad("at most 65528 bytes")),
    }
}

/// A number as C writes it: decimal, or hexadecimal after 0x.
pub(super) fn parse_number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16).ok(),
        None if !text.starts_with('+') => text.parse().ok(),
        _ => None,
    }
}
