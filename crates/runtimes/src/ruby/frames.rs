//! The frames of a thread.

use std::sync::Arc;

use super::functions::Functions;
use super::layout::{Layout, frame};
use super::threads::Context;
use crate::Memory;
use crate::evaluation::EvaluationLoop;
use crate::native::NativeStack;
use crate::read::{Block, word_at};
use crate::stack::{InterpretedFrame, InterpretedStack, Unknown};

/// Where the frames of an interpreter are.
#[derive(Clone, Debug)]
pub struct Interpreter {
    /// The address of `ruby_current_vm_ptr`.
    vm: u64,
    layout: &'static Layout,
}

impl Interpreter {
    /// Frames of one stack, at most.
    const FRAMES: usize = 16_384;

    /// The size of a mutex on x86-64.
    const MUTEX: u64 = 40;

    /// That of a process on x86-64, by the address of `ruby_current_vm_ptr`, if this version is
    /// known: its major and its minor number.
    pub fn new(vm: u64, version: [u32; 2]) -> Option<Self> {
        Some(Self::with_layout(vm, Layout::of(version, Self::MUTEX)?))
    }

    pub(super) fn with_layout(vm: u64, layout: &'static Layout) -> Self {
        Self { vm, layout }
    }

    /// The frames of the thread whose native stack this is.
    ///
    /// # Errors
    ///
    /// The memory does not form a stack.
    pub(crate) fn stack(
        &self,
        memory: &mut impl Memory,
        evaluation: &EvaluationLoop,
        native: &NativeStack<'_>,
        functions: &mut Functions,
    ) -> Result<InterpretedStack, Unknown> {
        let context = Context::of_thread(memory, self.layout, self.vm, native.start);
        let context = context.ok_or(Unknown::NoThread)?;
        let frames = frames(memory, self.layout, &context)?;
        let of_frames = frames.iter().map(|frame| frame.iseq);
        let new_bytes = functions.0.read(memory, &self.layout, of_frames)?;
        let mut anchor = evaluation.innermost_frame(native);
        let mut stack = InterpretedStack {
            new_bytes,
            ..InterpretedStack::default()
        };
        for frame in &frames {
            let code = functions.0.get(frame.iseq).ok_or(Unknown::Inconsistent)?;
            let mut next = frame.pc;
            if stack.frames.is_empty() {
                stack.instructions = code.instructions();
                next = native.register_in(&stack.instructions).unwrap_or(next);
            }
            stack.frames.push(InterpretedFrame {
                function: Arc::clone(&code.function),
                line: code.line_before(next),
            });
            if frame.finishes {
                stack.end_activation(anchor)?;
                anchor = anchor.saturating_add(1);
            }
        }
        stack.closed()
    }
}

/// A frame of a Ruby function.
struct Frame {
    pc: u64,
    iseq: u64,
    /// Whether the evaluation loop ends with it.
    finishes: bool,
}

/// The frames of a thread, innermost first, without those of functions in C.
fn frames(
    memory: &mut impl Memory,
    layout: &Layout,
    context: &Context,
) -> Result<Vec<Frame>, Unknown> {
    let mut frames = Vec::new();
    let mut block = Block::default();
    let mut environments = Block::default();
    let mut address = context.frame;
    let mut frames_left = Interpreter::FRAMES;
    while address < context.end {
        frames_left = frames_left.checked_sub(1).ok_or(Unknown::TooDeep)?;
        let bytes = block.bytes(memory, address, layout.frame);
        let bytes = bytes.ok_or(Unknown::Inconsistent)?;
        let field = |at| word_at(bytes, at).ok_or(Unknown::Inconsistent);
        let (pc, iseq) = (field(frame::PC)?, field(frame::ISEQ)?);
        let environment = field(frame::ENVIRONMENT)?;
        address += layout.frame as u64;
        // Code of YJIT sets no PC when it begins a function.
        if iseq != 0 {
            let flags = environments.bytes(memory, environment, size_of::<u64>());
            let flags = flags.and_then(|bytes| word_at(bytes, 0));
            let flags = flags.ok_or(Unknown::Inconsistent)?;
            if !frame::OTHERS.contains(&(flags & frame::KIND)) {
                let finishes = flags & frame::FINISH != 0;
                frames.push(Frame { pc, iseq, finishes });
            }
        }
    }
    Ok(frames)
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;
    use crate::testing::Pages;

    const VM: u64 = 0x1000;
    const RACTOR: u64 = 0x3000;
    const THREAD: u64 = 0x4000;
    const CONTEXT: u64 = 0x5000;
    /// The outer end of the native stack.
    const STACK_START: u64 = 0x7000_8000;
    const LOOP: Range<u64> = 0x60_0000..0x60_1000;
    /// The frames, from the innermost one.
    const FRAMES: u64 = 0x1_0000;
    const METHOD: u64 = 0x1111_0001;
    const FINISH: u64 = 0x20;

    /// The memory of a program of Ruby.
    struct Ruby {
        pages: Pages,
        layout: &'static Layout,
    }

    impl Ruby {
        fn word(&mut self, address: u64, value: u64) {
            self.pages.word(address, value);
        }

        fn text_object(&mut self, address: u64, text: &str) {
            let length = text.len() as u64;
            match (text.len(), self.layout.is_length_in_flags) {
                (0..24, true) => {
                    self.word(address, 5 | length << 14);
                    self.pages.write(address + 16, text.as_bytes());
                }
                (_, true) => {
                    self.word(address, 5 | 0x2000);
                    self.word(address + 16, length);
                    self.word(address + 24, address + 64);
                    self.pages.write(address + 64, text.as_bytes());
                    self.pages.write(address + 39, &[0]);
                }
                (_, false) => {
                    self.word(address, 5);
                    self.word(address + 16, length);
                    self.pages.write(address + 24, text.as_bytes());
                    self.pages.write(address + 100, &[0]);
                }
            }
        }

        /// A function of ten words, which are line 7, at `address`.
        fn iseq(&mut self, address: u64, label: &str) {
            let (body, layout) = (address + 64, self.layout);
            self.word(address + 16, body);
            self.pages.write(body + 4, &10_u32.to_le_bytes());
            self.word(body + 8, address + 1024);
            self.word(body + 64, address + 256);
            self.word(body + 80, address + 320);
            self.word(
                body + 88,
                if layout.is_line_object { 6 << 1 | 1 } else { 6 },
            );
            self.word(body + u64::from(layout.lines), address + 512);
            self.word(body + u64::from(layout.line_count), 1);
            self.word(body + u64::from(layout.line_index), 0);
            self.word(body + 144, 0);
            self.word(address + 512, 7);
            self.text_object(address + 320, label);
            // The path, and the absolute one.
            self.word(address + 256, 7);
            self.word(address + 256 + 16, address + 640);
            self.word(address + 256 + 24, address + 768);
            self.text_object(address + 640, "y.rb");
            self.text_object(address + 768, "/x/y.rb");
        }

        /// The address after the last of so many frames.
        fn after(&self, frames: u64) -> u64 {
            FRAMES + frames * self.layout.frame as u64
        }

        fn control_frame(&mut self, number: u64, iseq: u64, flags: u64) {
            let address = self.after(number);
            let code = if iseq == 0 { 0 } else { iseq + 1024 + 8 };
            let environment = self.after(5) + number * 8;
            self.word(address, code);
            self.word(address + 16, iseq);
            self.word(address + 32, environment);
            self.word(environment, flags);
        }
    }

    /// `<main>` called `each`, which is in C, which called a block, which called `f`.
    fn program_of(layout: &'static Layout) -> Ruby {
        let mut memory = Ruby {
            pages: Pages::default(),
            layout,
        };
        memory.word(VM, 0x2000);
        memory.word(0x2000 + 32, RACTOR);
        memory.word(RACTOR + layout.threads, THREAD);
        memory.word(THREAD, RACTOR + layout.threads);
        memory.word(THREAD + layout.context, CONTEXT);
        memory.word(CONTEXT, 0x8000);
        memory.word(CONTEXT + 8, (memory.after(5) - 0x8000) / 8);
        memory.word(CONTEXT + 16, FRAMES);
        memory.word(CONTEXT + u64::from(layout.stack_start), STACK_START);
        memory.word(CONTEXT + u64::from(layout.stack_max_size), 1 << 20);
        memory.control_frame(0, 0x2_0000, METHOD);
        memory.control_frame(1, 0x3_0000, 0x2222_0001 | FINISH);
        memory.control_frame(2, 0, 0x5555_0001);
        memory.control_frame(3, 0x4_0000, 0x7777_0001 | FINISH);
        memory.control_frame(4, 0x4_0000, 0x7999_0001 | FINISH);
        memory.iseq(0x2_0000, "f");
        memory.iseq(0x3_0000, "block (2 levels) in a_longer_name");
        memory.iseq(0x4_0000, "<main>");
        memory
    }

    fn program() -> Ruby {
        program_of(Layout::of([3, 1], Interpreter::MUTEX).unwrap())
    }

    /// Functions and lines of each activation.
    fn read(memory: &mut Ruby, functions: &mut Functions) -> Result<Vec<String>, Unknown> {
        let interpreter = Interpreter::with_layout(VM, memory.layout);
        let evaluation = EvaluationLoop { code: vec![LOOP] };
        let words = [1, LOOP.start + 5_u64];
        let bytes: Vec<u8> = words.iter().flat_map(|it| it.to_le_bytes()).collect();
        let native = NativeStack {
            start: STACK_START - 64,
            bytes: &bytes,
            is_whole: true,
            registers: &[],
            instruction_pointer: None,
        };
        let stack = interpreter.stack(&mut memory.pages, &evaluation, &native, functions)?;
        assert_eq!(stack.activations[0].anchor, STACK_START - 56);
        let name = |it: &InterpretedFrame| {
            assert_eq!(it.function.file, "/x/y.rb");
            assert_eq!(it.function.first_line, 6);
            format!("{}:{}", it.function.name, it.line.unwrap_or(0))
        };
        let activation = |number| {
            let names: Vec<_> = stack.of_activation(number).iter().map(name).collect();
            names.join(" < ")
        };
        Ok((0..stack.activations.len()).map(activation).collect())
    }

    #[test]
    fn frames_belong_to_activations() {
        let expected = ["f:7 < block (2 levels) in a_longer_name:7", "<main>:7"];
        for version in [[3, 1], [3, 3]] {
            for mutex in [40, 48] {
                let mut program = program_of(Layout::of(version, mutex).unwrap());
                let stack = read(&mut program, &mut Functions::default());
                assert_eq!(stack, Ok(expected.map(String::from).into()));
            }
        }
    }

    #[test]
    fn another_function_at_the_same_address_is_seen() {
        let (mut memory, mut functions) = (program(), Functions::default());
        let mut outer = |memory: &mut Ruby| read(memory, &mut functions).map(|it| it[1].clone());
        assert_eq!(outer(&mut memory), Ok("<main>:7".into()));
        memory.text_object(0x4_0000 + 320, "g");
        assert_eq!(outer(&mut memory), Ok("g:7".into()));
    }

    #[test]
    fn hostile_memory_is_no_stack() {
        let check = |change: fn(&mut Ruby), expected| {
            let mut memory = program();
            change(&mut memory);
            assert_eq!(read(&mut memory, &mut Functions::default()), Err(expected));
        };
        check(|it| it.word(VM, 0), Unknown::NoThread);
        // A cyclic list of threads, none of which has this stack.
        let cyclic = |it: &mut Ruby| {
            it.word(CONTEXT + 144, 0x100);
            it.word(THREAD, THREAD);
        };
        check(cyclic, Unknown::NoThread);
        check(|it| it.word(CONTEXT + 144, u64::MAX), Unknown::NoThread);
        check(|it| it.word(CONTEXT + 8, 1 << 40), Unknown::Inconsistent);
        check(|it| it.word(CONTEXT + 16, 8), Unknown::Inconsistent);
        check(
            |it| it.word(FRAMES + 16, u64::MAX - 8),
            Unknown::Inconsistent,
        );
        check(
            |it| it.word(FRAMES + 32, u64::MAX - 3),
            Unknown::Inconsistent,
        );
        check(|it| it.word(0x2_0000 + 16, 8), Unknown::Inconsistent);
        check(|it| it.word(0x2_0000 + 320, 9), Unknown::Inconsistent);
        let long = |it: &mut Ruby| {
            it.word(0x2_0000 + 320, 5 | 0x2000);
            it.word(0x2_0000 + 320 + 16, 1 << 40);
        };
        check(long, Unknown::Inconsistent);
        // Frames outside of all activations.
        check(
            |it| it.control_frame(3, 0x4_0000, METHOD),
            Unknown::Inconsistent,
        );
    }
}
