//! The frames of a thread.

use prof_model::Account;
use rustc_hash::FxHashMap;

use super::code::Functions;
use super::layout::{Entry, FrameLayout, Instruction, OWNED_BY_INTERPRETER, PythonLayout};
use super::threads::ThreadStates;
use super::versions::layout_of;
use crate::Memory;
use crate::native::{InterpreterThread, NativeStack};
use crate::read::{Block, word_at};
use crate::stack::{Function, InterpretedStack, Unknown};

/// Where the frames of an interpreter are.
#[derive(Clone, Debug)]
pub struct Interpreter {
    /// The address of `_PyRuntime`.
    runtime: u64,
    layout: PythonLayout,
}

/// What is remembered of the functions and threads of a process.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    functions: Functions,
    /// By the kernel's thread id.
    threads: FxHashMap<u64, ThreadStates>,
}

impl Cache {
    /// Threads to remember before starting over.
    const THREADS: usize = 4096;

    pub(crate) fn new(account: &Account) -> Self {
        Self {
            functions: Functions::new(account),
            threads: FxHashMap::default(),
        }
    }
}

impl Interpreter {
    /// Frames of one stack, at most.
    const FRAMES: usize = 16_384;

    /// That of a process, by its `Py_Version` and the address of `_PyRuntime`; `None` if the
    /// version is unknown.
    pub fn new(version: u32, runtime: u64, memory: &mut impl Memory) -> Option<Self> {
        let layout = layout_of(version, runtime, memory)?;
        Some(Self { runtime, layout })
    }

    /// The frames of the thread whose native stack this is.
    ///
    /// # Errors
    ///
    /// The memory does not form a stack.
    pub(crate) fn stack(
        &self,
        memory: &mut impl Memory,
        thread: InterpreterThread,
        native: &NativeStack<'_>,
        cache: &mut Cache,
    ) -> Result<InterpretedStack, Unknown> {
        if cache.threads.len() >= Cache::THREADS {
            cache.threads.clear();
        }
        let (layout, runtime) = (&self.layout, self.runtime);
        let known = cache.threads.remove(&thread.tid);
        let known = known.filter(|it| it.are_current(layout, runtime, memory));
        let find = || ThreadStates::find(layout, runtime, memory, thread, native.start);
        let states = known.or_else(find);
        let states = states.ok_or(Unknown::NoThread)?;
        let stack = self.stack_of_states(memory, &states, native, &mut cache.functions);
        // A new thread has the id of its parent in its state for a moment: states that lead to no
        // stack are looked for again.
        if stack.is_ok() {
            cache.threads.insert(thread.tid, states);
        }
        stack
    }

    /// The frames of a thread, from its states; those with frames share the native stack.
    fn stack_of_states(
        &self,
        memory: &mut impl Memory,
        states: &ThreadStates,
        native: &NativeStack<'_>,
        functions: &mut Functions,
    ) -> Result<InterpretedStack, Unknown> {
        let layout = &self.layout;
        functions.begin();
        let mut stack = Self::assemble(layout, memory, states, native, functions);
        if !functions.are_current(memory, layout) {
            // Other code objects are in the place of known ones.
            stack = Self::assemble(layout, memory, states, native, functions);
        }
        let new_bytes = functions.new_bytes();
        Ok(InterpretedStack {
            new_bytes,
            ..stack?
        })
    }

    fn assemble(
        layout: &PythonLayout,
        memory: &mut impl Memory,
        states: &ThreadStates,
        native: &NativeStack<'_>,
        functions: &mut Functions,
    ) -> Result<InterpretedStack, Unknown> {
        let mut stacks = Vec::new();
        for &state in &states.addresses {
            let mut stack = stack_of(layout, memory, state, functions)?;
            if layout.entry == Entry::Each {
                stack.place(native)?;
            }
            stacks.push(stack);
        }
        stacks.retain(|stack| !stack.activations.is_empty());
        // An interpreter that another one runs is further in.
        stacks.sort_by_key(|stack| stack.activations.first().map(|it| it.anchor));
        let mut stacks = stacks.into_iter();
        let mut whole = stacks.next().unwrap_or_default();
        stacks.try_for_each(|outer| whole.append(outer))?;
        Ok(whole)
    }
}

/// The frames that a thread state leads to.
fn stack_of(
    layout: &PythonLayout,
    memory: &mut impl Memory,
    state: u64,
    functions: &mut Functions,
) -> Result<InterpretedStack, Unknown> {
    let current = layout.current(memory, state);
    let (mut address, mut cframe) = current.ok_or(Unknown::Inconsistent)?;
    let mut stack = InterpretedStack::default();
    let mut block = Block::default();
    for _ in 0..Interpreter::FRAMES {
        if address == 0 {
            return stack.closed();
        }
        let bytes = block.bytes(memory, address, layout.frame.size);
        let frame = bytes.and_then(|bytes| Frame::of(bytes, &layout.frame));
        let frame = frame.ok_or(Unknown::Inconsistent)?;
        if layout.entry == Entry::OnStack && frame.owner == OWNED_BY_INTERPRETER {
            stack.close(address)?;
            cframe = None;
        } else {
            let python = functions.frame(memory, layout, frame.code, frame.instruction)?;
            if !is_shim(&python.function) {
                if stack.frames.is_empty() {
                    let instructions = functions.instructions(frame.code);
                    stack.instructions = instructions.ok_or(Unknown::Inconsistent)?;
                }
                stack.frames.push(python);
            }
        }
        match layout.entry {
            Entry::Flag if frame.is_entry => {
                let anchor = cframe.ok_or(Unknown::Inconsistent)?;
                stack.close(anchor)?;
                cframe = layout.previous_cframe(memory, anchor);
            }
            Entry::Each => stack.end_activation(address)?,
            Entry::Flag | Entry::OnStack => {}
        }
        address = frame.previous;
    }
    Err(Unknown::TooDeep)
}

/// Whether it is an internal function, between a class and its `__init__`.
fn is_shim(function: &Function) -> bool {
    function.first_line == 0 && function.name == function.file
}

/// The fields read from a frame.
struct Frame {
    code: u64,
    previous: u64,
    instruction: u64,
    owner: u8,
    is_entry: bool,
}

impl Frame {
    fn of(bytes: &[u8], layout: &FrameLayout) -> Option<Self> {
        let (Instruction::Address(at) | Instruction::Index { at, .. }) = layout.instruction;
        Some(Self {
            // The lowest bit of 3.14 says whether it counts the reference.
            code: word_at(bytes, layout.code)? & !1,
            previous: word_at(bytes, layout.previous)?,
            instruction: word_at(bytes, at)?,
            owner: *bytes.get(usize::from(layout.owner))?,
            is_entry: *bytes.get(usize::from(layout.is_entry))? != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::versions::{V3_8, V3_11, V3_12};
    use super::*;
    use crate::testing::Pages;

    impl Pages {
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
            self.write(address + 70, &[OWNED_BY_INTERPRETER]);
        }

        /// Adds thread 77 with this innermost frame.
        fn thread(&mut self, frame: u64) {
            self.word(RUNTIME + 40, 0x2000);
            self.word(0x2000 + 72, THREAD);
            self.word(THREAD + 144, 77);
            self.word(THREAD + 56, 0x4000);
            self.word(0x4000, frame);
        }
    }

    const RUNTIME: u64 = 0x1000;
    const THREAD: u64 = 0x3000;
    const THREAD_77: InterpreterThread = InterpreterThread {
        tid: 77,
        is_main: true,
    };
    const NATIVE: NativeStack<'_> = NativeStack {
        start: 0x7000_0000,
        bytes: &[],
        is_whole: true,
        registers: &[],
        instruction_pointer: None,
    };

    fn interpreter(layout: PythonLayout) -> Interpreter {
        Interpreter {
            runtime: RUNTIME,
            layout,
        }
    }

    fn stack(memory: &mut Pages, cache: &mut Cache) -> Result<Vec<String>, Unknown> {
        let interpreter = interpreter(V3_12);
        let stack = interpreter.stack(memory, THREAD_77, &NATIVE, cache)?;
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
        let expected = ["A.g:Some(9)", "f:Some(8) f:Some(12)"];
        let expected = Ok(expected.map(String::from).into());
        let mut memory = program();
        assert_eq!(stack(&mut memory, &mut Cache::default()), expected);
        // The reference to the code is one that 3.14 does not count.
        memory.word(0x8000, 0x1_0001);
        assert_eq!(stack(&mut memory, &mut Cache::default()), expected);
    }

    #[test]
    fn another_function_at_the_same_address_is_seen() {
        let (mut memory, mut cache) = (program(), Cache::default());
        let first = |memory: &mut Pages, cache: &mut Cache| {
            stack(memory, cache).map(|activations| activations[0].clone())
        };
        assert_eq!(first(&mut memory, &mut cache), Ok("A.g:Some(9)".into()));
        memory.text(0x1_0000 + 768, "B.h");
        assert_eq!(first(&mut memory, &mut cache), Ok("B.h:Some(9)".into()));
    }

    /// Applies a change to the program, after which there is no stack.
    fn check(change: impl FnOnce(&mut Pages), expected: Unknown) {
        let mut memory = program();
        change(&mut memory);
        assert_eq!(stack(&mut memory, &mut Cache::default()), Err(expected));
    }

    #[test]
    fn hostile_memory_is_no_stack() {
        check(|it| it.word(RUNTIME + 40, 0), Unknown::NoThread);
        check(|it| it.word(RUNTIME + 40, u64::MAX), Unknown::NoThread);
        // Cyclic lists of interpreters and threads.
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
        // Cyclic frames, with and without an end of an activation.
        check(|it| it.word(0x8000 + 8, 0x8000), Unknown::TooDeep);
        let cyclic = |it: &mut Pages| it.word(0x7000_0000 + 8, 0x8000);
        check(cyclic, Unknown::Inconsistent);
        // An instruction outside of the code; invalid code and names.
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
        let frames = stack(&mut memory, &mut Cache::default()).expect("a stack");
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
        let mut stack = stack_of(&V3_11, &mut memory, THREAD, &mut Functions::default());
        let stack = stack.as_mut().expect("a stack");
        let anchors: Vec<_> = stack.activations.iter().map(|it| it.anchor).collect();
        assert_eq!(anchors, [0x7000_0000, 0x7000_1000]);
    }

    /// A program of 3.8: the function of the code at `0x1_0000` called itself.
    fn old_program() -> Pages {
        let mut memory = Pages::default();
        memory.word(RUNTIME + 32, 0x2000);
        memory.word(RUNTIME + 72, 0x7f00_0000);
        memory.word(0x2000 + 8, THREAD);
        memory.word(THREAD + 24, 0x8000);
        memory.word(THREAD + 176, 0x7f00_0000);
        for (frame, previous, index) in [(0x8000, 0x9000, 4), (0x9000, 0, -1_i32)] {
            memory.word(frame + 24, previous);
            memory.word(frame + 32, 0x1_0000);
            memory.write(frame + 104, &index.to_le_bytes());
        }
        memory.write(0x1_0000 + 40, &7_u32.to_le_bytes());
        for (field, at) in [(48, 256), (104, 512), (112, 768), (120, 1024)] {
            memory.word(0x1_0000 + field, 0x1_0000 + at);
        }
        memory.word(0x1_0000 + 256 + 16, 20);
        for (at, text) in [(512, "/x/y.py"), (768, "f")] {
            memory.text(0x1_0000 + at, text);
            memory.write(0x1_0000 + at + 48, text.as_bytes());
        }
        memory.word(0x1_0000 + 1024 + 16, 2);
        memory.write(0x1_0000 + 1024 + 32, &[4, 1]);
        memory
    }

    #[test]
    fn frame_objects_have_their_places_on_the_stack() {
        let words = [1, 0x8000, 0x8000, 0x9000_u64];
        let bytes: Vec<u8> = words.iter().flat_map(|it| it.to_le_bytes()).collect();
        let check = |native: NativeStack<'_>, expected: Result<[u64; 2], Unknown>| {
            let (mut memory, mut cache) = (old_program(), Cache::default());
            let stack = interpreter(V3_8).stack(&mut memory, THREAD_77, &native, &mut cache);
            let lines =
                |it: &InterpretedStack| it.frames.iter().map(|it| it.line).collect::<Vec<_>>();
            if let Ok(stack) = &stack {
                assert_eq!(lines(stack), [Some(8), Some(7)]);
                assert_eq!(stack.of_activation(1).len(), 1);
            }
            let anchors = stack.map(|it| [it.activations[0].anchor, it.activations[1].anchor]);
            assert_eq!(anchors, expected);
        };
        let native = |bytes, is_whole| NativeStack {
            bytes,
            is_whole,
            ..NATIVE
        };
        check(native(&bytes, true), Ok([0x7000_0008, 0x7000_0018]));
        // The outer one is beyond the dump, and does not exist at all.
        check(native(&bytes[..24], false), Ok([0x7000_0008, 0x7000_0018]));
        check(native(&bytes[..24], true), Err(Unknown::Inconsistent));
        // The inner one is in a register; it belongs to another thread.
        let registers = NativeStack {
            registers: &[5, 0x8000],
            ..native(&bytes[24..], true)
        };
        check(registers, Ok([0x7000_0000, 0x7000_0000]));
        check(native(&bytes[24..], false), Err(Unknown::Inconsistent));
    }

    #[test]
    fn threads_are_distinguished_by_their_stacks() {
        let check = |is_main, stack_pointer, expected: &[u64]| {
            let mut memory = old_program();
            memory.word(THREAD + 8, 0x4000);
            memory.word(0x4000 + 176, 0x7000_8000);
            let thread = InterpreterThread {
                is_main,
                ..THREAD_77
            };
            let states = ThreadStates::find(&V3_8, RUNTIME, &mut memory, thread, stack_pointer);
            let states = states.map_or_else(Vec::new, |it| it.addresses);
            assert_eq!(states, expected, "{thread:?}");
        };
        check(true, 0x7000_0000, &[THREAD]);
        check(false, 0x7000_0000, &[0x4000]);
        check(false, 0x7fff_0000, &[]);
    }

    /// A thread that runs a second interpreter, which called nothing in the first one.
    #[test]
    fn interpreters_share_the_stack_of_a_thread() {
        let mut memory = program();
        memory.word(0x2000, 0x2800);
        memory.word(0x2800 + 72, 0x5000);
        memory.word(0x5000 + 144, 77);
        memory.word(0x5000 + 56, 0x6000);
        memory.word(0x6000, 0xa000);
        memory.code(0x3_0000, "h");
        memory.frame(0xa000, 0x3_0000, 0x6fff_0000, 1);
        memory.entry_frame(0x6fff_0000, 0);
        let frames = stack(&mut memory, &mut Cache::default());
        let expected = ["h:Some(8)", "A.g:Some(9)", "f:Some(8) f:Some(12)"];
        assert_eq!(frames, Ok(expected.map(String::from).into()));
        // It called back, or appears to have.
        memory.entry_frame(0x7000_0800, 0);
        memory.word(0xa000 + 8, 0x7000_0800);
        let frames = stack(&mut memory, &mut Cache::default());
        assert_eq!(frames, Err(Unknown::Inconsistent));
    }
}
