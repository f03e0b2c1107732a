//! Code objects: the names, files and lines of functions.

use std::sync::Arc;

use crate::Memory;
use rustc_hash::FxHashMap;

use super::layout::{CODE_SIZE, Layout};
use crate::read::{word, word_at};

/// A Python function.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Function {
    /// Its qualified name.
    pub name: String,
    /// The file of its source, as the interpreter knows it.
    pub file: String,
    /// Where it begins in that.
    pub first_line: u32,
}

/// A Python function that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PythonFrame {
    /// The function.
    pub function: Arc<Function>,
    /// The line in it, if it is known.
    pub line: Option<u32>,
    /// Where the instructions of its code are in memory.
    pub instructions: (u64, u64),
}

/// What was read of the code objects of a process.
#[derive(Debug, Default)]
pub struct Functions {
    known: FxHashMap<u64, Code>,
    /// Counts the stacks.
    stack: u64,
}

/// A code object.
#[derive(Debug)]
struct Code {
    /// Its first bytes without its count of references: they do not change as long as it lives.
    head: Head,
    name: Vec<u8>,
    function: Arc<Function>,
    lines: Vec<Line>,
    /// The stack for which it was compared with memory.
    checked: u64,
}

/// What tells a code object from another one at the same address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    size: u64,
    filename: u64,
    qualname: u64,
    linetable: u64,
    first_line: u32,
}

/// Instructions of one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Line {
    /// Where they end, in code units.
    end: u64,
    line: Option<u32>,
}

impl Functions {
    /// Functions to remember before starting over.
    const REMEMBERED: usize = 16_384;
    /// Longer texts are none.
    const CHARACTERS: u64 = 1 << 20;
    const NAME: usize = 256;
    const FILE: usize = 1024;
    const TABLE: usize = 64 << 10;
    /// Code units of a function, at most.
    const UNITS: u64 = 16 << 20;

    /// Another stack begins: what is known is compared with memory once more.
    pub(super) fn begin(&mut self) {
        self.stack += 1;
        if self.known.len() > Self::REMEMBERED {
            self.known.clear();
        }
    }

    /// The frame that is at this instruction of the code object at `address`.
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
                    self.known.insert(address, Code { checked, ..code });
                }
            }
        }
        let code = self.known.get(&address)?;
        let start = address.checked_add(layout.code.instructions.into())?;
        let end = start.checked_add(code.head.size.checked_mul(2)?)?;
        // Right before the first one: the frame has not begun.
        if !(start.checked_sub(2)?..end).contains(&instruction) {
            return None;
        }
        Some(PythonFrame {
            function: Arc::clone(&code.function),
            line: code.line(instruction.saturating_sub(start) / 2),
            instructions: (start, end),
        })
    }
}

impl Function {
    /// Whether it is the interpreter's own, between a class and its `__init__`.
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
        // PyVarObject.ob_size: code units, of two bytes each.
        let size = word_at(bytes, 16)?;
        let known = (1..=Functions::UNITS).contains(&size);
        known.then_some(())?;
        Some(Self {
            size,
            filename: word_at(bytes, fields.filename)?,
            qualname: word_at(bytes, fields.qualname)?,
            linetable: word_at(bytes, fields.linetable)?,
            first_line: word_at(bytes, fields.firstlineno)? as u32,
        })
    }
}

impl Code {
    fn read(memory: &mut impl Memory, layout: &Layout, head: Head, name: String) -> Option<Self> {
        let file = text(memory, layout, head.filename, Functions::FILE)?;
        let size = word(memory, head.linetable.checked_add(16)?)?;
        let size = usize::try_from(size).ok()?.min(Functions::TABLE);
        let mut table = vec![0; size];
        let count = memory.read(head.linetable.checked_add(32)?, &mut table);
        table.truncate(count);
        Some(Self {
            head,
            name: name.clone().into_bytes(),
            function: Arc::new(Function {
                name,
                file,
                first_line: head.first_line,
            }),
            lines: lines(&table, head.first_line),
            checked: 0,
        })
    }

    fn line(&self, unit: u64) -> Option<u32> {
        let at = self.lines.partition_point(|line| line.end <= unit);
        self.lines.get(at)?.line
    }
}

/// The text of a `str`, as far as `limit` bytes go.
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

/// The lines of a location table (Objects/locations.md in CPython): for each entry its code units
/// and how far its line is from that of the one before.
fn lines(table: &[u8], first: u32) -> Vec<Line> {
    let (mut lines, mut end, mut line) = (Vec::new(), 0, i64::from(first));
    let mut bytes = table.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        let kind = byte >> 3 & 15;
        let mut number = || {
            let (mut value, mut shift) = (0_u64, 0);
            for byte in bytes.by_ref() {
                value |= u64::from(byte & 63).checked_shl(shift).unwrap_or(0);
                shift += 6;
                if byte & 64 == 0 {
                    break;
                }
            }
            value as i64
        };
        let delta = match kind {
            13 | 14 => match number() {
                odd if odd & 1 == 1 => -(odd >> 1),
                even => even >> 1,
            },
            10..=12 => i64::from(kind) - 10,
            _ => 0,
        };
        line = line.saturating_add(delta);
        end += u64::from(byte & 7) + 1;
        // The columns are of no use here.
        while bytes.next_if(|&byte| byte & 128 == 0).is_some() {}
        lines.push(Line {
            end,
            line: (kind != 15).then(|| u32::try_from(line).ok()).flatten(),
        });
    }
    lines
}
