//! Frames of V8's code, and of functions in them.

use prof_model::{
    AbsoluteAddress, FileOffset, Mapping, Module, Modules, Processes, RegisterAbi, StackEnd,
    UserRegisters,
};
use prof_unwinder::{
    Architecture, FrameWords, JitCode, JitFrames, LocalFiles, Memory, StackDump, Target, Unwinder,
    UserState,
};

const CODE: u64 = 0x7f00_0000_0000;
const SIZE: u64 = 0x10_0000;
/// 0: test $0x20, 1(%rbx); 4: push %rbp; 5: mov %rsp, %rbp; 8: push %rsi; 9: push %rdi;
/// 10: sub $16, %rsp; 14: nop; 15: mov %rbp, %rsp; 18: pop %rbp; 19: ret $8
const FUNCTION: [u8; 22] = [
    0xf6, 0x43, 0x01, 0x20, 0x55, 0x48, 0x89, 0xe5, 0x56, 0x57, 0x48, 0x83, 0xec, 0x10, 0x90, 0x48,
    0x89, 0xec, 0x5d, 0xc2, 8, 0,
];
const STACK: u64 = 0x7ffd_0000_0000;
const CONTEXT: u64 = 0x1234_5671;
/// The functions of frames, by what represents them.
const REPRESENTED: u64 = 1 << 57;
const FIRST: u64 = 0x2000_0001;
const SECOND: u64 = 0x2000_0101;
/// A kind of frame.
const STUB: u64 = 34;

struct V8;

impl Memory for V8 {
    fn read(&mut self, _: u64, _: &mut [u8]) -> usize {
        0
    }

    fn read_lasting(&mut self, address: u64, buffer: &mut [u8]) -> usize {
        let at = usize::try_from(address - CODE).unwrap_or(usize::MAX);
        let bytes = FUNCTION.get(at..).unwrap_or_default();
        let count = bytes.len().min(buffer.len());
        buffer[..count].copy_from_slice(&bytes[..count]);
        count
    }

    fn jit_code(&mut self, address: u64) -> Option<JitCode> {
        let is_start = (address - CODE) < 64;
        Some(JitCode {
            range: if is_start { CODE } else { address }..address + 64,
            frames: JitFrames::V8 { is_start },
        })
    }

    fn has_functions(&self) -> bool {
        true
    }

    fn function(&mut self, _: u64, _: bool, words: Option<&FrameWords>) -> Option<u64> {
        let [context, function, ..] = *words?;
        (context == CONTEXT).then_some(REPRESENTED + function)
    }
}

/// The call chain of a sample at this offset of the function, with this frame pointer, in words
/// above the stack pointer.
fn unwind(offset: u64, pointer: u64, stack: &[u64]) -> Vec<u64> {
    let mut modules = Modules::default();
    let mut processes = Processes::default();
    let mapping = Mapping {
        start: AbsoluteAddress(CODE),
        end: AbsoluteAddress(CODE + SIZE),
        file_offset: FileOffset(0),
        module: modules.intern(Module::from_path("//anon")),
        executable: true,
    };
    processes.map(1, mapping);
    let bytes: Vec<u8> = stack.iter().flat_map(|it| it.to_le_bytes()).collect();
    // bp, sp and ip, as perf numbers them.
    let mask = 1 << 6 | 1 << 7 | 1 << 8;
    let values = [STACK + 8 * pointer, STACK, CODE + offset];
    let registers = UserRegisters::new(RegisterAbi::Bits64, mask, values).expect("registers");
    let mut unwinder = Unwinder::for_architecture(Architecture::X86_64, LocalFiles);
    let target = Target {
        pid: 1,
        process: processes.get(1).expect("it has a mapping"),
        modules: &modules,
    };
    let state = UserState {
        registers: &registers,
        dump: StackDump {
            start: STACK,
            bytes: &bytes,
            full: true,
        },
    };
    let mut frames = Vec::new();
    let note = unwinder.unwind(&target, &state, &mut V8, &mut frames);
    assert_eq!(note.end, StackEnd::TruncatedDump);
    frames
}

/// A frame of this function, whose caller has the frame pointer that many words above the stack
/// pointer.
fn frame(function: u64, caller: u64, returns_to: u64) -> [u64; 6] {
    let link = STACK + 8 * caller;
    [0, 0, function, CONTEXT, link, CODE + returns_to]
}

#[test]
fn functions_represent_their_frames() {
    // A word that an earlier call has left there is no return address.
    let mut inner = frame(FIRST, 10, 0x200);
    inner[0] = CODE + 0x300;
    let stack = [inner, frame(SECOND, 99, 0x400)].concat();
    let whole = [REPRESENTED + FIRST, REPRESENTED + SECOND, CODE + 0x3ff];
    assert_eq!(unwind(14, 4, &stack), whole);
}

#[test]
fn frames_are_left_while_they_are_created_and_removed() {
    let outer = frame(SECOND, 99, 0x400);
    let callers = [REPRESENTED + SECOND, CODE + 0x3ff];
    let check = |offset: u64, pushed: &[u64]| {
        let stack = [pushed, &[CODE + 0x200], &outer].concat();
        let pointer = pushed.len() as u64 + 5;
        let expected = [&[CODE + offset], &callers[..]].concat();
        assert_eq!(unwind(offset, pointer, &stack), expected, "{offset}");
    };
    check(0, &[]);
    check(4, &[]);
    check(5, &[STACK + 8 * 6]);
    let [link, ..] = [STACK + 8 * 6];
    // The frame pointer is the stack pointer.
    for offset in [8, 18] {
        let stack = [&[link, CODE + 0x200], &outer[..]].concat();
        let expected = [&[CODE + offset], &callers[..]].concat();
        assert_eq!(unwind(offset, 0, &stack), expected, "{offset}");
    }
    // Both arguments are removed by the return.
    check(19, &[]);
}

#[test]
fn other_frames_have_no_function() {
    let mut inner = frame(FIRST, 10, 0x200);
    inner[3] = STUB;
    let stack = [inner, frame(SECOND, 99, 0x400)].concat();
    let whole = [CODE + 14, REPRESENTED + SECOND, CODE + 0x3ff];
    assert_eq!(unwind(14, 4, &stack), whole);
}
