//! Code objects: the names, files and lines of functions.

use std::ops::Range;
use std::sync::Arc;

use crate::Memory;
use rustc_hash::FxHashMap;

use super::layout::{CODE_SIZE, Instruction, Instructions, Layout};
use super::lines::Line;
use crate::read::{word, word_at};

/// A Python function.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Function {
    /// Its qualified name.
    pub name: String,
    /// The source file, as the interpreter knows it.
    pub file: String,
    /// The first line in it.
    pub first_line: u32,
}

/// A running Python function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PythonFrame {
    /// The function.
    pub function: Arc<Function>,
    /// The current line in it, if known.
    pub line: Option<u32>,
}

/// The code objects of a process that were read.
#[derive(Debug, Default)]
pub struct Functions {
    known: FxHashMap<u64, Code>,
    /// Bytes of memory that they use.
    bytes: usize,
    /// Counts the stacks.
    stack: u64,
}

/// A code object.
#[derive(Debug)]
struct Code {
    /// Its first bytes without the reference count: they do not change while it lives.
    head: Head,
    name: Vec<u8>,
    instructions: (u64, u64),
    function: Arc<Function>,
    lines: Vec<Line>,
    /// The stack for which it was compared with memory.
    checked: u64,
}

/// Distinguishes a code object from another one at the same address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    /// The address of its instructions, or of the object that contains them.
    code: u64,
    /// The number of its code units, if it contains them itself.
    units: u64,
    filename: u64,
    qualname: u64,
    linetable: u64,
    first_line: u32,
}

impl Functions {
    /// The most functions to remember, and the bytes of all of them; then it starts over.
    const REMEMBERED: usize = 16_384;
    const BYTES: usize = 32 << 20;
    /// Longer texts are invalid.
    const CHARACTERS: u64 = 1 << 20;
    const NAME: usize = 256;
    const FILE: usize = 1024;
    const TABLE: usize = 64 << 10;
    /// Code units of a function, at most.
    const UNITS: u64 = 16 << 20;

    /// Starts another stack: known code objects are compared with memory again.
    pub(super) fn begin(&mut self) {
        self.stack += 1;
    }

    fn remember(&mut self, address: u64, code: Code) {
        if self.known.len() >= Self::REMEMBERED || self.bytes > Self::BYTES {
            self.known.clear();
            self.bytes = 0;
        }
        self.bytes += code.footprint();
        self.known.insert(address, code);
    }

    /// The frame at this instruction of the code object at `address`, in the form that the frame
    /// stores.
    pub(super) fn frame(
        &mut self,
        memory: &mut impl Memory,
        layout: &Layout,
        address: u64,
        instruction: u64,
    ) -> Option<PythonFrame> {
        let known = self.known.get(&address);
        if known.is_none_or(|known| known.checked != self.stack) {
            let head = Head::read(memory, layout, address)?;
            let name = text(memory, layout, head.qualname, Self::NAME)?;
            match self.known.get_mut(&address) {
                Some(known) if known.head == head && known.name == name.as_bytes() => {
                    known.checked = self.stack;
                }
                _ => {
                    let code = Code::read(memory, layout, head, name)?;
                    let checked = self.stack;
                    self.remember(address, Code { checked, ..code });
                }
            }
        }
        let code = self.known.get(&address)?;
        let (start, end) = code.instructions;
        let instruction = match layout.frame.instruction {
            Instruction::Address(_) => instruction,
            Instruction::Index { unit, .. } => {
                let bytes = i64::from(instruction as i32) * i64::from(unit);
                // Before the first one; the invalid index may be anything.
                start.checked_add_signed(bytes.max(-2))?
            }
        };
        // Right before the first one: the frame has not begun.
        if !(start.checked_sub(2)?..end).contains(&instruction) {
            return None;
        }
        Some(PythonFrame {
            function: Arc::clone(&code.function),
            line: code.line(instruction.saturating_sub(start) / 2),
        })
    }

    /// The addresses of a code object's instructions, if it was read for this stack.
    pub(super) fn instructions(&self, code: u64) -> Option<Range<u64>> {
        let (start, end) = self.known.get(&code)?.instructions;
        Some(start..end)
    }
}

impl Function {
    /// Whether it is an internal one, between a class and its `__init__`.
    pub(super) fn is_shim(&self) -> bool {
        self.first_line == 0 && self.name == self.file
    }
}

impl Head {
    fn read(memory: &mut impl Memory, layout: &Layout, address: u64) -> Option<Self> {
        let mut bytes = [0; CODE_SIZE];
        let count = memory.read(address, &mut bytes);
        let bytes = bytes.get(..count)?;
        let fields = &layout.code;
        let (code, units) = match fields.instructions {
            // PyVarObject.ob_size: code units, of two bytes each.
            Instructions::Inside(at) => (address.checked_add(at.into())?, word_at(bytes, 16)?),
            Instructions::Bytes(at) => (word_at(bytes, at)?, 0),
        };
        Some(Self {
            code,
            units,
            filename: word_at(bytes, fields.filename)?,
            qualname: word_at(bytes, fields.qualname)?,
            linetable: word_at(bytes, fields.linetable)?,
            first_line: word_at(bytes, fields.firstlineno)? as u32,
        })
    }
}

impl Code {
    fn read(memory: &mut impl Memory, layout: &Layout, head: Head, name: String) -> Option<Self> {
        let (start, units) = match layout.code.instructions {
            Instructions::Inside(_) => (head.code, head.units),
            Instructions::Bytes(_) => (
                head.code.checked_add(32)?,
                word(memory, head.code.checked_add(16)?)? / 2,
            ),
        };
        (1..=Functions::UNITS).contains(&units).then_some(())?;
        let file = text(memory, layout, head.filename, Functions::FILE)?;
        let size = word(memory, head.linetable.checked_add(16)?)?;
        let size = usize::try_from(size).ok()?.min(Functions::TABLE);
        let mut table = vec![0; size];
        let count = memory.read(head.linetable.checked_add(32)?, &mut table);
        table.truncate(count);
        Some(Self {
            head,
            name: name.clone().into_bytes(),
            instructions: (start, start.checked_add(units * 2)?),
            function: Arc::new(Function {
                name,
                file,
                first_line: head.first_line,
            }),
            lines: layout.code.lines.lines(&table, head.first_line, units),
            checked: 0,
        })
    }

    /// Bytes of memory that it uses.
    fn footprint(&self) -> usize {
        let texts = 2 * self.name.capacity() + self.function.file.capacity();
        size_of::<Self>() + texts + self.lines.capacity() * size_of::<Line>()
    }

    fn line(&self, unit: u64) -> Option<u32> {
        let at = self.lines.partition_point(|line| line.end <= unit);
        self.lines.get(at)?.line
    }
}

/// The text of a `str`, up to `limit` bytes.
fn text(memory: &mut impl Memory, layout: &Layout, address: u64, limit: usize) -> Option<String> {
    let mut head = [0; 40];
    let count = memory.read(address, &mut head);
    let head = head.get(..count)?;
    let length = word_at(head, 16).filter(|&length| length <= Functions::CHARACTERS)?;
    let state = u32::from_le_bytes(
        *head
            .get(usize::from(layout.strings.state)..)?
            .first_chunk()?,
    );
    // `interned` has two bits up to 3.11, 3.12 and 3.13, then the kind has three.
    let (kind, compact, ascii) = (state >> 2 & 7, state >> 5 & 1 == 1, state >> 6 & 1 == 1);
    if !compact || !matches!(kind, 1 | 2 | 4) {
        return None;
    }
    let start = match ascii {
        true => layout.strings.ascii,
        false => layout.strings.compact,
    };
    let size = length.checked_mul(kind.into())?;
    let size = usize::try_from(size).ok()?.min(limit);
    let mut bytes = vec![0; size];
    if memory.read(address.checked_add(start.into())?, &mut bytes) < size {
        return None;
    }
    let unit = kind as usize;
    let characters = bytes.chunks_exact(unit).map(|it| {
        let code = it
            .iter()
            .rev()
            .fold(0, |code, &byte| code << 8 | u32::from(byte));
        char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
    });
    Some(characters.collect())
}
