//! Ruby's functions: instruction sequences with labels, files and lines.

use std::ops::Range;
use std::sync::Arc;

use prof_model::Account;

use super::layout::{Layout, body, iseq, object};
use super::lines::Lines;
use crate::Memory;
use crate::known_functions::{ForeignCode, KnownFunctions, texts};
use crate::read::word_at;
use crate::stack::Function;

/// The functions of a process that were read.
#[derive(Debug, Default)]
pub struct Functions(pub(super) KnownFunctions<Code>);

impl Functions {
    pub(crate) fn new(account: &Account) -> Self {
        Self(KnownFunctions::new(account))
    }
}

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
    layout: &'static Layout,
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
    type Layout = &'static Layout;
    type Head = Head;

    const INSTRUCTIONS: usize = 1 << 19;

    fn heads(
        memory: &mut impl Memory,
        layout: &Self::Layout,
        addresses: &[u64],
    ) -> Option<Vec<Head>> {
        let at = |address: &u64| address.checked_add(iseq::BODY);
        let bodies = blocks::<8>(memory, addresses.iter().map(at))?;
        let bodies = bodies.iter().map(|&body| Some(u64::from_le_bytes(body)));
        let bodies = blocks::<{ body::SIZE }>(memory, bodies)?;
        let labels = bodies.iter().map(|body| word_at(body, body::LABEL));
        let labels = blocks::<{ object::SIZE }>(memory, labels)?;
        let heads = bodies.into_iter().zip(labels);
        let head = |(body, label)| Head {
            layout,
            body,
            label,
        };
        Some(heads.map(head).collect())
    }

    fn read(memory: &mut impl Memory, head: Head, instructions_left: &mut usize) -> Option<Self> {
        let layout = head.layout;
        let field = |at| word_at(&head.body, at);
        let entries = (
            field(layout.lines)?,
            field(layout.line_count)? as u32 as usize,
        );
        let index = (field(layout.line_index)?, head.instructions()?.count);
        let needed = entries.1.saturating_add(index.1 as usize / 8);
        let lines = match instructions_left.checked_sub(needed) {
            Some(left) => {
                *instructions_left = left;
                Lines::read(memory, entries, index)
            }
            None => Lines::default(),
        };
        let first_line = field(body::FIRST_LINE)?;
        let mut strings = Strings { memory, layout };
        let function = Function {
            name: strings.text(field(body::LABEL)?, &head.label, texts::NAME)?,
            file: strings.path(field(body::PATH)?)?,
            first_line: match layout.is_line_object {
                true => (first_line >> 1) as u32,
                false => first_line as u32,
            },
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
        let instructions = self.instructions();
        let offset = address.checked_sub(instructions.start)?;
        (address <= instructions.end).then_some(())?;
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

/// Reads strings.
struct Strings<'a, M> {
    memory: &'a mut M,
    layout: &'static Layout,
}

impl<M: Memory> Strings<'_, M> {
    /// The file of a function: a string, or an array of one and its absolute path.
    fn path(&mut self, address: u64) -> Option<String> {
        let object = self.object(address)?;
        if word_at(&object, 0)? & object::TYPE != object::ARRAY {
            return self.text(address, &object, texts::FILE);
        }
        let [relative, absolute] = [0, 8].map(|at| word_at(&object, object::EMBEDDED + at));
        let mut string = |address: Option<u64>| {
            let object = self.object(address?)?;
            self.text(address?, &object, texts::FILE)
        };
        // Code of `eval` has no absolute path.
        string(absolute).or_else(|| string(relative))
    }

    fn object(&mut self, address: u64) -> Option<[u8; object::SIZE]> {
        let mut bytes = [0; object::SIZE];
        (self.memory.read(address, &mut bytes) == bytes.len()).then_some(bytes)
    }

    /// The text of a string object at this address, up to a limit.
    fn text(&mut self, address: u64, string: &[u8; object::SIZE], limit: usize) -> Option<String> {
        let flags = word_at(string, 0)?;
        (flags & object::TYPE == object::STRING).then_some(())?;
        let is_embedded = flags & object::ELSEWHERE == 0;
        let length = match is_embedded && self.layout.is_length_in_flags {
            true => flags >> object::LENGTH_SHIFT & object::LENGTH_MASK,
            false => word_at(string, object::LENGTH)?,
        };
        (length <= texts::LENGTH).then_some(())?;
        let length = (length as usize).min(limit);
        let inside = usize::from(self.layout.text);
        if is_embedded && let Some(bytes) = string.get(inside..inside + length) {
            return Some(String::from_utf8_lossy(bytes).into_owned());
        }
        let start = match is_embedded {
            true => address.checked_add(inside as u64)?,
            false => word_at(string, object::POINTER)?,
        };
        let mut bytes = vec![0; length];
        let is_read = self.memory.read(start, &mut bytes) == bytes.len();
        is_read.then(|| String::from_utf8_lossy(&bytes).into_owned())
    }
}
