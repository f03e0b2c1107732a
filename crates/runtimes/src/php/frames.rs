//! The frames of a thread.

use std::sync::Arc;

use super::functions::Functions;
use super::layout::{GeneratorLayout, PhpLayout, frame, layout_of};
use crate::Memory;
use crate::evaluation::EvaluationLoop;
use crate::native::NativeStack;
use crate::read::{Block, word, word_at};
use crate::stack::{InterpretedFrame, InterpretedStack, Unknown};

/// Where the frames of an interpreter are.
#[derive(Clone, Debug)]
pub struct Interpreter {
    layout: PhpLayout,
    /// The address of `executor_globals`.
    globals: u64,
}

impl Interpreter {
    /// Frames of one stack, at most.
    const FRAMES: usize = 16_384;

    /// That of a process, by its `ZEND_MODULE_API_NO` and the address of `executor_globals`; `None`
    /// if the version is unknown.
    pub fn new(api: u32, globals: u64) -> Option<Self> {
        let layout = layout_of(api)?;
        Some(Self { layout, globals })
    }

    /// The frames of the thread that runs PHP.
    ///
    /// A function of C is the innermost one only if `native` points to its frame: it may have begun
    /// after the native stack was copied.
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
        let layout = &self.layout;
        let current = self.globals.checked_add(layout.current.into());
        let current = current.and_then(|at| word(memory, at));
        let mut address = current.ok_or(Unknown::Inconsistent)?;
        let mut frames = Vec::new();
        let mut block = Block::default();
        let mut frames_left = Self::FRAMES;
        while address != 0 {
            frames_left = frames_left.checked_sub(1).ok_or(Unknown::TooDeep)?;
            let frame = block.bytes(memory, address, frame::SIZE);
            let frame = frame.and_then(|bytes| Frame::of(address, bytes));
            let frame = frame.ok_or(Unknown::Inconsistent)?;
            let fake = layout.generator.execute_fake.into();
            let is_placeholder = frame.this.checked_add(fake) == Some(address);
            address = frame.previous;
            if frame.func != 0 {
                frames.push(frame);
            } else if is_placeholder {
                let delegating = delegating(memory, &layout.generator, frame.this, frames_left);
                let delegating = delegating.ok_or(Unknown::Inconsistent)?;
                frames_left -= delegating.len();
                frames.extend(delegating);
            }
        }
        let of_frames = frames.iter().map(|frame| frame.func);
        let new_bytes = functions.0.read(memory, &layout.code, of_frames)?;
        let anchor = evaluation.innermost_frame(native);
        let stack = Self::assemble(&frames, anchor, native, functions)?;
        Ok(InterpretedStack { new_bytes, ..stack })
    }

    /// The stack of these frames, whose innermost activation has this anchor.
    fn assemble(
        frames: &[Frame],
        mut anchor: u64,
        native: &NativeStack<'_>,
        functions: &Functions,
    ) -> Result<InterpretedStack, Unknown> {
        let mut stack = InterpretedStack::default();
        let (mut on_stack, mut has_left) = (None, false);
        for frame in frames {
            let code = functions.0.get(frame.func).ok_or(Unknown::Inconsistent)?;
            if code.is_fiber() {
                let inner = Some(stack.activations.len()).filter(|&count| count > 0);
                on_stack = on_stack.or(inner);
                continue;
            }
            if !code.is_php() && stack.frames.is_empty() && !native.points_to(frame.address) {
                continue;
            }
            let mut instruction = frame.instruction;
            if code.is_php() && stack.instructions.is_empty() {
                stack.instructions = code.instructions();
                // The loop has left its frame, or C code is about to run the function.
                has_left = !native.may_point_into(&stack.instructions, anchor);
                // What the frame itself has may be that of the last call or error.
                instruction = (native.register_in(&stack.instructions)).unwrap_or(instruction);
            }
            stack.frames.push(InterpretedFrame {
                function: Arc::clone(&code.function),
                line: code.line(instruction),
            });
            if code.is_php() && frame.is_called_by_c {
                stack.end_activation(anchor)?;
                anchor = anchor.saturating_add(1);
            }
        }
        // Functions of C that C code has called, as at the end of a program, are in no loop.
        let in_loops = stack.activations.last().map_or(0, |last| last.end);
        stack.frames.truncate(in_loops);
        stack.on_stack = on_stack.unwrap_or(stack.activations.len());
        stack.may_lack_loop = stack.of_activation(0).len() == 1;
        stack.frameless_loop = match has_left {
            true => Some(0),
            false => loop_that_destroys(&stack),
        };
        Ok(stack)
    }
}

/// The loop that calls the only destructor on the stack. A function that C code has called leaves
/// its frame before it frees its variables.
fn loop_that_destroys(stack: &InterpretedStack) -> Option<usize> {
    let is_destructor = |&number: &usize| {
        let called = stack.of_activation(number).last();
        called.is_some_and(|frame| frame.function.name.ends_with("::__destruct"))
    };
    let mut destructors = (0..stack.on_stack).filter(is_destructor);
    match (destructors.next(), destructors.next()) {
        (Some(only), None) => Some(only + 1),
        _ => None,
    }
}

/// The frames of the generators that delegate to the running one (`yield from`), the innermost
/// first. The stack has a placeholder instead, which is part of the outermost one.
fn delegating(
    memory: &mut impl Memory,
    layout: &GeneratorLayout,
    outermost: u64,
    at_most: usize,
) -> Option<Vec<Frame>> {
    let mut frames = Vec::new();
    let mut generator = outermost;
    loop {
        let mut field = |offset: u16| word(memory, generator.checked_add(offset.into())?);
        let (parent, address) = (field(layout.parent)?, field(layout.execute_data)?);
        // The running one.
        if parent == 0 {
            frames.reverse();
            return Some(frames);
        }
        (frames.len() < at_most).then_some(())?;
        let mut bytes = [0; frame::SIZE];
        (memory.read(address, &mut bytes) == bytes.len()).then_some(())?;
        // No loop runs it.
        frames.push(Frame {
            is_called_by_c: false,
            ..Frame::of(address, &bytes)?
        });
        generator = parent;
    }
}

/// The fields read from a frame.
struct Frame {
    address: u64,
    instruction: u64,
    func: u64,
    this: u64,
    is_called_by_c: bool,
    previous: u64,
}

impl Frame {
    fn of(address: u64, bytes: &[u8]) -> Option<Self> {
        Some(Self {
            address,
            instruction: word_at(bytes, frame::OPLINE)?,
            func: word_at(bytes, frame::FUNC)?,
            this: word_at(bytes, frame::THIS)?,
            is_called_by_c: word_at(bytes, frame::CALL_INFO)? & frame::CALLED_BY_C != 0,
            previous: word_at(bytes, frame::PREVIOUS)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::super::layout::API_8_2;
    use super::*;
    use crate::testing::Pages;

    const GLOBALS: u64 = 0x1000;
    const LOOP: Range<u64> = 0x60_0000..0x60_1000;
    const STACK: u64 = 0x7000_0000;
    /// Frames, from the outermost one.
    const MAIN: u64 = 0x8000;
    const CALLER: u64 = 0x8100;
    const MAP: u64 = 0x8200;
    const CLOSURE: u64 = 0x8300;
    const TOP: u32 = 1 << 17;

    impl Pages {
        fn string(&mut self, address: u64, text: &str) {
            let hash = text.bytes().map(u64::from).sum();
            self.word(address + 8, hash);
            self.word(address + 16, text.len() as u64);
            self.write(address + 24, text.as_bytes());
        }

        /// A function of ten instructions from line 7 on, two on each line.
        fn function(&mut self, address: u64, name: &str) {
            self.write(address, &[2]);
            self.word(address + 80, 10);
            self.word(address + 88, address + 1024);
            self.word(address + 152, address + 512);
            self.word(address + 160, 7);
            self.string(address + 512, "/x/y.php");
            for number in 0..10 {
                let line = 7 + number / 2;
                self.word(address + 1024 + 32 * number + 24, line);
            }
            self.named(address, name);
        }

        fn named(&mut self, address: u64, name: &str) {
            if !name.is_empty() {
                self.word(address + 8, address + 768);
                self.string(address + 768, name);
            }
        }

        fn execute_data(&mut self, address: u64, func: u64, previous: u64, flags: u32) {
            // The fourth instruction.
            self.word(address, func + 1024 + 32 * 3);
            self.word(address + 24, func);
            self.write(address + 40, &flags.to_le_bytes());
            self.word(address + 48, previous);
        }
    }

    /// The code of a file called `A::f`, which called a function of C, which called a closure.
    fn program() -> Pages {
        let mut memory = Pages::default();
        memory.word(GLOBALS + 488, CLOSURE);
        memory.execute_data(MAIN, 0x1_0000, 0, TOP);
        memory.execute_data(CALLER, 0x2_0000, MAIN, 0);
        memory.execute_data(MAP, 0x3_0000, CALLER, 0);
        memory.execute_data(CLOSURE, 0x4_0000, MAP, TOP);
        memory.function(0x1_0000, "");
        memory.function(0x2_0000, "f");
        memory.word(0x2_0000 + 16, 0x5_0000);
        memory.word(0x5_0000 + 8, 0x5_0100);
        memory.string(0x5_0100, "A");
        memory.write(0x3_0000, &[1]);
        memory.named(0x3_0000, "array_map");
        memory.function(0x4_0000, "{closure}");
        memory
    }

    fn native<'a>(bytes: &'a [u8], registers: &'a [u64]) -> NativeStack<'a> {
        NativeStack {
            start: STACK,
            bytes,
            is_whole: true,
            registers,
            instruction_pointer: registers.first().copied(),
        }
    }

    fn evaluation() -> EvaluationLoop {
        EvaluationLoop { code: vec![LOOP] }
    }

    /// Functions and lines of each activation.
    fn read(
        memory: &mut Pages,
        native: &NativeStack<'_>,
        functions: &mut Functions,
    ) -> Result<Vec<String>, Unknown> {
        let interpreter = Interpreter::new(API_8_2, GLOBALS).unwrap();
        let stack = interpreter.stack(memory, &evaluation(), native, functions)?;
        let name = |it: &InterpretedFrame| match it.line {
            Some(line) => format!("{}:{line}", it.function.name),
            None => it.function.name.clone(),
        };
        let activation = |number| {
            let names: Vec<_> = stack.of_activation(number).iter().map(name).collect();
            names.join(" ")
        };
        Ok((0..stack.activations.len()).map(activation).collect())
    }

    #[track_caller]
    fn check(
        change: impl FnOnce(&mut Pages),
        registers: &[u64],
        expected: Result<&[&str], Unknown>,
    ) {
        let mut memory = program();
        change(&mut memory);
        let native = native(&[], registers);
        let stack = read(&mut memory, &native, &mut Functions::default());
        let expected = expected.map(|it| it.iter().copied().map(String::from).collect());
        assert_eq!(stack, expected);
    }

    #[test]
    fn frames_belong_to_activations() {
        let outer = "array_map A::f:8 <main>:8";
        check(|_| {}, &[], Ok(&["{closure}:8", outer]));
        // A register has the current instruction: the last one.
        let last = 0x4_0000 + 1024 + 32 * 9;
        check(|_| {}, &[last], Ok(&["{closure}:11", outer]));
        // An instruction of no function, as after an exception.
        check(|it| it.word(CLOSURE, 0x99), &[], Ok(&["{closure}", outer]));
        // An anonymous class: its file, line and number come after a NUL byte.
        check(
            |it| it.string(0x5_0100, "class@anonymous\0/x/y.php:3$0"),
            &[],
            Ok(&["{closure}:8", "array_map class@anonymous::f:8 <main>:8"]),
        );
        // C code that no function of PHP has called.
        check(
            |it| it.word(CALLER + 24, 0),
            &[],
            Ok(&["{closure}:8", "array_map <main>:8"]),
        );
    }

    #[test]
    fn generators_that_wait_for_others_are_callers() {
        const OUTER: u64 = 0x9000;
        const MIDDLE: u64 = 0xa000;
        const RUNNING: u64 = 0xb000;
        let delegates = |it: &mut Pages| {
            let functions = [(OUTER, 0x6_0000, "outer"), (MIDDLE, 0x7_0000, "middle")];
            for (generator, function, name) in functions {
                it.function(function, name);
                it.execute_data(generator + 256, function, 0x99, TOP);
                it.word(generator + 56, generator + 256);
            }
            it.word(OUTER + 152, MIDDLE);
            it.word(MIDDLE + 152, RUNNING);
            it.word(RUNNING + 56, CLOSURE);
            it.word(CLOSURE + 48, OUTER + 184);
            it.word(OUTER + 184 + 32, OUTER);
            it.word(OUTER + 184 + 48, CALLER);
        };
        let outer = "middle:8 outer:8 A::f:8 <main>:8";
        check(delegates, &[], Ok(&["{closure}:8", outer]));
        let in_a_circle = |it: &mut Pages| {
            delegates(it);
            it.word(MIDDLE + 152, OUTER);
        };
        check(in_a_circle, &[], Err(Unknown::Inconsistent));
    }

    #[test]
    fn functions_of_c_are_innermost_if_something_points_to_them() {
        let ends = |it: &mut Pages| it.word(GLOBALS + 488, MAP);
        check(ends, &[], Ok(&["A::f:8 <main>:8"]));
        check(ends, &[MAP], Ok(&["array_map A::f:8 <main>:8"]));
        // C code has called it: this is no activation, even as the outermost one.
        let by_c = |it: &mut Pages| {
            ends(it);
            it.execute_data(MAP, 0x3_0000, CALLER, TOP);
        };
        check(by_c, &[MAP], Ok(&["array_map A::f:8 <main>:8"]));
        let alone = |it: &mut Pages| {
            ends(it);
            it.execute_data(MAP, 0x3_0000, 0, TOP);
        };
        check(alone, &[MAP], Ok(&[]));
    }

    #[test]
    fn fibers_have_stacks_of_their_own() {
        const START: u64 = 0x8400;
        let mut memory = program();
        memory.execute_data(CLOSURE, 0x4_0000, START, TOP);
        memory.execute_data(START, 0x6_0000, MAP, 0);
        memory.write(0x6_0000, &[1]);
        let interpreter = Interpreter::new(API_8_2, GLOBALS).unwrap();
        let native = native(&[], &[]);
        let mut functions = Functions::default();
        let stack = interpreter.stack(&mut memory, &evaluation(), &native, &mut functions);
        let stack = stack.expect("a stack");
        assert_eq!((stack.activations.len(), stack.on_stack), (2, 1));
        let outer = stack.of_other_stacks().iter();
        let outer: Vec<_> = outer.map(|it| it.function.name.as_str()).collect();
        assert_eq!(outer, ["array_map", "A::f", "<main>"]);
        // A function of C without a name that does nothing.
        let does_nothing = |it: &mut Pages| {
            it.word(GLOBALS + 488, START);
            it.execute_data(START, 0x6_0000, CLOSURE, 0);
            it.write(0x6_0000, &[1]);
        };
        let outer = "array_map A::f:8 <main>:8";
        check(does_nothing, &[START], Ok(&["{closure}:8", outer]));
    }

    #[test]
    fn a_loop_has_left_its_frame_if_nothing_points_to_an_instruction() {
        let instruction = 0x4_0000 + 1024 + 32;
        let has_left = |words: &[u64], registers: &[u64], is_whole| {
            let bytes: Vec<u8> = words.iter().flat_map(|it| it.to_le_bytes()).collect();
            let mut native = native(&bytes, registers);
            native.is_whole = is_whole;
            let interpreter = Interpreter::new(API_8_2, GLOBALS).unwrap();
            let mut functions = Functions::default();
            let stack = interpreter.stack(&mut program(), &evaluation(), &native, &mut functions);
            stack.expect("a stack").frameless_loop == Some(0)
        };
        assert!(has_left(&[1, LOOP.start, instruction], &[2], true));
        assert!(!has_left(&[1, LOOP.start], &[instruction], true));
        assert!(!has_left(&[instruction, LOOP.start], &[2], true));
        // The loop is beyond the dump.
        assert!(!has_left(&[1, 3], &[2], false));
    }

    #[test]
    fn a_function_has_left_its_frame_when_its_variables_are_destroyed() {
        let stack = |names: &[&str]| {
            let mut stack = InterpretedStack::default();
            for (&name, anchor) in names.iter().zip(0..) {
                let function = Arc::new(crate::Function {
                    name: name.into(),
                    file: String::new(),
                    first_line: 0,
                });
                stack.frames.push(InterpretedFrame {
                    function,
                    line: None,
                });
                stack.end_activation(anchor).expect("has a frame");
            }
            stack
        };
        let frameless = |names: &[&str]| loop_that_destroys(&stack(names));
        assert_eq!(frameless(&["A::__destruct", "<main>"]), Some(1));
        assert_eq!(frameless(&["f", "A::__destruct", "g"]), Some(2));
        assert_eq!(frameless(&["f", "<main>"]), None);
        assert_eq!(frameless(&["A::__destruct", "B::__destruct", "g"]), None);
    }

    #[test]
    fn another_function_at_the_same_address_is_seen() {
        let (mut memory, mut functions) = (program(), Functions::default());
        let mut first = |memory: &mut Pages| {
            read(memory, &native(&[], &[]), &mut functions).map(|it| it[0].clone())
        };
        assert_eq!(first(&mut memory), Ok("{closure}:8".into()));
        memory.string(0x4_0000 + 768, "g");
        assert_eq!(first(&mut memory), Ok("g:8".into()));
        memory.word(0x4_0000 + 160, 3);
        memory.word(0x4_0000 + 1024 + 32 * 3 + 24, 4);
        assert_eq!(first(&mut memory), Ok("g:4".into()));
    }

    #[test]
    fn hostile_memory_is_no_stack() {
        let hostile = |change: fn(&mut Pages), expected| check(change, &[], Err(expected));
        hostile(
            |it| it.word(GLOBALS + 488, u64::MAX - 8),
            Unknown::Inconsistent,
        );
        hostile(|it| it.word(MAIN + 48, CLOSURE), Unknown::TooDeep);
        let without_function = |it: &mut Pages| {
            it.word(CLOSURE + 24, 0);
            it.word(CLOSURE + 48, CLOSURE);
        };
        hostile(without_function, Unknown::TooDeep);
        hostile(|it| it.word(MAIN + 24, u64::MAX - 8), Unknown::Inconsistent);
        hostile(|it| it.write(0x4_0000, &[3]), Unknown::Inconsistent);
        hostile(
            |it| it.word(0x4_0000 + 8, u64::MAX - 4),
            Unknown::Inconsistent,
        );
        hostile(
            |it| it.word(0x4_0000 + 768 + 16, 1 << 40),
            Unknown::Inconsistent,
        );
        hostile(|it| it.word(0x5_0000 + 8, 8), Unknown::Inconsistent);
        // So many instructions have no memory: those that have are enough.
        let many = |it: &mut Pages| it.word(0x4_0000 + 80, u64::MAX);
        check(many, &[], Ok(&["{closure}:8", "array_map A::f:8 <main>:8"]));
    }

    #[test]
    fn other_versions_are_unknown() {
        assert!(Interpreter::new(20_230_831, GLOBALS).is_none());
    }
}
