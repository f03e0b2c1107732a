//! The names of code: of compiled methods those that `jcmd PID Compiler.perfmap` writes.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;

use super::layout::{HotspotLayout, NameLayout};
use crate::Memory;
use crate::read::word;

/// What names a piece of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// The method at this address, which it was compiled from.
    Method(u64),
    /// The text at this address, its blob's name.
    Blob(u64),
}

/// The names of the code that was seen.
///
/// Freed memory gets other code. Addresses in a recording have no time, so code that takes the
/// place of other code is recorded as if it were elsewhere: at addresses of its own, above those of
/// all programs.
#[derive(Clone, Debug, Default)]
pub(super) struct CodeNames {
    /// By the start of the code.
    known: BTreeMap<u64, NamedCode>,
    /// Code that was replaced.
    replaced: Vec<Line>,
    /// How much of the addresses for code that replaces other code is used.
    used: u64,
    /// The memory for names.
    bytes: usize,
    /// Whether that was too much: nothing has a name then, so nothing has a wrong one.
    is_full: bool,
}

#[derive(Clone, Debug)]
struct NamedCode {
    end: u64,
    origin: Origin,
    /// What to add to its addresses.
    shift: u64,
    /// Empty if it cannot be known.
    name: String,
}

/// Recorded addresses with their name.
#[derive(Clone, Debug)]
struct Line {
    start: u64,
    size: u64,
    name: String,
}

impl CodeNames {
    /// The memory for names, at most: of some 400,000 methods.
    const BYTES: usize = 64 << 20;

    /// Reads the name of this code, unless it is known.
    pub(super) fn learn(
        &mut self,
        layout: &HotspotLayout,
        memory: &mut impl Memory,
        range: &Range<u64>,
        origin: Origin,
    ) {
        // Without those of methods, other names are of no use.
        let Some(fields) = layout.name.as_ref().filter(|_| !self.is_full) else {
            return;
        };
        let known = self.known.get(&range.start);
        if known.is_some_and(|known| known.end == range.end && known.origin == origin) {
            return;
        }
        let name = match origin {
            Origin::Method(method) => method_name(layout, fields, memory, method),
            Origin::Blob(at) => text(memory, at, BLOB_NAME),
        };
        let shift = match self.replace(range) {
            true => self.shift(range),
            false => 0,
        };
        let name = name.unwrap_or_default();
        self.bytes += size_of::<NamedCode>() + name.len();
        if self.bytes > Self::BYTES {
            *self = Self {
                is_full: true,
                ..Self::default()
            };
            return;
        }
        let named = NamedCode {
            end: range.end,
            origin,
            shift,
            name,
        };
        self.known.insert(range.start, named);
    }

    /// Removes the code in this range; returns whether there was any.
    fn replace(&mut self, range: &Range<u64>) -> bool {
        let before = self.known.range(..range.end);
        let overlapping = before.rev().take_while(|(_, it)| it.end > range.start);
        let starts: Vec<u64> = overlapping.map(|(&start, _)| start).collect();
        for start in &starts {
            if let Some(code) = self.known.remove(start) {
                self.replaced.push(code.line(*start));
            }
        }
        !starts.is_empty()
    }

    /// What leads from this range to addresses of its own.
    fn shift(&mut self, range: &Range<u64>) -> u64 {
        let size = range.end - range.start;
        let start = ReplacingCode::START + self.used % ReplacingCode::LENGTH;
        self.used = self.used.saturating_add(size);
        start.wrapping_sub(range.start)
    }

    /// Replaces the addresses of code that takes the place of other code; returns whether there are
    /// any.
    pub(super) fn move_replacing(&self, addresses: &mut [u64]) -> bool {
        let mut has_moved = false;
        if self.used == 0 {
            return has_moved;
        }
        for address in addresses {
            let before = self.known.range(..=*address).next_back();
            let code = before.filter(|(_, code)| *address < code.end && code.shift != 0);
            if let Some((_, code)) = code {
                *address = address.wrapping_add(code.shift);
                has_moved = true;
            }
        }
        has_moved
    }

    /// Adds the names to a perf map: a line for each piece of code.
    pub(super) fn write(&self, map: &mut String) {
        let known = self.known.iter().map(|(&start, code)| code.line(start));
        let lines = self.replaced.iter().cloned().chain(known);
        for Line { start, size, name } in lines.filter(|line| !line.name.is_empty()) {
            // Writing to a string does not fail.
            let _ = writeln!(map, "{start:x} {size:x} {name}");
        }
    }
}

impl NamedCode {
    fn line(&self, start: u64) -> Line {
        Line {
            start: start.wrapping_add(self.shift),
            size: self.end - start,
            name: self.name.clone(),
        }
    }
}

/// The addresses for code that takes the place of other code.
#[derive(Debug)]
pub struct ReplacingCode;

impl ReplacingCode {
    /// Above Python's functions.
    pub const START: u64 = 1 << 57;
    /// How many there are.
    pub const LENGTH: u64 = 1 << 40;
}

/// The longest name of a blob, and of a class, a method or a signature.
const BLOB_NAME: usize = 64;
const SYMBOL: usize = 4096;

/// The name of a method with its class and signature, such as `int Hot.heavy(int, long[])`.
fn method_name(
    layout: &HotspotLayout,
    fields: &NameLayout,
    memory: &mut impl Memory,
    method: u64,
) -> Option<String> {
    let at = |address: u64, offset: u16| address.checked_add(offset.into());
    let const_method = word(memory, at(method, layout.method.const_method)?)?;
    let constants = word(memory, at(const_method, fields.constants)?)?;
    let mut constant = |index: u16| {
        let index = word(memory, at(const_method, index)?)? & 0xffff;
        let pool = at(constants, fields.constants_size)?;
        symbol(fields, memory, pool.checked_add(8 * index)?)
    };
    let name = constant(fields.name_index)?;
    let signature = constant(fields.signature_index)?;
    let class = word(memory, at(constants, fields.holder)?)?;
    let class = symbol(fields, memory, at(class, fields.class_name)?)?;
    // A hidden class: `Hot$$Lambda+0x7f00`.
    let class = class.replace('/', ".").replace('+', "/");
    let (result, parameters) = types(&signature)?;
    Some(format!("{result} {class}.{name}({parameters})"))
}

/// The text of the `Symbol` that the word at this place points to.
fn symbol(fields: &NameLayout, memory: &mut impl Memory, place: u64) -> Option<String> {
    let address = word(memory, place)?;
    let length = word(memory, address.checked_add(fields.symbol_length.into())?)? & 0xffff;
    let mut bytes = vec![0; usize::try_from(length).ok().filter(|it| *it <= SYMBOL)?];
    let start = address.checked_add(fields.symbol_body.into())?;
    let is_read = memory.read(start, &mut bytes) == bytes.len();
    printable(is_read.then_some(bytes)?)
}

/// The text at an address, ended by a zero.
fn text(memory: &mut impl Memory, address: u64, longest: usize) -> Option<String> {
    let mut bytes = vec![0; longest];
    let count = memory.read(address, &mut bytes);
    bytes.truncate(count);
    let end = bytes.iter().position(|&byte| byte == 0)?;
    bytes.truncate(end);
    printable(bytes)
}

fn printable(bytes: Vec<u8>) -> Option<String> {
    let text = String::from_utf8(bytes).ok()?;
    (!text.is_empty() && !text.contains(char::is_control)).then_some(text)
}

/// The types of a method's signature as they stand in source code: of its result, and of its
/// parameters.
fn types(signature: &str) -> Option<(String, String)> {
    let (mut rest, result) = signature.strip_prefix('(')?.split_once(')')?;
    let mut parameters = Vec::new();
    while !rest.is_empty() {
        let (name, after) = type_name(rest)?;
        parameters.push(name);
        rest = after;
    }
    let (result, after) = type_name(result)?;
    after.is_empty().then(|| (result, parameters.join(", ")))
}

/// The first type in this text, and what follows it.
fn type_name(text: &str) -> Option<(String, &str)> {
    let element = text.trim_start_matches('[');
    let dimensions = text.len() - element.len();
    let (name, rest) = match element.strip_prefix('L') {
        Some(class) => {
            let (class, rest) = class.split_once(';')?;
            (class.replace('/', "."), rest)
        }
        None => {
            let mut rest = element.chars();
            let name = match rest.next()? {
                'B' => "byte",
                'C' => "char",
                'D' => "double",
                'F' => "float",
                'I' => "int",
                'J' => "long",
                'S' => "short",
                'V' => "void",
                'Z' => "boolean",
                _ => return None,
            };
            (name.to_owned(), rest.as_str())
        }
    };
    Some((name + &"[]".repeat(dimensions), rest))
}

#[cfg(test)]
mod tests {
    use super::types;

    #[test]
    fn signatures_are_those_of_source_code() {
        let check = |signature, result: &str, parameters: &str| {
            let expected = Some((result.to_owned(), parameters.to_owned()));
            assert_eq!(types(signature), expected);
        };
        check("()V", "void", "");
        check(
            "(I[J[[Ljava/lang/String;Z)[B",
            "byte[]",
            "int, long[], java.lang.String[][], boolean",
        );
        check(
            "(Ljava/util/List;)Ljava/util/Map;",
            "java.util.Map",
            "java.util.List",
        );
        for wrong in ["", "I", "(", "(I", "()", "(Q)V", "(Ljava)V", "()VV", "([)V"] {
            assert_eq!(types(wrong), None, "{wrong}");
        }
    }
}
