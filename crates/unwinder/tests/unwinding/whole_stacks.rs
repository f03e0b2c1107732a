//! Whole stacks: real programs, compiled in every way that matters, recorded by perf, and unwound
//! from the registers and the dump alone.

use std::path::Path;

use crate::support::Samples;
use crate::support::programs::{Functions, NO_CFI, OPTIMIZED, Workshop};
use prof_needs::tools;

/// The largest dump that the kernel makes.
const LARGEST: u32 = 65_528;

/// The least share of whole stacks that the verdict calls good.
const GOOD: f64 = 0.995;

/// At least 99.9 % of the stacks must be whole (or all but one, in small recordings), and most
/// must go through `chain`: functions of the program, each called by the next.
fn check(samples: &Samples, program: &Path, chain: &[&str]) {
    check_share(samples, program, chain, 0.999);
}

fn check_share(samples: &Samples, program: &Path, chain: &[&str], least: f64) {
    let (share, partial) = samples.summary();
    let count = samples.samples.len();
    assert!(count >= 10, "{program:?}: only {count} samples");
    let one = 1.0 / count as f64;
    assert!(
        share >= least.min(1.0 - one),
        "{program:?}: {share}\n{partial}"
    );
    let functions = Functions::of(program);
    let answers = samples.unwind(&mut prof_unwinder::Unwinder::new(prof_unwinder::LocalFiles));
    let through = samples
        .samples
        .iter()
        .zip(&answers)
        .filter(|(sample, answer)| {
            let names: Vec<_> = answer
                .frames
                .iter()
                .map(|&frame| functions.name(samples, sample, frame).unwrap_or("?"))
                .collect();
            chain.is_empty() || names.windows(chain.len()).any(|window| window == chain)
        });
    let (through, needed) = (through.count(), count / 2);
    assert!(
        through >= needed,
        "{program:?}: {through} of {count} through {chain:?}"
    );
}

fn check_c(name: &str, source: &str, compiler: &str, flags: &[&[&str]], chain: &[&str]) {
    let workshop = Workshop::new();
    let source = [source];
    let flags = [&[OPTIMIZED, &source], flags].concat();
    let program = workshop.build(name, compiler, &flags);
    check(&workshop.record(&program, &[], LARGEST), &program, chain);
}

const SHALLOW: &[&str] = &["spin_leaf", "spin", "inner", "middle", "outer", "main"];

fn check_shallow(name: &str, compiler: &str, flags: &[&str]) {
    check_c(name, "shallow.c", compiler, &[flags], SHALLOW);
}

#[test]
fn dynamic_and_static() {
    if !tools(&["perf", "gcc"]) {
        return;
    }
    check_shallow("dynamic", "gcc", &[]);
    check_shallow("static", "gcc", &["-static"]);
    check_shallow("static-pie", "gcc", &["-static-pie"]);
    check_shallow("no-pie", "gcc", &["-no-pie"]);
    check_c("stripped", "shallow.c", "gcc", &[&["-s"]], &[]);
}

#[test]
fn other_cfi_or_none() {
    if !tools(&["perf", "gcc", "clang"]) {
        return;
    }
    check_c(
        "debug_frame",
        "shallow.c",
        "gcc",
        &[NO_CFI, &["-g"]],
        SHALLOW,
    );
    let compressed = ["-g", "-gz=zlib"];
    check_c(
        "compressed",
        "shallow.c",
        "gcc",
        &[NO_CFI, &compressed],
        SHALLOW,
    );
    check_shallow("no-header", "gcc", &["-Wl,--no-eh-frame-hdr"]);
    check_shallow(
        "static-no-header",
        "gcc",
        &["-static", "-Wl,--no-eh-frame-hdr"],
    );
    let frame_pointers = ["-fno-omit-frame-pointer"];
    check_c(
        "fp",
        "shallow.c",
        "gcc",
        &[NO_CFI, &frame_pointers],
        SHALLOW,
    );
    check_c(
        "fp-clang",
        "shallow.c",
        "clang",
        &[NO_CFI, &frame_pointers],
        SHALLOW,
    );
    // Neither CFI nor frame pointers: the code itself is analyzed.
    check_c("nothing", "shallow.c", "gcc", &[NO_CFI], SHALLOW);
}

/// musl is built without any CFI, and without frame pointers.
#[test]
fn musl() {
    if !tools(&["perf", "musl-gcc"]) {
        return;
    }
    check_c("musl", "shallow.c", "musl-gcc", &[&["-static"]], SHALLOW);
    check_c(
        "musl-calls",
        "callbacks.c",
        "musl-gcc",
        &[&["-static"]],
        &[],
    );
    let handler = ["spin_leaf", "spin", "in_handler"];
    check_c(
        "musl-signals",
        "signals.c",
        "musl-gcc",
        &[&["-static"]],
        &handler,
    );
    let threads = ["-static", "-pthread"];
    check_c("musl-threads", "threads.c", "musl-gcc", &[&threads], &[]);
    // Its dynamic loader has no symbols either: where its functions begin is found for most only.
    let workshop = Workshop::new();
    let flags = &[OPTIMIZED, &["processes.c"]];
    let program = workshop.build("musl-processes", "musl-gcc", flags);
    let samples = workshop.record(&program, &[], LARGEST);
    check_share(&samples, &program, &[], 0.98);
}

#[test]
fn no_section_headers() {
    if !tools(&["perf", "gcc"]) {
        return;
    }
    let workshop = Workshop::new();
    let program = workshop.build("no-sections", "gcc", &[OPTIMIZED, &["shallow.c"]]);
    let mut bytes = std::fs::read(&program).expect("program");
    // e_shoff, then e_shnum and e_shstrndx.
    bytes[0x28..0x30].fill(0);
    bytes[0x3c..0x40].fill(0);
    std::fs::write(&program, bytes).expect("program");
    check(&workshop.record(&program, &[], 16 << 10), &program, &[]);
}

#[test]
fn linkers_and_layouts() {
    if !tools(&["perf", "gcc", "clang", "ld.lld", "mold"]) {
        return;
    }
    check_shallow("lld", "clang", &["-fuse-ld=lld"]);
    check_shallow("rosegment", "clang", &["-fuse-ld=lld", "-Wl,--rosegment"]);
    check_shallow(
        "no-rosegment",
        "clang",
        &["-fuse-ld=lld", "-Wl,--no-rosegment"],
    );
    check_shallow("mold", "clang", &["-fuse-ld=mold"]);
    let two_segments = ["-no-pie", "-Wl,-T,segments.ld"];
    check_shallow("segments", "gcc", &two_segments);
}

#[test]
fn calls_from_libc() {
    if !tools(&["perf", "gcc"]) {
        return;
    }
    check_c("callbacks", "callbacks.c", "gcc", &[], &[]);
    check_c(
        "callbacks-static",
        "callbacks.c",
        "gcc",
        &[&["-static"]],
        &[],
    );
    let lazy = ["-Wl,-z,lazy", "-fno-builtin"];
    check_c("callbacks-lazy", "callbacks.c", "gcc", &[&lazy], &[]);
    check_c(
        "ifunc",
        "ifunc.c",
        "gcc",
        &[],
        &["spin_leaf", "fast", "main"],
    );
    check_c("vdso", "vdso.c", "gcc", &[], &["ask", "main"]);
}

#[test]
fn unusual_frames() {
    if !tools(&["perf", "gcc", "clang"]) {
        return;
    }
    check_c("frames", "frames.c", "gcc", &[], &[]);
    check_c("frames-clang", "frames.c", "clang", &[], &[]);
    check_c("frames-avx", "frames.c", "gcc", &[&["-O3", "-mavx2"]], &[]);
}

#[test]
fn recursion() {
    if !tools(&["perf", "gcc"]) {
        return;
    }
    let workshop = Workshop::new();
    let program = workshop.build("recursion", "gcc", &[OPTIMIZED, &["recursion.c"]]);
    for depth in ["100", "1900"] {
        let samples = workshop.record(&program, &[depth], LARGEST);
        check(&samples, &program, &["descend", "descend", "descend"]);
    }
}

#[test]
fn signal_handlers() {
    if !tools(&["perf", "gcc"]) {
        return;
    }
    let chain = ["spin_leaf", "spin", "in_handler"];
    let workshop = Workshop::new();
    let program = workshop.build("signals", "gcc", &[OPTIMIZED, &["signals.c"]]);
    check(
        &workshop.record(&program, &["normal"], LARGEST),
        &program,
        &chain,
    );
    check_c(
        "signals-static",
        "signals.c",
        "gcc",
        &[&["-static"]],
        &chain,
    );
}

#[test]
fn assembly() {
    if !tools(&["perf", "gcc"]) {
        return;
    }
    check_c("assembly", "assembly.c", "gcc", &[&["assembly.S"]], &[]);
}

#[test]
fn threads_and_processes() {
    if !tools(&["perf", "gcc"]) {
        return;
    }
    check_c(
        "threads",
        "threads.c",
        "gcc",
        &[&["-pthread", "-static"]],
        &[],
    );
    check_c("processes", "processes.c", "gcc", &[], &[]);
}

#[test]
fn libraries_that_come_and_go() {
    if !tools(&["perf", "gcc"]) {
        return;
    }
    let workshop = Workshop::new();
    let shared: &[&str] = &["-shared", "-fPIC", "library.c"];
    let small = workshop.build("small.so", "gcc", &[OPTIMIZED, shared, &["-DSIZE=96"]]);
    let large = workshop.build("large.so", "gcc", &[OPTIMIZED, shared, &["-DSIZE=1000"]]);
    let program = workshop.build("libraries", "gcc", &[OPTIMIZED, &["libraries.c"]]);
    let arguments = [small.to_str(), large.to_str()].map(|path| path.expect("UTF-8"));
    check(
        &workshop.record(&program, &arguments, 8 << 10),
        &program,
        &[],
    );
}

#[test]
fn coroutines() {
    if !tools(&["perf", "gcc"]) {
        return;
    }
    let chain = ["spin_leaf", "step", "body"];
    check_c("coroutines", "coroutines.c", "gcc", &[], &chain);
    check_c("switch", "switch.c", "gcc", &[&["switch.S"]], &chain);
}

#[test]
fn just_in_time_code() {
    if !tools(&["perf", "gcc"]) {
        return;
    }
    check_c("jit", "jit.c", "gcc", &[], &[]);
}

#[test]
fn inlining() {
    if !tools(&["perf", "g++", "clang++", "rustc"]) {
        return;
    }
    let workshop = Workshop::new();
    for compiler in ["g++", "clang++"] {
        let program = workshop.build(compiler, compiler, &[&["-O3", "inlining.cc"]]);
        let samples = workshop.record(&program, &[], 16 << 10);
        check(&samples, &program, &["_Z13round_of_worki", "main"]);
    }
    let rust = ["--edition=2021", "-O", "inlining.rs"];
    let program = workshop.build("rust", "rustc", &[&rust]);
    check(&workshop.record(&program, &[], 16 << 10), &program, &[]);
}

/// While an exception lands, libgcc overwrites the registers that CFI restores.
#[test]
fn exceptions_without_end() {
    if !tools(&["perf", "g++", "clang++"]) {
        return;
    }
    for compiler in ["g++", "clang++"] {
        // In a static executable, libgcc is a part of the program.
        for flags in [OPTIMIZED, &["-O0"], &["-O2", "-static"]] {
            let workshop = Workshop::new();
            let flags = [flags, &["throwing.cc"]];
            let program = workshop.build("throwing", compiler, &flags);
            let samples = workshop.record(&program, &[], 16 << 10);
            check_share(&samples, &program, &["_Z7catcheri", "main"], GOOD);
        }
    }
}

/// `longjmp` and `setcontext` restore the registers of another frame.
#[test]
fn jumps_without_end() {
    if !tools(&["perf", "gcc"]) {
        return;
    }
    let workshop = Workshop::new();
    for flags in [&[][..], &["-D_FORTIFY_SOURCE=2"]] {
        let flags = [OPTIMIZED, flags, &["jumping.c"]];
        let program = workshop.build("jumping", "gcc", &flags);
        let samples = workshop.record(&program, &[], LARGEST);
        check_share(&samples, &program, &["catcher", "main"], GOOD);
    }
    let flags = [OPTIMIZED, &["switching.c"]];
    let program = workshop.build("switching", "gcc", &flags);
    // While swapcontext loads the registers, the program counter is in its context only.
    check_share(
        &workshop.record(&program, &[], LARGEST),
        &program,
        &[],
        0.99,
    );
}
