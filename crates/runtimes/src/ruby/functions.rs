//! Ruby's functions: instruction sequences with labels, files and lines.

use std::ops::Range;
use std::sync::Arc;

use super::layout::{body, iseq, object};
use super::lines::Lines;
use crate::Memory;
use crate::known_functions::{ForeignCode, KnownFunctions, texts};
use crate::read::word_at;
use crate::stack::Function;

/// The functions of a process that were read.
#[derive(Debug, Default)]
pub struct Functions(pub(super) KnownFunctions<Code>);

/// A function.
#[derive(Clone, Debug)]
pub(super) struct Code {
    head: Head,
    pub(super) function: Arc<Function>,
    lines: Lines,
}

/// Distinguishes a function from another one at the same address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    body: [u8; body::SIZE],
    label: [u8; object::SIZE],
}

/// The blocks of memory at these addresses.
fn blocks<const SIZE: usize>(
    memory: &mut impl Memory,
    addresses: impl Iterator<Item = Option<u64>>,
) -> Option<Vec<[u8; SIZE]>> {
    let range = |address: Option<u64>| Some(address?..address?.checked_add(SIZE as u64)?);
    let ranges = addresses.map(range).collect::<Option<Vec<_>>>()?;
    let mut bytes = vec![0; ranges.len() * SIZE];
    (memory.read_ranges(&ranges, &mut bytes) == bytes.len()).then_some(())?;
    Some(bytes.as_chunks().0.to_vec())
}

impl ForeignCode for Code {
    type Layout = ();
    type Head = Head;

    const INSTRUCTIONS: usize = 1 << 19;

    fn heads(memory: &mut impl Memory, (): &(), addresses: &[u64]) -> Option<Vec<Head>> {
        let at = |address: &u64| address.checked_add(iseq::BODY);
        let bodies = blocks::<8>(memory, addresses.iter().map(at))?;
        let bodies = bodies.iter().map(|&body| Some(u64::from_le_bytes(body)));
        let bodies = blocks::<{ body::SIZE }>(memory, bodies)?;
        let labels = bodies.iter().map(|body| word_at(body, body::LABEL));
        let labels = blocks::<{ object::SIZE }>(memory, labels)?;
        let heads = bodies.into_iter().zip(labels);
        Some(heads.map(|(body, label)| Head { body, label }).collect())
    }

    fn read(memory: &mut impl Memory, head: Head, instructions_left: &mut usize) -> Option<Self> {
        let field = |at| word_at(&head.body, at);
        let entries = (
            field(body::LINES)?,
            field(body::LINE_COUNT)? as u32 as usize,
        );
        let index = (field(body::LINE_INDEX)?, head.instructions()?.count);
        let needed = entries.1.saturating_add(index.1 as usize / 8);
        let lines = match instructions_left.checked_sub(needed) {
            Some(left) => {
                *instructions_left = left;
                Lines::read(memory, entries, index)
            }
            None => Lines::default(),
        };
        let function = Function {
            name: text(memory, &head.label, texts::NAME)?,
            file: path(memory, field(body::PATH)?)?,
            // A small number as an object.
            first_line: (field(body::FIRST_LINE)? >> 1) as u32,
        };
        Some(Self {
            head,
            function: Arc::new(function),
            lines,
        })
    }

    fn head(&self) -> &Head {
        &self.head
    }

    fn function(&self) -> &Function {
        &self.function
    }

    fn lines_size(&self) -> usize {
        self.lines.footprint()
    }
}

impl Code {
    /// The addresses of its instructions.
    pub(super) fn instructions(&self) -> Range<u64> {
        let code = self.head.instructions();
        code.map_or(0..0, |it| it.start..it.start.saturating_add(it.count * 8))
    }

    /// The line of the instruction before this address, if it is one of the function's.
    pub(super) fn line_before(&self, address: u64) -> Option<u32> {
        let offset = address.checked_sub(self.instructions().start)?;
        self.lines.line((offset / 8).saturating_sub(1))
    }
}

/// The words of a function's instructions.
struct Instructions {
    start: u64,
    count: u64,
}

impl Head {
    fn instructions(&self) -> Option<Instructions> {
        // The length has four bytes, after four others.
        let length = word_at(&self.body, body::LENGTH - 4)? >> 32;
        Some(Instructions {
            start: word_at(&self.body, body::CODE)?,
            count: length,
        })
    }
}

/// The file of a function: a string, or an array of one and its absolute path.
fn path(memory: &mut impl Memory, address: u64) -> Option<String> {
    let mut bytes = [0; object::SIZE];
    (memory.read(address, &mut bytes) == bytes.len()).then_some(())?;
    if word_at(&bytes, 0)? & object::TYPE != object::ARRAY {
        return text(memory, &bytes, texts::FILE);
    }
    let [relative, absolute] = [0, 8].map(|at| word_at(&bytes, object::EMBEDDED + at));
    let mut string = |address: Option<u64>| {
        let mut bytes = [0; object::SIZE];
        (memory.read(address?, &mut bytes) == bytes.len()).then_some(())?;
        text(memory, &bytes, texts::FILE)
    };
    // Code of `eval` has no absolute path.
    string(absolute).or_else(|| string(relative))
}

/// The text of a string object, up to a limit.
fn text(memory: &mut impl Memory, string: &[u8; object::SIZE], limit: usize) -> Option<String> {
    let flags = word_at(string, 0)?;
    (flags & object::TYPE == object::STRING).then_some(())?;
    if flags & object::ELSEWHERE == 0 {
        let length = (flags >> object::LENGTH_SHIFT & object::LENGTH_MASK) as usize;
        let bytes = string.get(usize::from(object::EMBEDDED)..)?.get(..length)?;
        return Some(String::from_utf8_lossy(bytes).into_owned());
    }
    let length = word_at(string, object::LENGTH)?;
    (length <= texts::LENGTH).then_some(())?;
    let mut bytes = vec![0; (length as usize).min(limit)];
    let start = word_at(string, object::POINTER)?;
    let is_read = memory.read(start, &mut bytes) == bytes.len();
    is_read.then(|| String::from_utf8_lossy(&bytes).into_owned())
}
