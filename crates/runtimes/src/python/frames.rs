//! The frames of a thread.

use std::ops::Range;

use crate::Memory;

use super::code::{Functions, PythonFrame};
use super::layout::{Entry, FRAME_SIZE, Layout, OWNED_BY_C_STACK};
use crate::read::{word, word_at};

/// An interpreter in a process.
#[derive(Clone, Debug)]
pub struct Interpreter {
    runtime: u64,
    /// `None` if the version is not known.
    layout: Option<Layout>,
    evaluation: Vec<Range<u64>>,
}

/// The Python frames of a thread, innermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PythonStack {
    /// All frames, those of one activation after those of the one that it was called by.
    pub frames: Vec<PythonFrame>,
    /// The activations of the evaluation loop.
    pub activations: Vec<Activation>,
}

/// One activation of the evaluation loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activation {
    /// The address of the structure that it keeps on the native stack.
    pub anchor: u64,
    /// Where its frames end in [`PythonStack::frames`].
    pub end: usize,
}

/// Why no Python frames are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// The version is not known.
    Version,
    /// No thread state is that of the thread.
    NoThread,
    /// The frames lead nowhere, or are no frames.
    Inconsistent,
    /// More frames than are read.
    TooDeep,
}

impl Interpreter {
    /// Frames of one stack, at most.
    const FRAMES: usize = 16_384;
    /// Interpreters of a process and threads of all of them that are looked at.
    const INTERPRETERS: usize = 256;
    const THREADS: usize = 4_096;

    /// The interpreter of a process, by its `Py_Version`, and where `_PyRuntime` and the evaluation
    /// loop are in memory.
    pub fn new(
        version: u32,
        runtime: u64,
        evaluation: Vec<Range<u64>>,
        memory: &mut impl Memory,
    ) -> Self {
        Self {
            runtime,
            layout: Layout::of(version, runtime, memory),
            evaluation,
        }
    }

    /// One of which nothing is known but where its evaluation loop is.
    pub(super) fn unknown(evaluation: Vec<Range<u64>>) -> Self {
        Self {
            runtime: 0,
            layout: None,
            evaluation,
        }
    }

    /// Whether its frames can be read: whether its version is known.
    pub fn is_readable(&self) -> bool {
        self.layout.is_some()
    }

    /// Whether the evaluation loop is at this address.
    pub fn evaluates_at(&self, address: u64) -> bool {
        self.evaluation.iter().any(|range| range.contains(&address))
    }

    /// The thread state of the thread that the kernel calls `tid`, which is mostly at `known`.
    pub fn thread_state(
        &self,
        memory: &mut impl Memory,
        tid: u64,
        known: Option<u64>,
    ) -> Option<u64> {
        let layout = self.layout.as_ref()?;
        let is_it = |memory: &mut _, thread: u64| {
            let at = thread.checked_add(layout.native_thread_id.into());
            at.and_then(|at| word(memory, at)) == Some(tid)
        };
        if let Some(known) = known.filter(|&known| is_it(memory, known)) {
            return Some(known);
        }
        let mut left = Self::THREADS;
        let at = self.runtime.checked_add(layout.interpreters.into())?;
        let mut interpreter = word(memory, at)?;
        for _ in 0..Self::INTERPRETERS {
            if interpreter == 0 {
                return None;
            }
            let at = interpreter.checked_add(layout.threads.into())?;
            let mut thread = word(memory, at)?;
            while thread != 0 {
                if is_it(memory, thread) {
                    return Some(thread);
                }
                left = left.checked_sub(1)?;
                let at = thread.checked_add(layout.next_thread.into())?;
                thread = word(memory, at)?;
            }
            let at = interpreter.checked_add(layout.next_interpreter.into())?;
            interpreter = word(memory, at)?;
        }
        None
    }

    /// The frames of a thread by its state.
    ///
    /// # Errors
    ///
    /// What is in memory does not make a stack, or the version is not known.
    pub fn stack(
        &self,
        memory: &mut impl Memory,
        thread: u64,
        functions: &mut Functions,
    ) -> Result<PythonStack, Unknown> {
        let layout = self.layout.as_ref().ok_or(Unknown::Version)?;
        let current = layout.current(memory, thread);
        let (mut address, mut cframe) = current.ok_or(Unknown::Inconsistent)?;
        let mut stack = PythonStack::default();
        functions.begin();
        let mut block = Block::default();
        for _ in 0..Self::FRAMES {
            if address == 0 {
                return stack.closed();
            }
            let frame = (block.frame(memory, address)).ok_or(Unknown::Inconsistent)?;
            let fields = &layout.frame;
            let field = |offset| word_at(&frame, offset).ok_or(Unknown::Inconsistent);
            let owner = frame.get(usize::from(fields.owner)).copied();
            if layout.entry == Entry::OnStack && owner == Some(OWNED_BY_C_STACK) {
                stack.close(address)?;
                cframe = None;
            } else {
                let code = field(fields.code)?;
                let instruction = field(fields.instruction)?;
                let frame = functions.frame(memory, layout, code, instruction);
                let frame = frame.ok_or(Unknown::Inconsistent)?;
                if !frame.function.is_shim() {
                    stack.frames.push(frame);
                }
            }
            if let Entry::Flag(at) = layout.entry
                && frame.get(usize::from(at)).is_some_and(|&flag| flag != 0)
            {
                let anchor = cframe.ok_or(Unknown::Inconsistent)?;
                stack.close(anchor)?;
                cframe = layout.previous_cframe(memory, anchor);
            }
            address = field(fields.previous)?;
        }
        Err(Unknown::TooDeep)
    }
}

impl PythonStack {
    /// The frames of an activation are complete.
    fn close(&mut self, anchor: u64) -> Result<(), Unknown> {
        let last = self.activations.last();
        // A stack grows down; an activation without a frame is one that begins or ends.
        if last.is_some_and(|last| last.anchor >= anchor || last.end >= self.frames.len())
            || self.frames.is_empty()
        {
            return Err(Unknown::Inconsistent);
        }
        let end = self.frames.len();
        self.activations.push(Activation { anchor, end });
        Ok(())
    }

    /// The stack, if all frames belong to an activation.
    fn closed(self) -> Result<Self, Unknown> {
        match self.activations.last().map_or(0, |last| last.end) == self.frames.len() {
            true => Ok(self),
            false => Err(Unknown::Inconsistent),
        }
    }

    /// The frames of the activation of this number.
    pub fn of_activation(&self, number: usize) -> &[PythonFrame] {
        let end = |number: usize| self.activations.get(number).map(|it| it.end);
        let start = number.checked_sub(1).and_then(end).unwrap_or(0);
        let end = end(number).unwrap_or(start);
        self.frames.get(start..end).unwrap_or_default()
    }
}

/// Frames stand one after the other in larger pieces of memory, the callers at lower addresses.
#[derive(Default)]
struct Block {
    start: u64,
    bytes: Vec<u8>,
}

impl Block {
    const SIZE: u64 = 4096;

    fn frame(&mut self, memory: &mut impl Memory, address: u64) -> Option<[u8; FRAME_SIZE]> {
        if let Some(frame) = self.find(address) {
            return Some(frame);
        }
        let page = address & !(Self::SIZE - 1);
        let length = (address - page) as usize + FRAME_SIZE;
        self.bytes.resize(length, 0);
        self.start = page;
        let count = memory.read(page, &mut self.bytes);
        self.bytes.truncate(count);
        self.find(address)
    }

    fn find(&self, address: u64) -> Option<[u8; FRAME_SIZE]> {
        let at = usize::try_from(address.checked_sub(self.start)?).ok()?;
        self.bytes.get(at..)?.first_chunk().copied()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::super::layout::{V3_11, V3_12};
    use super::*;

    /// Memory of a program, by pages.
    #[derive(Default)]
    struct Pages(HashMap<u64, Vec<u8>>);

    impl Pages {
        const SIZE: u64 = 4096;

        fn write(&mut self, address: u64, bytes: &[u8]) {
            for (address, &byte) in (address..).zip(bytes) {
                let page = self.0.entry(address / Self::SIZE);
                let page = page.or_insert_with(|| vec![0; Self::SIZE as usize]);
                page[(address % Self::SIZE) as usize] = byte;
            }
        }

        fn word(&mut self, address: u64, value: u64) {
            self.write(address, &value.to_le_bytes());
        }

        fn text(&mut self, address: u64, text: &str) {
            self.word(address + 16, text.len() as u64);
            // Of one byte each, compact, ASCII.
            self.write(address + 32, &(1_u32 << 2 | 1 << 5 | 1 << 6).to_le_bytes());
            self.write(address + 40, text.as_bytes());
        }

        /// A code object of ten instructions from line 7 on, two on each line.
        fn code(&mut self, address: u64, name: &str) {
            self.word(address + 16, 10);
            self.write(address + 68, &7_u32.to_le_bytes());
            self.word(address + 112, address + 512);
            self.word(address + 128, address + 768);
            self.word(address + 136, address + 1024);
            self.text(address + 512, "/x/y.py");
            self.text(address + 768, name);
            let table: Vec<u8> = (0..5).flat_map(|_| [0x80 | 13 << 3 | 1, 2]).collect();
            self.word(address + 1024 + 16, table.len() as u64);
            self.write(address + 1024 + 32, &table);
        }

        fn frame(&mut self, address: u64, code: u64, previous: u64, unit: u64) {
            self.word(address, code);
            self.word(address + 8, previous);
            self.word(address + 56, code + 192 + 2 * unit);
        }

        fn entry_frame(&mut self, address: u64, previous: u64) {
            self.word(address + 8, previous);
            self.write(address + 70, &[OWNED_BY_C_STACK]);
        }

        /// A thread 77 whose innermost frame this is.
        fn thread(&mut self, frame: u64) {
            self.word(RUNTIME + 40, 0x2000);
            self.word(0x2000 + 72, THREAD);
            self.word(THREAD + 144, 77);
            self.word(THREAD + 56, 0x4000);
            self.word(0x4000, frame);
        }
    }

    impl Memory for Pages {
        fn read(&mut self, address: u64, buffer: &mut [u8]) -> usize {
            for (count, byte) in buffer.iter_mut().enumerate() {
                let Some(at) = address.checked_add(count as u64) else {
                    return count;
                };
                match self.0.get(&(at / Self::SIZE)) {
                    Some(page) => *byte = page[(at % Self::SIZE) as usize],
                    None => return count,
                }
            }
            buffer.len()
        }
    }

    const RUNTIME: u64 = 0x1000;
    const THREAD: u64 = 0x3000;

    fn interpreter(layout: Layout) -> Interpreter {
        Interpreter {
            runtime: RUNTIME,
            layout: Some(layout),
            evaluation: Vec::new(),
        }
    }

    fn stack(memory: &mut Pages, functions: &mut Functions) -> Result<Vec<String>, Unknown> {
        let interpreter = interpreter(V3_12);
        let thread = interpreter.thread_state(memory, 77, None);
        let thread = thread.ok_or(Unknown::NoThread)?;
        let stack = interpreter.stack(memory, thread, functions)?;
        let named = (0..stack.activations.len()).map(|number| {
            let frames = stack.of_activation(number).iter();
            let named = frames.map(|it| format!("{}:{:?}", it.function.name, it.line));
            named.collect::<Vec<_>>().join(" ")
        });
        Ok(named.collect())
    }

    /// `g`, called by `f` through native code.
    fn program() -> Pages {
        let mut memory = Pages::default();
        memory.thread(0x8000);
        memory.code(0x1_0000, "A.g");
        memory.code(0x2_0000, "f");
        memory.frame(0x8000, 0x1_0000, 0x7000_0000, 3);
        memory.entry_frame(0x7000_0000, 0x8100);
        memory.frame(0x8100, 0x2_0000, 0x8200, 0);
        memory.frame(0x8200, 0x2_0000, 0x7000_1000, 9);
        memory.entry_frame(0x7000_1000, 0);
        memory
    }

    #[test]
    fn frames_belong_to_activations() {
        let frames = stack(&mut program(), &mut Functions::default());
        let expected = ["A.g:Some(9)", "f:Some(8) f:Some(12)"];
        assert_eq!(frames, Ok(expected.map(String::from).into()));
    }

    #[test]
    fn another_function_at_the_same_address_is_seen() {
        let (mut memory, mut functions) = (program(), Functions::default());
        let first = |memory: &mut Pages, functions: &mut Functions| {
            stack(memory, functions).map(|activations| activations[0].clone())
        };
        assert_eq!(first(&mut memory, &mut functions), Ok("A.g:Some(9)".into()));
        memory.text(0x1_0000 + 768, "B.h");
        assert_eq!(first(&mut memory, &mut functions), Ok("B.h:Some(9)".into()));
    }

    /// A change of the program, after which there is no stack.
    fn check(change: impl FnOnce(&mut Pages), expected: Unknown) {
        let mut memory = program();
        change(&mut memory);
        assert_eq!(stack(&mut memory, &mut Functions::default()), Err(expected));
    }

    #[test]
    fn hostile_memory_is_no_stack() {
        check(|it| it.word(RUNTIME + 40, 0), Unknown::NoThread);
        check(|it| it.word(RUNTIME + 40, u64::MAX), Unknown::NoThread);
        // Interpreters and threads that follow themselves.
        check(|it| it.word(THREAD + 144, 78), Unknown::NoThread);
        let cyclic = |it: &mut Pages| {
            it.word(THREAD + 144, 78);
            it.word(THREAD + 8, THREAD);
        };
        check(cyclic, Unknown::NoThread);
        let cyclic = |it: &mut Pages| {
            it.word(0x2000 + 72, 0);
            it.word(0x2000, 0x2000);
        };
        check(cyclic, Unknown::NoThread);
        // Frames that follow themselves, with and without an end of an activation.
        check(|it| it.word(0x8000 + 8, 0x8000), Unknown::TooDeep);
        let cyclic = |it: &mut Pages| it.word(0x7000_0000 + 8, 0x8000);
        check(cyclic, Unknown::Inconsistent);
        // An instruction outside of the code; code, and names, that are none.
        let outside = |it: &mut Pages| it.word(0x8000 + 56, 0x1_0000 + 192 + 20);
        check(outside, Unknown::Inconsistent);
        check(|it| it.word(0x8000, u64::MAX - 8), Unknown::Inconsistent);
        check(|it| it.word(0x1_0000 + 16, u64::MAX), Unknown::Inconsistent);
        let far = |it: &mut Pages| it.word(0x1_0000 + 128, u64::MAX - 3);
        check(far, Unknown::Inconsistent);
        let long = |it: &mut Pages| it.word(0x1_0000 + 768 + 16, u64::MAX);
        check(long, Unknown::Inconsistent);
        // An activation without frames, and frames without an activation.
        check(|it| it.word(0x4000, 0x7000_0000), Unknown::Inconsistent);
        check(|it| it.word(0x8200 + 8, 0), Unknown::Inconsistent);
    }

    #[test]
    fn long_texts_and_tables_are_cut() {
        let mut memory = program();
        for page in 0..300 {
            memory.write(0x2_0000 + 768 + 40 + page * 4096, b"a");
        }
        memory.word(0x2_0000 + 768 + 16, 1 << 20);
        memory.word(0x2_0000 + 1024 + 16, 1 << 40);
        let frames = stack(&mut memory, &mut Functions::default()).expect("a stack");
        assert!(frames[1].len() < 1024, "{frames:?}");
    }

    #[test]
    fn anchors_of_3_11_are_its_cframes() {
        let mut memory = Pages::default();
        memory.word(THREAD + 56, 0x7000_0000);
        memory.word(0x7000_0000 + 8, 0x8000);
        memory.word(0x7000_0000 + 16, 0x7000_1000);
        for (frame, previous, is_entry) in [(0x8000, 0x8100, 1), (0x8100, 0, 1)] {
            memory.word(frame + 32, 0x1_0000);
            memory.word(frame + 48, previous);
            memory.word(frame + 56, 0x1_0000 + 184);
            memory.write(frame + 68, &[is_entry]);
        }
        memory.code(0x1_0000, "");
        memory.write(0x1_0000 + 72, &7_u32.to_le_bytes());
        let interpreter = interpreter(V3_11);
        let stack = interpreter.stack(&mut memory, THREAD, &mut Functions::default());
        let stack = stack.expect("a stack");
        let anchors: Vec<_> = stack.activations.iter().map(|it| it.anchor).collect();
        assert_eq!(anchors, [0x7000_0000, 0x7000_1000]);
    }
}
