//! Compares frame by frame with gdb and eu-stack, for stopped processes.

use std::path::Path;
use std::process::Command;

use crate::support::live::{ProcessMemory, Target, signal};
use crate::support::programs::{OPTIMIZED, Workshop};
use prof_model::{Modules, RegisterAbi, StackEnd, UserRegisters};
use prof_needs::tools;
use prof_unwinder::{LocalFiles, Memory, StackDump, Target as Process, Unwinder, UserState};

/// The output of gdb: general registers in the kernel's order, then the program counter of each
/// frame that is really on the stack (not inlined, not inferred from tail calls).
const SCRIPT: &str = "python
names = 'rax rbx rcx rdx rsi rdi rbp rsp rip r8 r9 r10 r11 r12 r13 r14 r15'.split()
frame = gdb.newest_frame()
print('REGISTERS', *[int(frame.read_register(n)) & (2**64 - 1) for n in names])
pcs = []
while frame is not None:
    if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
        pcs.append(frame.pc())
    frame = frame.older()
print('FRAMES', *pcs)
";
/// ax to ip, then r8 to r15, of `enum perf_event_x86_regs`.
const MASK: u64 = 0x00ff_01ff;
const SP: usize = 7;

fn ask_gdb(pid: &str, workshop: &Workshop) -> (Vec<u64>, Vec<u64>) {
    let script = workshop.path("script");
    std::fs::write(&script, SCRIPT).expect("script");
    let output = Command::new("gdb")
        .args(["-nx", "-batch", "-ex", "set debuginfod enabled off"])
        .args([
            "-ex",
            "set backtrace past-main on",
            "-ex",
            "set backtrace past-entry on",
        ])
        .args(["-ex", "set backtrace limit unlimited", "-p", pid, "-x"])
        .arg(&script)
        .output()
        .expect("gdb");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let numbers = |name: &str| -> Vec<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let line = line.unwrap_or_else(|| panic!("{name} in {text}"));
        line.split_whitespace()
            .map(|number| number.parse().expect("number"))
            .collect()
    };
    (numbers("REGISTERS"), numbers("FRAMES"))
}

/// The program counter of each frame that `eu-stack` finds.
fn ask_eu_stack(pid: &str) -> Vec<u64> {
    let output = Command::new("eu-stack")
        .args(["-n", "0", "-p", pid])
        .output()
        .expect("eu-stack");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let frames = text.lines().filter(|line| line.starts_with('#'));
    frames
        .filter_map(|line| line.split_whitespace().nth(1)?.strip_prefix("0x"))
        .map(|address| u64::from_str_radix(address, 16).expect("an address"))
        .collect()
}

/// Our frames, gdb's and those of eu-stack must be the same, and ours whole.
fn check(program: &Path, arguments: &[&str], workshop: &Workshop) {
    let target = Target::start(program, arguments);
    let pid = target.pid();
    // A signal stops the program somewhere in its work.
    let used = |pid| std::fs::read_to_string(format!("/proc/{pid}/schedstat")).expect("schedstat");
    let busy = |text: String| text.split(' ').next().and_then(|ns| ns.parse::<u64>().ok());
    while busy(used(pid)).is_none_or(|ns| ns < 50_000_000) {
        std::thread::yield_now();
    }
    signal("STOP", &pid.to_string());
    let (registers, expected) = ask_gdb(&pid.to_string(), workshop);
    let by_eu_stack = ask_eu_stack(&pid.to_string());
    let mut memory = ProcessMemory::of(pid);
    let mut modules = Modules::default();
    let process = memory.process(pid, &mut modules);
    let start = registers[SP];
    let mut stack = vec![0; 32 << 10];
    let copied = memory.read(start, &mut stack);
    let mut frames = Vec::new();
    let unwound = Unwinder::new(LocalFiles).unwind(
        &Process {
            pid,
            process: &process,
            modules: &modules,
        },
        &UserState {
            registers: &UserRegisters::new(RegisterAbi::Bits64, MASK, registers)
                .expect("registers"),
            dump: StackDump {
                start,
                bytes: &stack[..copied],
                full: copied == stack.len(),
            },
        },
        &mut memory,
        &mut frames,
    );
    assert_eq!(unwound.end, StackEnd::Root);
    assert!(expected.len() > 3, "{expected:x?}");
    // Theirs are return addresses; ours are one less, except for interrupted frames.
    let same = |(ours, theirs): (&u64, &u64)| *ours == *theirs || *ours + 1 == *theirs;
    for (name, theirs) in [("gdb", &expected), ("eu-stack", &by_eu_stack)] {
        let agree = frames.len() == theirs.len() && frames.iter().zip(theirs).all(same);
        assert!(
            agree,
            "{program:?} {arguments:?}\nours {frames:x?}\n{name} {theirs:x?}"
        );
    }
}

#[test]
fn same_frames_as_gdb_and_eu_stack() {
    if !tools(&["gcc", "gdb", "eu-stack"]) {
        return;
    }
    let workshop = Workshop::new();
    let build = |name: &str, source: &str, flags: &[&str]| {
        workshop.build(name, "gcc", &[OPTIMIZED, &["-g", source], flags])
    };
    let recursion = build("recursion", "recursion.c", &[]);
    check(&recursion, &["10", "forever"], &workshop);
    check(&recursion, &["3000", "forever"], &workshop);
    let fixed = build("static", "recursion.c", &["-static"]);
    check(&fixed, &["200", "forever"], &workshop);
    let signals = build("signals", "signals.c", &[]);
    check(&signals, &["normal", "forever"], &workshop);
    check(&signals, &["alternate", "forever"], &workshop);
}
