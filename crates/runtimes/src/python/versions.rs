//! The layouts of CPython's versions: up to 3.12 in tables, later ones publish theirs.

use crate::Memory;

use super::layout::{
    CodeLayout, Current, Entry, FrameLayout, Instruction, Instructions, PythonLayout, StringLayout,
    ThreadId,
};
use super::lines::LineTable;
use super::published;

/// The layout of this version, given as `Py_Version`; `None` if unknown.
pub(super) fn layout_of(
    version: u32,
    runtime: u64,
    memory: &mut impl Memory,
) -> Option<PythonLayout> {
    // Before the first release of a version, its structures change.
    (version >> 4 & 0xf == 0xf).then_some(())?;
    match version >> 16 {
        0x0308 | 0x0309 => Some(V3_8),
        0x030a => Some(V3_10),
        0x030b => Some(V3_11),
        0x030c => Some(V3_12),
        0x030d => published::V3_13.layout(version, V3_12, runtime, memory),
        0x030e => published::V3_14.layout(version, V3_12, runtime, memory),
        _ => None,
    }
}

/// `offsetof` in the headers of 3.8.18, 64 bits; the structures are the same in 3.9.
pub(super) const V3_8: PythonLayout = PythonLayout {
    interpreters: 32,
    next_interpreter: 0,
    threads: 8,
    next_thread: 8,
    thread_id: ThreadId::Pthread { at: 176, main: 72 },
    current: Current::Frame(24),
    entry: Entry::Each,
    frame: FrameLayout {
        size: 112,
        code: 32,
        previous: 24,
        instruction: Instruction::Index { at: 104, unit: 1 },
        owner: 0,
        is_entry: 0,
    },
    code: CodeLayout {
        filename: 104,
        qualname: 112,
        linetable: 120,
        lines: LineTable::ByteDeltas,
        firstlineno: 40,
        instructions: Instructions::Bytes(48),
    },
    strings: V3_11.strings,
};

/// The layout of 3.10.13. An instruction is two bytes here.
const V3_10: PythonLayout = PythonLayout {
    frame: FrameLayout {
        instruction: Instruction::Index { at: 96, unit: 2 },
        ..V3_8.frame
    },
    code: CodeLayout {
        lines: LineTable::Ranges,
        ..V3_8.code
    },
    ..V3_8
};

/// The layout of 3.11.7; the structures are the same in all of 3.11.
pub(super) const V3_11: PythonLayout = PythonLayout {
    interpreters: 40,
    next_interpreter: 0,
    threads: 16,
    next_thread: 8,
    thread_id: ThreadId::Kernel(160),
    current: Current::CFrame {
        at: 56,
        current_frame: 8,
        previous: 16,
    },
    entry: Entry::Flag,
    frame: FrameLayout {
        size: 80,
        code: 32,
        previous: 48,
        instruction: Instruction::Address(56),
        owner: 69,
        is_entry: 68,
    },
    code: CodeLayout {
        filename: 112,
        qualname: 128,
        linetable: 136,
        lines: LineTable::Locations,
        firstlineno: 72,
        instructions: Instructions::Inside(184),
    },
    strings: StringLayout {
        state: 32,
        ascii: 48,
        compact: 72,
    },
};

/// The layout of 3.12.1.
pub(super) const V3_12: PythonLayout = PythonLayout {
    interpreters: 40,
    next_interpreter: 0,
    threads: 72,
    next_thread: 8,
    thread_id: ThreadId::Kernel(144),
    current: Current::CFrame {
        at: 56,
        current_frame: 0,
        previous: 8,
    },
    entry: Entry::OnStack,
    frame: FrameLayout {
        size: 80,
        code: 0,
        previous: 8,
        instruction: Instruction::Address(56),
        owner: 70,
        is_entry: 0,
    },
    code: CodeLayout {
        filename: 112,
        qualname: 128,
        linetable: 136,
        lines: LineTable::Locations,
        firstlineno: 68,
        instructions: Instructions::Inside(192),
    },
    strings: StringLayout {
        state: 32,
        ascii: 40,
        compact: 56,
    },
};

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers in the order of the output of `offsets.c`.
    fn numbers(layout: &PythonLayout) -> Vec<u16> {
        let (frame, code, strings) = (layout.frame, layout.code, layout.strings);
        let thread = match layout.thread_id {
            ThreadId::Kernel(at) => vec![at],
            ThreadId::Pthread { at, main } => vec![at, main],
        };
        let current = match layout.current {
            Current::Frame(at) => vec![at],
            Current::CFrame {
                at,
                current_frame,
                previous,
            } => vec![at, current_frame, previous],
        };
        let instruction = match frame.instruction {
            Instruction::Address(at) => vec![at, frame.owner],
            Instruction::Index { at, .. } => vec![at],
        };
        let (Instructions::Inside(instructions) | Instructions::Bytes(instructions)) =
            code.instructions;
        let threads = [
            layout.interpreters,
            layout.next_interpreter,
            layout.threads,
            layout.next_thread,
        ];
        let code = [
            code.filename,
            code.qualname,
            code.linetable,
            code.firstlineno,
            instructions,
        ];
        let strings = [strings.state, strings.ascii, strings.compact];
        let frame = [frame.code, frame.previous];
        [
            &threads[..],
            &thread,
            &current,
            &frame,
            &instruction,
            &code,
            &strings,
        ]
        .concat()
    }

    /// The result of a C compiler for the headers that pyenv and Debian install.
    fn of_headers(version: &str) -> Option<Vec<u16>> {
        let home = std::env::var("HOME").unwrap_or_default();
        let pyenv = std::fs::read_dir(format!("{home}/.pyenv/versions"));
        let pyenv = pyenv.into_iter().flatten().flatten();
        let mut folders = pyenv
            .map(|entry| entry.path().join("include").join(version))
            .chain([std::path::Path::new("/usr/include").join(version)]);
        let folder = folders.find(|it| it.join("internal/pycore_pystate.h").exists())?;
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("offsets");
        let built = std::process::Command::new("cc")
            .arg("-I")
            .arg(&folder)
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/offsets.c"))
            .arg("-o")
            .arg(&program)
            .status();
        assert!(built.unwrap().success(), "{}", folder.display());
        let printed = std::process::Command::new(program).output().unwrap().stdout;
        let printed = String::from_utf8(printed).unwrap();
        let numbers = printed.split_whitespace();
        Some(numbers.map(|number| number.parse().unwrap()).collect())
    }

    #[test]
    fn offsets_are_those_of_the_headers() {
        let versions = [
            ("python3.8", V3_8),
            ("python3.9", V3_8),
            ("python3.10", V3_10),
            ("python3.11", V3_11),
            ("python3.12", V3_12),
        ];
        for (version, layout) in versions {
            match of_headers(version) {
                Some(expected) => assert_eq!(numbers(&layout), expected, "{version}"),
                None => _ = prof_needs::met(version != "python3.11", "the headers of CPython 3.11"),
            }
        }
    }
}
