//! Hardware breakpoints: `mem:ADDRESS[/LENGTH][:rwx]`.

use perf_event_open_sys::bindings as sys;

use super::cursor::{Cursor, Located};
use super::error::Problem;
use super::meaning::Meaning;
use super::spec::{Encoding, Family};
use super::terms::parse_number;

/// `HW_BREAKPOINT_R`, `_W` and `_X` of include/uapi/linux/hw_breakpoint.h.
const ACCESSES: [(char, u32); 3] = [('r', 1), ('w', 2), ('x', 4)];
const EXECUTE: u32 = 4;
const READ_WRITE: u32 = 3;

/// Reads the part after `mem:`.
pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Meaning, Located> {
    let config1 = number(cursor, "an address")?;
    let length = match cursor.eat("/") {
        true => Some(length(cursor)?),
        false => None,
    };
    let breakpoint = access(cursor)?.unwrap_or(READ_WRITE);
    // perf's defaults: a word of code's address, four bytes of data.
    let usual = if breakpoint == EXECUTE {
        size_of::<usize>() as u64
    } else {
        4
    };
    let encoding = Encoding {
        kind: sys::PERF_TYPE_BREAKPOINT,
        config1,
        config2: length.unwrap_or(usual),
        breakpoint,
        ..Encoding::default()
    };
    Ok(Meaning::new(Family::Breakpoint, encoding))
}

fn length(cursor: &mut Cursor<'_>) -> Result<u64, Located> {
    let start = cursor.at();
    match number(cursor, "a length in bytes")? {
        length @ (1 | 2 | 4 | 8) => Ok(length),
        _ => {
            let text = cursor.since(start).to_owned();
            let what = "a length of breakpoints: use 1, 2, 4 or 8 bytes";
            Err(cursor.from(start, Problem::BadNumber { text, what }))
        }
    }
}

/// Letters after a colon, if they are not modifiers.
fn access(cursor: &mut Cursor<'_>) -> Result<Option<u32>, Located> {
    let mut ahead = *cursor;
    if !ahead.eat(":") {
        return Ok(None);
    }
    let start = ahead.at();
    let letters = ahead.take_while(char::is_alphanumeric);
    if letters.is_empty() || !letters.chars().all(|c| matches!(c, 'r' | 'w' | 'x')) {
        return Ok(None);
    }
    let mut access = 0;
    for letter in letters.chars() {
        let (_, bit) = ACCESSES
            .iter()
            .find(|(known, _)| *known == letter)
            .unwrap_or(&('r', 1));
        if access & bit != 0 {
            let problem = Problem::Modifier("r, w and x can each occur only once");
            return Err(ahead.from(start, problem));
        }
        access |= bit;
    }
    if access & EXECUTE != 0 && access != EXECUTE {
        let problem =
            Problem::Modifier("a breakpoint on code (x) cannot watch data (r, w) as well");
        return Err(ahead.from(start, problem));
    }
    *cursor = ahead;
    Ok(Some(access))
}

fn number(cursor: &mut Cursor<'_>, what: &'static str) -> Result<u64, Located> {
    let start = cursor.at();
    let text = cursor.take_while(char::is_alphanumeric);
    if text.is_empty() {
        return Err(cursor.here(Problem::Expected { expected: what }));
    }
    let bad = || Problem::BadNumber {
        text: text.to_owned(),
        what,
    };
    parse_number(text).ok_or_else(|| cursor.from(start, bad()))
}
