//! Frames of compiled code of a Java virtual machine, by its own description.

use std::collections::HashMap;
use std::ops::Range;

use prof_model::{
    AbsoluteAddress, FileOffset, Mapping, Module, Modules, Processes, RegisterAbi, StackEnd,
    UserRegisters,
};
use prof_unwinder::{
    Architecture, JitCode, JitFrames, LocalFiles, Memory, StackDump, Target, Unwinder, UserState,
};

const CODE: u64 = 0x7f00_0000_0000;
const SIZE: u64 = 0x10_0000;
const INTERPRETER: u64 = CODE;
const COMPILED: u64 = CODE + 0x1_0000;
const OTHER: u64 = CODE + 0x2_0000;
const STUB: u64 = CODE + 0x3_0000;
/// The code of `COMPILED` that creates its frame: push %rbp; sub $0x20, %rsp.
const PROLOGUE: [u8; 5] = [0x55, 0x48, 0x83, 0xec, 0x20];
/// add $0x20, %rsp; pop %rbp; cmp 0x348(%r15), %rsp; ja +0x20; ret
const EPILOGUE: [u8; 19] = [
    0x48, 0x83, 0xc4, 0x20, 0x5d, 0x49, 0x3b, 0xa7, 0x48, 0x03, 0, 0, 0x0f, 0x87, 0x20, 0, 0, 0,
    0xc3,
];
const END: u64 = COMPILED + 0x800;
/// nop, three times; add $0x20, %rsp; pop %rbp; jmp to other code, with an exception
const UNWINDING: [u8; 13] = [
    0x90, 0x90, 0x90, 0x48, 0x83, 0xc4, 0x20, 0x5d, 0xe9, 0, 0, 0x10, 0,
];
const RETHROW: u64 = COMPILED + 0x900;
/// movabs $0, %r10; mov %r10, 0x358(%r15); jmp to other code, from a return
const POLLING: [u8; 22] = [
    0x49, 0xba, 0, 0, 0, 0, 0, 0, 0, 0, 0x4d, 0x89, 0x97, 0x58, 0x03, 0, 0, 0xe9, 0, 0, 0x10, 0,
];
const SAFEPOINT: u64 = COMPILED + 0xa00;
/// nop, eight times; jmp to other code, which removes the frame
const HANDLING: [u8; 13] = [
    0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xe9, 0, 0, 0x10, 0,
];
const HANDLER: u64 = COMPILED + 0xb00;
const EXCEPTION: u64 = CODE + 0x4_0000;
const CONTINUATION: u64 = CODE + 0x5_0000;
/// push %rdx; sub $8, %rsp; mov %rbp, (%rsp); nop; add $8, %rsp; pop %rdx; jmp *%rax
const HANDLER_SEARCH: [u8; 17] = [
    0x52, 0x48, 0x83, 0xec, 8, 0x48, 0x89, 0x2c, 0x24, 0x90, 0x48, 0x83, 0xc4, 8, 0x5a, 0xff, 0xe0,
];
/// vzeroupper; ret
const LEAF: [u8; 4] = [0xc5, 0xf8, 0x77, 0xc3];
const STACK: u64 = 0x7ffd_0000_0000;
const METHOD: u64 = 0x7e00_0000;
/// One that an address represents.
const NAMED_METHOD: u64 = METHOD + 0x100;
const REPRESENTED: u64 = 1 << 57;
const BYTECODES: Range<u64> = 0x7e10_0000..0x7e10_0040;

/// The machine's descriptions, and the code that can be read.
struct Machine(HashMap<u64, Vec<u8>>);

impl Memory for Machine {
    fn read(&mut self, _: u64, _: &mut [u8]) -> usize {
        0
    }

    fn read_lasting(&mut self, address: u64, buffer: &mut [u8]) -> usize {
        let holds = |(start, bytes): &(&u64, &Vec<u8>)| {
            (**start..**start + bytes.len() as u64).contains(&address)
        };
        let Some((start, bytes)) = self.0.iter().find(holds) else {
            return 0;
        };
        let bytes = &bytes[(address - start) as usize..];
        let count = bytes.len().min(buffer.len());
        buffer[..count].copy_from_slice(&bytes[..count]);
        count
    }

    fn jit_code(&mut self, address: u64) -> Option<JitCode> {
        let start = address & !0xffff;
        let frames = match start {
            INTERPRETER => JitFrames::HotSpotInterpreter,
            COMPILED => JitFrames::Fixed {
                size: 0x30,
                complete: Some(COMPILED + PROLOGUE.len() as u64),
            },
            OTHER => JitFrames::Fixed {
                size: 0x10,
                complete: None,
            },
            STUB => JitFrames::Unknown,
            CONTINUATION => JitFrames::HotSpotContinuation,
            EXCEPTION => JitFrames::Stub {
                size: 0x10,
                pushes_return_address: true,
            },
            _ => return None,
        };
        let range = start..start + 0x1_0000;
        Some(JitCode { range, frames })
    }

    fn bytecodes(&mut self, method: u64) -> Option<Range<u64>> {
        [METHOD, NAMED_METHOD]
            .contains(&method)
            .then_some(BYTECODES)
    }

    fn interpreted_method(&mut self, method: u64) -> Option<u64> {
        (method == NAMED_METHOD).then_some(REPRESENTED)
    }
}

/// The state of a sample: its registers, and the words on its stack.
struct Sampled<'a> {
    ip: u64,
    bp: u64,
    r13: u64,
    stack: &'a [u64],
}

#[track_caller]
fn check(sampled: &Sampled<'_>, callers: &[u64], end: StackEnd) {
    let callers = callers.iter().map(|caller| caller - 1);
    let frames: Vec<u64> = [sampled.ip].into_iter().chain(callers).collect();
    assert_eq!(unwind(sampled), (frames, end));
}

/// The call chain of a sample, and why it ends.
fn unwind(sampled: &Sampled<'_>) -> (Vec<u64>, StackEnd) {
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
    let bytes: Vec<u8> = sampled
        .stack
        .iter()
        .flat_map(|it| it.to_le_bytes())
        .collect();
    // ax, bp, sp, ip and r13, as perf numbers them.
    let mask = 1 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 21;
    let values = [0, sampled.bp, STACK, sampled.ip, sampled.r13];
    let registers = UserRegisters::new(RegisterAbi::Bits64, mask, values).expect("registers");
    let code = [
        (COMPILED, PROLOGUE.to_vec()),
        (END, EPILOGUE.to_vec()),
        (RETHROW, UNWINDING.to_vec()),
        (SAFEPOINT, POLLING.to_vec()),
        (HANDLER, HANDLING.to_vec()),
        (STUB, LEAF.to_vec()),
        (EXCEPTION, HANDLER_SEARCH.to_vec()),
    ];
    let mut frames = Vec::new();
    let unwound = Unwinder::for_architecture(Architecture::X86_64, LocalFiles).unwind(
        &Target {
            pid: 1,
            process: processes.get(1).expect("process"),
            modules: &modules,
        },
        &UserState {
            registers: &registers,
            dump: StackDump {
                start: STACK,
                bytes: &bytes,
                full: false,
            },
        },
        &mut Machine(code.into_iter().collect()),
        &mut frames,
    );
    (frames, unwound.end)
}

/// A sample in a compiled function that was called by another one.
#[track_caller]
fn check_compiled(offset: u64, stack: &[u64]) {
    let sampled = Sampled {
        ip: COMPILED + offset,
        bp: 0x1234,
        r13: 0,
        stack,
    };
    // The other one's caller is nowhere.
    check(&sampled, &[OTHER + 0x20], StackEnd::JitFrame);
}

#[test]
fn frames_of_compiled_code_have_one_size() {
    check_compiled(0x100, &[1, 2, 3, 4, 0x1234, OTHER + 0x20, 0, 0]);
}

#[test]
fn prologue_and_epilogue_have_parts_of_a_frame() {
    check_compiled(0, &[OTHER + 0x20, 0, 0]);
    check_compiled(1, &[0x1234, OTHER + 0x20, 0, 0]);
    let whole = [1, 2, 3, 4, 0x1234, OTHER + 0x20, 0, 0];
    check_compiled(PROLOGUE.len() as u64, &whole);
    check_compiled(0x800, &whole);
    check_compiled(0x804, &whole[4..]);
    check_compiled(0x805, &whole[5..]);
    check_compiled(0x800 + EPILOGUE.len() as u64 - 1, &whole[5..]);
}

/// The words of its caller's frame look like return addresses.
#[test]
fn code_that_leaves_by_a_jump_may_have_removed_its_frame() {
    let whole = [
        1,
        2,
        3,
        4,
        0x1234,
        OTHER + 0x20,
        3,
        4,
        5,
        6,
        7,
        OTHER + 0x40,
    ];
    check_compiled(0x903, &whole);
    check_compiled(0x907, &whole[4..]);
    check_compiled(0x908, &whole[5..]);
    for offset in [0, 10, 17] {
        check_compiled(0xa00 + offset, &whole[5..]);
    }
    for offset in [4, 8] {
        check_compiled(0xb00 + offset, &whole);
    }
}

#[test]
fn stubs_have_a_frame_or_none() {
    let sampled = Sampled {
        ip: STUB,
        bp: 0x1234,
        r13: 0,
        stack: &[OTHER + 0x20, 0, 0],
    };
    check(&sampled, &[OTHER + 0x20], StackEnd::JitFrame);
}

/// The words of its caller's frame look like return addresses.
#[test]
fn stubs_that_push_the_return_address_have_a_frame_meanwhile() {
    let check = |offset: u64, stack: &[u64], callers: &[u64]| {
        let sampled = Sampled {
            ip: EXCEPTION + offset,
            bp: 0x1234,
            r13: 0,
            stack,
        };
        check(&sampled, callers, StackEnd::JitFrame);
    };
    let pushed = [0x1234, OTHER + 0x20, STUB + 1, 0, 0, 0];
    for offset in [5, 9, 10] {
        check(offset, &pushed, &[OTHER + 0x20]);
    }
    check(0, &pushed[2..], &[]);
    check(1, &pushed[1..], &[]);
    check(14, &pushed[1..], &[]);
    check(15, &pushed[2..], &[]);
}

/// Return addresses into it are leftovers.
#[test]
fn stubs_that_call_the_virtual_machine_are_no_callers() {
    let whole = [1, 2, 3, 4, 0x1234, EXCEPTION + 9, 0, 0];
    let sampled = Sampled {
        ip: COMPILED + 0x100,
        bp: 0x1234,
        r13: 0,
        stack: &whole,
    };
    check(&sampled, &[], StackEnd::JitFrame);
}

/// Their callers are on the heap, of which nothing is on the stack.
#[test]
fn virtual_threads_that_have_waited_return_to_a_stub() {
    let sampled = Sampled {
        ip: COMPILED + 0x100,
        bp: 0,
        r13: 0,
        stack: &[1, 2, 3, 4, 0x1234, CONTINUATION + 9, 0, OTHER + 0x20],
    };
    check(&sampled, &[CONTINUATION + 9], StackEnd::OnJavaHeap);
}

/// The frame of an interpreted method that compiled code called, with space for its arguments, and
/// its stored values.
fn interpreted(bytecode: u64) -> [u64; 20] {
    let at = |index: u64| STACK + 8 * index;
    let mut stack = [0; 20];
    stack[1] = bytecode;
    stack[6] = METHOD;
    stack[8] = at(12);
    stack[9] = 0x5678;
    stack[10] = COMPILED + 0x40;
    stack[16] = 0x9abc;
    stack[17] = OTHER + 0x20;
    stack
}

#[test]
fn interpreted_methods_keep_the_frame_pointer() {
    let stack = interpreted(0);
    let mut sampled = Sampled {
        ip: INTERPRETER + 0x100,
        bp: STACK + 8 * 9,
        r13: BYTECODES.start + 3,
        stack: &stack,
    };
    let callers = [COMPILED + 0x40, OTHER + 0x20];
    check(&sampled, &callers, StackEnd::JitFrame);
    // While a frame is created, the register does not point into the method of the next frame.
    sampled.r13 = STACK;
    check(&sampled, &[], StackEnd::JitFrame);
    sampled.r13 = BYTECODES.start;
    sampled.bp += 8;
    check(&sampled, &[], StackEnd::JitFrame);
    // Around a call, the bytecode is in the frame only.
    let stack = interpreted(BYTECODES.start + 3);
    let sampled = Sampled {
        ip: INTERPRETER + 0x100,
        bp: STACK + 8 * 9,
        r13: STACK,
        stack: &stack,
    };
    check(&sampled, &callers, StackEnd::JitFrame);
    // While the frame is created, not all of it is on the stack.
    let mut stack = interpreted(0)[6..].to_vec();
    stack[2] -= 48;
    let sampled = Sampled {
        ip: INTERPRETER + 0x100,
        bp: STACK + 8 * 3,
        r13: BYTECODES.start,
        stack: &stack,
    };
    check(&sampled, &callers, StackEnd::JitFrame);
}

/// A method is called by an interpreted one, and has no frame yet. From JDK 22 on, the caller has
/// stored the distance of its stack pointer from its frame pointer.
#[test]
fn frames_of_methods_that_begin_are_the_callers() {
    check_entries(|stored, _| STACK + 8 * stored);
    check_entries(|stored, frame| stored.wrapping_sub(frame));
}

/// `form`: how a frame stores a stack pointer. It and the frame pointer are given in words.
fn check_entries(form: impl Fn(u64, u64) -> u64) {
    let check_entry = |inner: &[u64], stored: u64, callers: &[u64]| {
        let length = inner.len() as u64;
        let mut frame = interpreted(BYTECODES.start + 5);
        frame[7] = form(stored, length + 9);
        frame[8] += 8 * length;
        let sampled = Sampled {
            ip: INTERPRETER + 0x100,
            bp: STACK + 8 * (length + 9),
            r13: STACK + 8 * length,
            stack: &[inner, &frame].concat(),
        };
        check(&sampled, callers, StackEnd::JitFrame);
    };
    let callers = [INTERPRETER + 0x200, COMPILED + 0x40, OTHER + 0x20];
    check_entry(&[INTERPRETER + 0x200], 1, &callers);
    check_entry(&[INTERPRETER + 0x200], 2, &[]);
    check_entry(&[STACK + 8 * 11, INTERPRETER + 0x200], 2, &callers);
    check_entry(&[1, 2], 2, &[]);
}

#[test]
fn interpreted_callers_are_at_a_bytecode() {
    let check_bytecode = |bytecode, callers: &[u64]| {
        let inner = [0x9999, INTERPRETER + 0x200];
        let mut stack = [0; 22];
        stack[..2].copy_from_slice(&inner);
        stack[2..].copy_from_slice(&interpreted(bytecode));
        stack[10] += 16;
        let bp = STACK + 8 * 11;
        stack[0] = bp;
        let sampled = Sampled {
            ip: COMPILED + 1,
            bp: 0,
            r13: 0,
            stack: &stack,
        };
        check(&sampled, callers, StackEnd::JitFrame);
    };
    let callers = [INTERPRETER + 0x200, COMPILED + 0x40, OTHER + 0x20];
    check_bytecode(BYTECODES.start + 5, &callers);
    check_bytecode(BYTECODES.end, &callers[..1]);
}

#[test]
fn addresses_represent_interpreted_methods() {
    let mut frame = interpreted(BYTECODES.start + 5);
    frame[6] = NAMED_METHOD;
    let mut sampled = Sampled {
        ip: INTERPRETER + 0x100,
        bp: STACK + 8 * 9,
        r13: BYTECODES.start + 3,
        stack: &frame,
    };
    let callers = [COMPILED + 0x3f, OTHER + 0x1f];
    let whole = [&[REPRESENTED], &callers[..]].concat();
    assert_eq!(unwind(&sampled), (whole, StackEnd::JitFrame));
    // The frame is another one's.
    let mut other = frame;
    other[1] = BYTECODES.end;
    (sampled.r13, sampled.stack) = (STACK, &other);
    check(&sampled, &[], StackEnd::JitFrame);
    // A method that begins has no frame: its caller has.
    let mut frame = interpreted(BYTECODES.start + 5);
    (frame[6], frame[7], frame[8]) = (NAMED_METHOD, STACK + 8, STACK + 8 * 13);
    let sampled = Sampled {
        ip: INTERPRETER + 0x100,
        bp: STACK + 8 * 10,
        r13: STACK + 8,
        stack: &[&[INTERPRETER + 0x200], &frame[..]].concat(),
    };
    let whole = [&[INTERPRETER + 0x100, REPRESENTED], &callers[..]].concat();
    assert_eq!(unwind(&sampled), (whole, StackEnd::JitFrame));
}
