//! The names of code: of compiled methods those that `jcmd PID Compiler.perfmap` writes, and of
//! interpreted ones in the same style.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::ops::Range;

use super::layout::{HotspotLayout, NameLayout};
use crate::Memory;
use crate::read::word;

/// Code and methods come and go: they are read again after this time, in nanoseconds.
pub(super) const LASTS: u64 = 1_000_000_000;

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
/// all programs. Interpreted methods, which all run in the same code, have such addresses, too.
#[derive(Clone, Debug, Default)]
pub(super) struct CodeNames {
    /// By the start of the code.
    known: BTreeMap<u64, NamedCode>,
    /// By the address of the `Method`.
    interpreted: HashMap<u64, InterpretedMethod>,
    /// Code that was replaced, and interpreted methods.
    lines: Vec<Line>,
    /// How much of the [synthetic addresses](SyntheticCode) is used.
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

#[derive(Clone, Copy, Debug)]
struct InterpretedMethod {
    symbols: MethodSymbols,
    /// What represents it in recordings; `None` if its name cannot be known.
    address: Option<u64>,
    /// When it was last read.
    read_at: u64,
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
            Origin::Method(method) => MethodSymbols::read(layout, fields, memory, method)
                .and_then(|symbols| symbols.method_name(fields, memory)),
            Origin::Blob(at) => text(memory, at, BLOB_NAME),
        };
        let shift = match self.replace(range) {
            true => self.shift(range),
            false => 0,
        };
        let name = name.unwrap_or_default();
        if !self.has_room(size_of::<NamedCode>() + name.len()) {
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

    /// The address that represents an interpreted method in recordings, at a time in nanoseconds;
    /// `None` if it has no name. The memory of a method whose class is unloaded may get another
    /// method, so its names are compared after a while.
    pub(super) fn interpreted(
        &mut self,
        layout: &HotspotLayout,
        memory: &mut impl Memory,
        method: u64,
        now: u64,
    ) -> Option<u64> {
        let fields = layout.name.as_ref().filter(|_| !self.is_full)?;
        let known = self.interpreted.get(&method).copied();
        if let Some(known) = known
            && now.saturating_sub(known.read_at) < LASTS
        {
            return known.address;
        }
        let Some(symbols) = MethodSymbols::read(layout, fields, memory, method) else {
            // What the process had at its end is right for its last samples.
            return known?.address;
        };
        let address = match known.filter(|known| known.symbols == symbols) {
            Some(known) => known.address,
            None => self.add_interpreted(symbols.method_name(fields, memory)),
        };
        if self.is_full {
            return None;
        }
        let read = InterpretedMethod {
            symbols,
            address,
            read_at: now,
        };
        self.interpreted.insert(method, read);
        address
    }

    /// Reserves addresses for an interpreted method of this name; returns one within them, so that
    /// those beside it, which some readers look up for callers, have the name, too.
    fn add_interpreted(&mut self, name: Option<String>) -> Option<u64> {
        const SIZE: u64 = 16;
        let length = name.as_ref().map_or(0, String::len);
        if !self.has_room(size_of::<InterpretedMethod>() + size_of::<Line>() + length) {
            return None;
        }
        let (start, name) = (self.reserve(SIZE), name?);
        let size = SIZE;
        self.lines.push(Line { start, size, name });
        Some(start + SIZE / 2)
    }

    /// Whether there is memory for this many bytes more; if not, forgets all names.
    fn has_room(&mut self, bytes: usize) -> bool {
        self.bytes += bytes;
        if self.bytes > Self::BYTES {
            *self = Self {
                is_full: true,
                ..Self::default()
            };
        }
        !self.is_full
    }

    /// Removes the code in this range; returns whether there was any.
    fn replace(&mut self, range: &Range<u64>) -> bool {
        let before = self.known.range(..range.end);
        let overlapping = before.rev().take_while(|(_, it)| it.end > range.start);
        let starts: Vec<u64> = overlapping.map(|(&start, _)| start).collect();
        for start in &starts {
            if let Some(code) = self.known.remove(start) {
                self.lines.push(code.line(*start));
            }
        }
        !starts.is_empty()
    }

    /// What leads from this range to addresses of its own.
    fn shift(&mut self, range: &Range<u64>) -> u64 {
        let start = self.reserve(range.end - range.start);
        start.wrapping_sub(range.start)
    }

    /// The start of so many synthetic addresses that nothing else has.
    fn reserve(&mut self, size: u64) -> u64 {
        let start = SyntheticCode::START + self.used % SyntheticCode::LENGTH;
        self.used = self.used.saturating_add(size);
        start
    }

    /// Replaces the addresses of code that takes the place of other code; returns whether there are
    /// any synthetic addresses now.
    pub(super) fn move_replacing(&self, addresses: &mut [u64]) -> bool {
        if self.used == 0 {
            return false;
        }
        for address in &mut *addresses {
            let before = self.known.range(..=*address).next_back();
            let code = before.filter(|(_, code)| *address < code.end);
            if let Some((_, code)) = code {
                *address = address.wrapping_add(code.shift);
            }
        }
        let mut addresses = addresses.iter();
        addresses.any(|address| address.wrapping_sub(SyntheticCode::START) < SyntheticCode::LENGTH)
    }

    /// Adds the names to a perf map: a line for each piece of code.
    pub(super) fn write(&self, map: &mut String) {
        let known = self.known.iter().map(|(&start, code)| code.line(start));
        let lines = self.lines.iter().cloned().chain(known);
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

/// The addresses in recordings of code that takes the place of other code, and of interpreted
/// methods.
#[derive(Debug)]
pub struct SyntheticCode;

impl SyntheticCode {
    /// Above Python's functions.
    pub const START: u64 = 1 << 57;
    /// How many there are.
    pub const LENGTH: u64 = 1 << 40;
}

/// The longest name of a blob, and of a class, a method or a signature.
const BLOB_NAME: usize = 64;
const SYMBOL: usize = 4096;

/// The names of a method: the addresses of `Symbol`s, of which there is one for each text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MethodSymbols {
    class: u64,
    name: u64,
    signature: u64,
}

impl MethodSymbols {
    /// Those of the method at this address.
    fn read(
        layout: &HotspotLayout,
        fields: &NameLayout,
        memory: &mut impl Memory,
        method: u64,
    ) -> Option<Self> {
        let at = |address: u64, offset: u16| address.checked_add(offset.into());
        let const_method = word(memory, at(method, layout.method.const_method)?)?;
        let constants = word(memory, at(const_method, fields.constants)?)?;
        let mut constant = |index: u16| {
            let index = word(memory, at(const_method, index)?)? & 0xffff;
            let pool = at(constants, fields.constants_size)?;
            word(memory, pool.checked_add(8 * index)?)
        };
        let name = constant(fields.name_index)?;
        let signature = constant(fields.signature_index)?;
        let class = word(memory, at(constants, fields.holder)?)?;
        Some(Self {
            class: word(memory, at(class, fields.class_name)?)?,
            name,
            signature,
        })
    }

    /// The name with class and signature, such as `int Hot.heavy(int, long[])`.
    fn method_name(&self, fields: &NameLayout, memory: &mut impl Memory) -> Option<String> {
        let mut text = |address| symbol(fields, memory, address);
        // A hidden class: `Hot$$Lambda+0x7f00`.
        let class = text(self.class)?.replace('/', ".").replace('+', "/");
        let name = text(self.name)?;
        let (result, parameters) = types(&text(self.signature)?)?;
        Some(format!("{result} {class}.{name}({parameters})"))
    }
}

/// The text of the `Symbol` at this address.
fn symbol(fields: &NameLayout, memory: &mut impl Memory, address: u64) -> Option<String> {
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
