//! Code objects: the names, files and lines of functions.

use std::ops::Range;
use std::sync::Arc;

use prof_model::{Account, Charge};
use rustc_hash::FxHashMap;

use super::layout::{CODE_SIZE, Instruction, Instructions, PythonLayout};
use super::lines::CodeLine;
use super::text::Text;
use crate::Memory;
use crate::bounded_map::entry;
use crate::known_functions::MOST_NEW;
use crate::read::{word, word_at};
use crate::stack::{Function, InterpretedFrame, Unknown};

/// The code objects of a process that were read. When there is no room for more, it starts over
/// with the next stack.
#[derive(Debug)]
pub(super) struct Functions {
    known: FxHashMap<u64, Code>,
    charge: Charge,
    is_full: bool,
    /// Counts the stacks.
    stack: u64,
    /// Code objects of this stack that were not compared with memory yet.
    unchecked: Vec<u64>,
    /// The bytes of those that were unknown before it.
    new_bytes: usize,
}

impl Default for Functions {
    fn default() -> Self {
        Self::new(&Account::default())
    }
}

/// A code object.
#[derive(Debug)]
struct Code {
    /// Its first bytes without the reference count: they do not change while it lives.
    head: Head,
    name: Text,
    instructions: (u64, u64),
    function: Arc<Function>,
    lines: Vec<CodeLine>,
    /// The last stack that it is on.
    stack: u64,
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
    const NAME: usize = 256;
    const FILE: usize = 1024;
    const TABLE: usize = 64 << 10;
    /// Code units of a function, at most.
    const UNITS: u64 = 16 << 20;
    /// Code objects to compare with memory at once: each is two ranges of it, of 1,024 at most.
    const AT_ONCE: usize = 256;

    pub(super) fn new(account: &Account) -> Self {
        Self {
            known: FxHashMap::default(),
            charge: account.for_cache(),
            is_full: false,
            stack: 0,
            unchecked: Vec::new(),
            new_bytes: 0,
        }
    }

    /// Starts another stack, for which [`are_current`](Self::are_current) compares known code
    /// objects with memory again.
    pub(super) fn begin(&mut self) {
        self.stack += 1;
        self.unchecked.clear();
        self.new_bytes = 0;
        if std::mem::take(&mut self.is_full) {
            // An empty map would keep its memory.
            self.known = FxHashMap::default();
            self.charge.clear();
        }
    }

    /// The bytes of the code objects that were read for this stack.
    pub(super) fn new_bytes(&self) -> usize {
        self.new_bytes
    }

    /// Whether the known code objects that were used for this stack are still those in memory;
    /// those that are not are known no more. All are compared at once: to read each alone would
    /// take most of the time of a stack.
    pub(super) fn are_current(&mut self, memory: &mut impl Memory, layout: &PythonLayout) -> bool {
        let unchecked = std::mem::take(&mut self.unchecked);
        let mut outdated = Vec::new();
        for some in unchecked.chunks(Self::AT_ONCE) {
            let known = |address: &u64| self.known.get(address);
            let ranges = some.iter().filter_map(|address| {
                let code = known(address)?;
                let name = code.head.qualname..code.head.qualname.checked_add(code.name.end())?;
                Some([*address..address.checked_add(CODE_SIZE as u64)?, name])
            });
            let ranges: Vec<_> = ranges.flatten().collect();
            let length = |range: &Range<u64>| (range.end - range.start) as usize;
            let mut bytes = vec![0; ranges.iter().map(length).sum()];
            let count = memory.read_ranges(&ranges, &mut bytes);
            let mut rest = bytes.get(..count).unwrap_or_default();
            outdated.extend(some.iter().filter(|&address| {
                let is_same = known(address).and_then(|code| {
                    let (head, after) = rest.split_at_checked(CODE_SIZE)?;
                    let (name, after) = after.split_at_checked(code.name.end() as usize)?;
                    rest = after;
                    let head = Head::of(head, layout, *address)?;
                    Some(head == code.head && code.name.matches(name, layout))
                });
                is_same != Some(true)
            }));
        }
        for address in &outdated {
            if let Some(code) = self.known.remove(address) {
                self.charge.subtract(code.footprint());
            }
        }
        outdated.is_empty()
    }

    fn remember(&mut self, address: u64, code: Code) {
        let bytes = code.footprint();
        self.new_bytes += bytes;
        self.is_full |= !self.charge.add(bytes);
        self.known.insert(address, code);
    }

    /// The frame at this instruction of the code object at `address`, in the form that the frame
    /// stores.
    pub(super) fn frame(
        &mut self,
        memory: &mut impl Memory,
        layout: &PythonLayout,
        address: u64,
        instruction: u64,
    ) -> Result<InterpretedFrame, Unknown> {
        match self.known.get_mut(&address) {
            Some(known) if known.stack == self.stack => {}
            Some(known) => {
                known.stack = self.stack;
                self.unchecked.push(address);
            }
            None if self.new_bytes > MOST_NEW => return Err(Unknown::TooManyNew),
            None => {
                let code = Code::read(memory, layout, address).ok_or(Unknown::Inconsistent)?;
                let stack = self.stack;
                self.remember(address, Code { stack, ..code });
            }
        }
        let code = self.known.get(&address);
        let frame = code.and_then(|code| code.frame(layout, instruction));
        frame.ok_or(Unknown::Inconsistent)
    }

    /// The addresses of a code object's instructions, if it was read for this stack.
    pub(super) fn instructions(&self, code: u64) -> Option<Range<u64>> {
        let (start, end) = self.known.get(&code)?.instructions;
        Some(start..end)
    }
}

impl Head {
    fn read(memory: &mut impl Memory, layout: &PythonLayout, address: u64) -> Option<Self> {
        let mut bytes = [0; CODE_SIZE];
        let count = memory.read(address, &mut bytes);
        Self::of(bytes.get(..count)?, layout, address)
    }

    fn of(bytes: &[u8], layout: &PythonLayout, address: u64) -> Option<Self> {
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
    fn read(memory: &mut impl Memory, layout: &PythonLayout, address: u64) -> Option<Self> {
        let head = Head::read(memory, layout, address)?;
        let name = Text::read(memory, layout, head.qualname, Functions::NAME)?;
        let (start, units) = match layout.code.instructions {
            Instructions::Inside(_) => (head.code, head.units),
            Instructions::Bytes(_) => (
                head.code.checked_add(32)?,
                word(memory, head.code.checked_add(16)?)? / 2,
            ),
        };
        (1..=Functions::UNITS).contains(&units).then_some(())?;
        let file = Text::read(memory, layout, head.filename, Functions::FILE)?;
        let size = word(memory, head.linetable.checked_add(16)?)?;
        let size = usize::try_from(size).ok()?.min(Functions::TABLE);
        let mut table = vec![0; size];
        let count = memory.read(head.linetable.checked_add(32)?, &mut table);
        table.truncate(count);
        Some(Self {
            head,
            instructions: (start, start.checked_add(units * 2)?),
            function: Arc::new(Function {
                name: name.decoded(),
                file: file.decoded(),
                first_line: head.first_line,
            }),
            name,
            lines: layout.code.lines.lines(&table, head.first_line, units),
            stack: 0,
        })
    }

    /// The frame at this instruction, in the form that the frame stores.
    fn frame(&self, layout: &PythonLayout, instruction: u64) -> Option<InterpretedFrame> {
        let (start, end) = self.instructions;
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
        Some(InterpretedFrame {
            function: Arc::clone(&self.function),
            line: self.line(instruction.saturating_sub(start) / 2),
        })
    }

    /// Bytes of memory that it uses.
    fn footprint(&self) -> usize {
        let texts = self.name.footprint() + self.function.name.capacity();
        let texts = texts + self.function.file.capacity();
        entry::<u64, Self>()
            + size_of::<Function>()
            + texts
            + self.lines.capacity() * size_of::<CodeLine>()
    }

    fn line(&self, unit: u64) -> Option<u32> {
        let at = self.lines.partition_point(|line| line.end <= unit);
        self.lines.get(at)?.line
    }
}
