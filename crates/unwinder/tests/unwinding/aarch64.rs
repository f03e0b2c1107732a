//! aarch64 stacks, on any machine.
//!
//! `tests/data/aarch64-*` are `tests/programs/snapshot_aarch64.c`, built by Debian's
//! aarch64-linux-gnu-gcc 12 with `-O2 -nostdlib -static -fno-stack-protector -Wl,--build-id=none,\
//! -z,max-page-size=4096,-z,noseparate-code` and
//! - cfi: `-fomit-frame-pointer -fasynchronous-unwind-tables`
//! - pac: the same and `-mbranch-protection=pac-ret`
//! - fp: `-fno-omit-frame-pointer -fno-asynchronous-unwind-tables -fno-unwind-tables -DNO_CFI`
//! - debug: `-fomit-frame-pointer -fno-asynchronous-unwind-tables -fno-unwind-tables -g`
//! - bare: `-fomit-frame-pointer -fno-asynchronous-unwind-tables -fno-unwind-tables -DNO_CFI`
//! - musl: the options of fp and `-DLIKE_MUSL`
//! - mixed: two objects, one with the options of fp and `-DMIDDLE_ALONE`, the other with
//!   those of cfi and `-DWITHOUT_MIDDLE`
//!
//! and the `.snapshot` files are their output under `qemu-aarch64 -cpu max`.

use std::path::Path;

use crate::support::programs::Functions;
use crate::support::{Samples, UserSample};
use object::{Object, ObjectSegment};
use prof_model::{
    AbsoluteAddress, FileOffset, Mapping, Module, Modules, Processes, RegisterAbi, StackEnd,
    UserRegisters,
};
use prof_unwinder::{Architecture, LocalFiles, NoMemory, StackDump, Target, Unwinder, UserState};

const REGISTERS: usize = 33;
const SP: usize = 31;

/// The program and its snapshot as a recording of one sample.
fn load(program: &Path) -> Samples {
    let mut snapshot = program.as_os_str().to_owned();
    snapshot.push(".snapshot");
    let bytes = std::fs::read(snapshot).expect("snapshot");
    let (registers, stack) = bytes.split_at(8 * REGISTERS);
    let values: Vec<u64> = registers
        .chunks_exact(8)
        .map(|bytes| u64::from_le_bytes(bytes.try_into().expect("8 bytes")))
        .collect();
    let mut modules = Modules::default();
    let module = modules.intern(Module::from_path(program));
    let mut processes = Processes::default();
    let image = std::fs::read(program).expect("program");
    let file = object::File::parse(&*image).expect("ELF");
    for segment in file.segments() {
        let (offset, size) = segment.file_range();
        let mapping = Mapping {
            start: AbsoluteAddress(segment.address() & !0xfff),
            end: AbsoluteAddress((segment.address() + size).next_multiple_of(0x1000)),
            file_offset: FileOffset(offset & !0xfff),
            module,
            executable: true,
        };
        processes.map(1, mapping);
    }
    let mask = (1 << REGISTERS) - 1;
    let sample = UserSample {
        pid: 1,
        tid: 1,
        process: processes.get(1).expect("process").clone(),
        stack_start: values[SP],
        registers: UserRegisters::new(RegisterAbi::Bits64, mask, values).expect("registers"),
        stack: stack.to_vec(),
        full: false,
    };
    Samples {
        modules,
        samples: vec![sample],
    }
}

fn check(name: &str) {
    check_from(name, &["program", "_start"]);
}

/// `outermost`: the functions that have called the others.
fn check_from(name: &str, outermost: &[&str]) {
    let directory = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data"));
    let program = directory.join(name);
    let samples = load(&program);
    let sample = &samples.samples[0];
    let mut frames = Vec::new();
    let unwound = Unwinder::for_architecture(Architecture::Aarch64, LocalFiles).unwind(
        &Target {
            pid: 1,
            process: &sample.process,
            modules: &samples.modules,
        },
        &UserState {
            registers: &sample.registers,
            dump: StackDump {
                start: sample.stack_start,
                bytes: &sample.stack,
                full: false,
            },
        },
        &mut NoMemory,
        &mut frames,
    );
    let functions = Functions::of(&program);
    let names: Vec<_> = frames
        .iter()
        .map(|&frame| functions.name(&samples, sample, frame).unwrap_or("?"))
        .collect();
    let mut expected = vec!["snapshot", "inner", "middle"];
    expected.extend(["descend"; 21]);
    expected.extend(outermost);
    assert_eq!((names, unwound.end), (expected, StackEnd::Root), "{name}");
}

#[test]
fn cfi() {
    check("aarch64-cfi");
}

#[test]
fn signed_return_addresses() {
    check("aarch64-pac");
}

#[test]
fn frame_pointers_without_cfi() {
    check("aarch64-fp");
}

/// Only the code says where the return addresses are: frame pointers would leave out callers.
#[test]
fn neither_frame_pointers_nor_cfi() {
    check("aarch64-bare");
}

/// musl's start code leaves a frame record of zeros, and its callee does not return.
#[test]
fn start_without_cfi() {
    check_from("aarch64-musl", &["program"]);
}

/// Frame records are at the bottom of frames: they do not say where the callers' frames begin, to
/// which CFI refers.
#[test]
fn code_with_cfi_below_code_without() {
    check("aarch64-mixed");
}

#[test]
fn debug_frame() {
    check("aarch64-debug");
}
