//! Frames: from a thread state to functions, files and lines.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::PythonError;
use super::layout::{CodeBytes, CurrentFrame, EntryMark};
use super::lines;
use super::object::Objects;
use crate::memory::Memory;

/// No stack has more frames.
pub const FRAME_LIMIT: usize = 16_384;

/// A frame of a Python function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Where it is: a `PyFrameObject`, or a `_PyInterpreterFrame` from CPython 3.11 on.
    pub address: u64,
    /// What it runs.
    pub code: Arc<Code>,
    /// How many bytes after the begin of the code its last instruction is; negative if it has not
    /// begun.
    pub instruction: i64,
    /// The line of that instruction. Some have none.
    pub line: Option<u32>,
    /// Whether it is the outermost frame of its activation of the evaluation loop.
    pub is_entry: bool,
}

/// A code object: a function, a class body, a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// Where the object is.
    pub address: u64,
    /// Its qualified name (`Class.method`), or its name up to CPython 3.10. Cut after 1,024
    /// characters.
    pub name: String,
    /// Its file as the compiler was given it. Cut after 4,096 characters.
    pub file: String,
    /// The line where it begins.
    pub first_line: i32,
    /// The address of its first instruction.
    pub instructions: u64,
    /// The bytes of its instructions.
    pub length: u64,
    line_table: Vec<u8>,
}

impl<M: Memory> Objects<'_, M> {
    /// The frames of the thread whose state is there, innermost first.
    pub(super) fn frames(&mut self, thread_state: u64) -> Result<Vec<Frame>, PythonError> {
        let mut address = self.current_frame(thread_state)?;
        let mut frames: Vec<Frame> = Vec::new();
        let (mut seen, mut codes) = (FxHashSet::default(), FxHashMap::default());
        while address != 0 {
            // Those of the C stack count as well.
            if seen.len() >= 2 * FRAME_LIMIT || frames.len() >= FRAME_LIMIT || !seen.insert(address)
            {
                return Err(PythonError::Endless);
            }
            if self.is_of_c_stack(address)? {
                if let Some(last) = frames.last_mut() {
                    last.is_entry = true;
                }
            } else {
                frames.push(self.frame(address, &mut codes)?);
            }
            let previous = address.wrapping_add(self.layout.frame_previous);
            address = self.reader.word(previous)?;
        }
        Ok(frames)
    }

    fn current_frame(&mut self, thread_state: u64) -> Result<u64, PythonError> {
        let (base, field) = match self.layout.current_frame {
            CurrentFrame::Direct(field) => (thread_state, field),
            CurrentFrame::CFrame { cframe, current } => {
                let cframe = self.reader.word(thread_state.wrapping_add(cframe))?;
                if cframe == 0 {
                    return Ok(0);
                }
                (cframe, current)
            }
        };
        Ok(self.reader.word(base.wrapping_add(field))?)
    }

    /// Whether this is no frame of a function, but marks where the evaluation loop was entered.
    fn is_of_c_stack(&mut self, frame: u64) -> Result<bool, PythonError> {
        /// `FRAME_OWNED_BY_CSTACK`
        const C_STACK: u8 = 3;
        let EntryMark::Owner(field) = self.layout.entry_mark else {
            return Ok(false);
        };
        let [owner] = self.reader.bytes(frame.wrapping_add(field))?;
        Ok(owner == C_STACK)
    }

    fn frame(
        &mut self,
        address: u64,
        codes: &mut FxHashMap<u64, Arc<Code>>,
    ) -> Result<Frame, PythonError> {
        let at = |offset: u64| address.wrapping_add(offset);
        let object = self.reader.word(at(self.layout.frame_code))?;
        let code = match codes.get(&object) {
            Some(code) => Arc::clone(code),
            None => {
                let code = Arc::new(self.code(object)?);
                codes.insert(object, Arc::clone(&code));
                code
            }
        };
        let instruction = self.instruction(address, &code)?;
        let is_entry = match self.layout.entry_mark {
            EntryMark::EachFrame => true,
            EntryMark::IsEntry(field) => self.reader.bytes(at(field))? == [1],
            EntryMark::Owner(_) => false,
        };
        let (table, first) = (&code.line_table, code.first_line);
        let line = lines::line(self.layout.line_format, table, first, instruction);
        Ok(Frame {
            address,
            code,
            instruction,
            line,
            is_entry,
        })
    }

    /// How far a frame is in its code, which it must not be outside of.
    fn instruction(&mut self, frame: u64, code: &Code) -> Result<i64, PythonError> {
        let field = frame.wrapping_add(self.layout.frame_instruction);
        let (instruction, unit) = match self.layout.code_bytes {
            CodeBytes::Object { unit, .. } => (i64::from(self.reader.int(field)?) * unit, unit),
            CodeBytes::Inline(_) => {
                let address = self.reader.word(field)?;
                (address.wrapping_sub(code.instructions).cast_signed(), 2)
            }
        };
        // One unit before the first is where a frame stands that has not begun.
        let is_inside = instruction >= -unit
            && u64::try_from(instruction).unwrap_or(0) < code.length
            && instruction % unit == 0;
        match is_inside {
            true => Ok(instruction),
            false => Err(PythonError::OutsideCode(frame)),
        }
    }

    fn code(&mut self, address: u64) -> Result<Code, PythonError> {
        const NAME_LIMIT: usize = 1024;
        const FILE_LIMIT: usize = 4096;
        self.check_code(address)?;
        let layout = self.layout;
        let at = |offset: u64| address.wrapping_add(offset);
        let name = self
            .reader
            .word(at(layout.code_qualname.unwrap_or(layout.code_name)))?;
        let file = self.reader.word(at(layout.code_filename))?;
        let table = self.reader.word(at(layout.code_linetable))?;
        let (length, instructions) = match layout.code_bytes {
            CodeBytes::Object { field, .. } => {
                let object = self.reader.word(at(field))?;
                self.bytes_at(object)?
            }
            CodeBytes::Inline(field) => {
                let units = self.reader.word(at(layout.object_size))?;
                (units.saturating_mul(2), at(field))
            }
        };
        Ok(Code {
            address,
            name: self.text(name, NAME_LIMIT)?,
            file: self.text(file, FILE_LIMIT)?,
            first_line: self.reader.int(at(layout.code_firstlineno))?,
            instructions,
            length,
            line_table: self.bytes(table)?,
        })
    }
}
