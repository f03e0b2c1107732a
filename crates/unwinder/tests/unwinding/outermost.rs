//! A return address of 0 is a stack's end only if there are no return addresses above it.

use std::path::Path;

use crate::support::one_module;
use crate::support::programs::Workshop;
use object::{Object, ObjectSection, ObjectSymbol};
use prof_model::StackEnd::{self, HiddenRegisters, NotCode, Root};
use prof_model::{RegisterAbi, UserRegisters};
use prof_needs::tools;
use prof_unwinder::{LocalFiles, Unwinder};

const STACK: u64 = 0x7000_0000;
/// A value that is not an address of code.
const DATA: u64 = 0x1234;
/// The kernel's numbers of the stack pointer and the instruction pointer.
const SP: u32 = 7;
const IP: u32 = 8;

struct Code<'a> {
    program: &'a Path,
    /// The symbols' addresses, in the file and in the process.
    addresses: Vec<(String, u64)>,
    /// The registers that samples have.
    registers: Vec<u32>,
}

impl<'a> Code<'a> {
    fn of(program: &'a Path) -> Self {
        let bytes = std::fs::read(program).expect("program");
        let file = object::File::parse(&*bytes).expect("ELF");
        let text = file.section_by_name(".text").expect(".text");
        let (_, middle) = one_module(program);
        let start = middle - text.size() / 2;
        let address = |it: &object::Symbol<'_, '_>| start + it.address() - text.address();
        let name = |it: &object::Symbol<'_, '_>| it.name().unwrap_or_default().to_owned();
        let addresses = file.symbols().map(|it| (name(&it), address(&it)));
        let addresses = addresses.collect();
        Self {
            program,
            addresses,
            registers: (0..=IP).collect(),
        }
    }

    fn address(&self, function: &str) -> u64 {
        let mut addresses = self.addresses.iter();
        addresses
            .find(|(name, _)| name == function)
            .expect(function)
            .1
    }

    /// Unwinds a sample at `pc` whose stack holds these words.
    #[track_caller]
    fn check(&self, pc: u64, stack: &[u64], callers: &[u64], end: StackEnd) {
        let registers = &self.registers;
        let mask = registers
            .iter()
            .fold(0, |mask, register| mask | 1 << register);
        let (mut samples, _) = one_module(self.program);
        let sample = &mut samples.samples[0];
        let value = |number| match number {
            IP => pc,
            SP => STACK,
            _ => 0,
        };
        let registers = UserRegisters::new(
            RegisterAbi::Bits64,
            mask,
            registers.iter().copied().map(value),
        );
        sample.registers = registers.expect("registers");
        sample.stack = stack.iter().flat_map(|word| word.to_le_bytes()).collect();
        let answer = samples.unwind_one(&mut Unwinder::new(LocalFiles), &samples.samples[0]);
        let expected = [&[pc], callers].concat();
        assert_eq!((answer.frames, answer.unwound.end), (expected, end));
    }
}

#[test]
fn zeros_in_the_middle_of_a_stack_are_no_root() {
    if !tools(&["gcc"]) {
        return;
    }
    let workshop = Workshop::new();
    let flags = ["-shared", "-nostdlib", "outermost.S"];
    let program = workshop.build("outermost.so", "gcc", &[&flags]);
    let code = Code::of(&program);
    let in_first = code.address("first") + 4;
    let returns_to_first = in_first + 1;
    let in_frame = |function| code.address(function) + 4;
    // The first function on a stack; the data above it contains none of its callers.
    code.check(in_first, &[0, DATA, 0, DATA], &[], Root);
    // The frame is full of zeros.
    let stack = [0, 0, 0, 0, 0, returns_to_first, 0, DATA];
    code.check(in_frame("wrong"), &stack, &[], NotCode);
    // A call through a null pointer was interrupted.
    let stack = [code.address("handled") + 1, 0, 0];
    code.check(
        in_frame("first"),
        &stack,
        &[code.address("handled") + 1],
        NotCode,
    );
}

/// Of a blocked thread, a plain user sees no other registers.
#[test]
fn a_return_address_in_a_register_that_is_hidden_is_no_lack_of_unwind_tables() {
    if !tools(&["gcc"]) {
        return;
    }
    let workshop = Workshop::new();
    let flags = ["-shared", "-nostdlib", "outermost.S"];
    let program = workshop.build("outermost.so", "gcc", &[&flags]);
    let mut code = Code::of(&program);
    let at = code.address("in_register") + 1;
    code.check(at, &[DATA, 0], &[], Root);
    code.registers = vec![SP, IP];
    code.check(at, &[DATA, 0], &[], HiddenRegisters);
}
