//! The layout that CPython itself publishes from 3.13 on: `_Py_DebugOffsets`, at the start of
//! `_PyRuntime`.

use crate::Memory;

use super::layout::{
    CodeLayout, Current, FrameLayout, Instruction, Instructions, PythonLayout, ThreadId,
};
use crate::read::word_at;

/// No offset is larger: 3.13 has the threads of an interpreter at 7,344.
const LARGEST: u64 = 32 << 10;

/// The indices of the fields in the published numbers.
pub(super) struct Published {
    next_thread: u16,
    current_frame: u16,
    native_thread_id: u16,
    previous: u16,
    executable: u16,
    instruction: u16,
    owner: u16,
    filename: u16,
    qualname: u16,
    linetable: u16,
    firstlineno: u16,
    instructions: u16,
}

/// `_Py_DebugOffsets` of 3.13 (pycore_runtime.h), in words.
pub(super) const V3_13: Published = Published {
    next_thread: 21,
    current_frame: 23,
    native_thread_id: 25,
    previous: 29,
    executable: 30,
    instruction: 31,
    owner: 33,
    filename: 35,
    qualname: 37,
    linetable: 38,
    firstlineno: 39,
    instructions: 43,
};

/// The offsets of 3.14 (pycore_debug_offsets.h).
pub(super) const V3_14: Published = Published {
    next_thread: 24,
    current_frame: 26,
    native_thread_id: 28,
    previous: 32,
    executable: 33,
    instruction: 34,
    owner: 36,
    filename: 40,
    qualname: 42,
    linetable: 43,
    firstlineno: 44,
    instructions: 48,
};

impl Published {
    /// The layout that an interpreter of this version publishes. Everything else is as in `others`.
    pub(super) fn layout(
        &self,
        version: u32,
        others: PythonLayout,
        runtime: u64,
        memory: &mut impl Memory,
    ) -> Option<PythonLayout> {
        let mut bytes = [0; 8 * 72];
        if memory.read(runtime, &mut bytes) < bytes.len() || !bytes.starts_with(b"xdebugpy") {
            return None;
        }
        let number = |index: u16| word_at(&bytes, index * 8);
        let offset = |index| u16::try_from(number(index).filter(|&it| it <= LARGEST)?).ok();
        // Builds without the interpreter's lock have other object layouts.
        if number(1)? != u64::from(version) || number(2)? != 0 {
            return None;
        }
        let layout = PythonLayout {
            interpreters: offset(5)?,
            next_interpreter: offset(8)?,
            threads: offset(9)?,
            next_thread: offset(self.next_thread)?,
            thread_id: ThreadId::Kernel(offset(self.native_thread_id)?),
            current: Current::Frame(offset(self.current_frame)?),
            frame: FrameLayout {
                previous: offset(self.previous)?,
                code: offset(self.executable)?,
                instruction: Instruction::Address(offset(self.instruction)?),
                owner: offset(self.owner)?,
                ..others.frame
            },
            code: CodeLayout {
                filename: offset(self.filename)?,
                qualname: offset(self.qualname)?,
                linetable: offset(self.linetable)?,
                firstlineno: offset(self.firstlineno)?,
                instructions: Instructions::Inside(offset(self.instructions)?),
                ..others.code
            },
            ..others
        };
        layout.is_plausible().then_some(layout)
    }
}

#[cfg(test)]
mod tests {
    use super::super::versions::{V3_12, layout_of};
    use super::*;

    /// The words at the start of `_PyRuntime` of 3.13.0 and 3.14.10, after the first two.
    const NUMBERS_3_13: [u64; 42] = [
        0, 0, 0, 632, 0, 0, 7264, 7344, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 72, 0, 160, 0, 0, 0,
        8, 0, 56, 72, 70, 0, 112, 120, 128, 136, 68, 0, 0, 0, 200,
    ];
    const NUMBERS_3_14: [u64; 47] = [
        0, 316_616, 784, 808, 225_864, 7280, 7272, 7344, 7360, 7408, 7688, 7672, 7680, 16, 7784, 0,
        7800, 7792, 7992, 0, 832, 0, 8, 16, 72, 152, 160, 232, 32, 88, 8, 0, 56, 80, 74, 64, 0,
        216, 112, 120, 128, 136, 68, 52, 96, 104, 208,
    ];
    const V3_13_0: u32 = 0x030d_00f0;
    const V3_14_10: u32 = 0x030e_0af0;

    /// `_PyRuntime` of a version, with these numbers at these indices.
    struct Runtime(u32, Vec<(usize, u64)>);

    impl Memory for Runtime {
        fn read(&mut self, _: u64, buffer: &mut [u8]) -> usize {
            let Self(version, changes) = self;
            let numbers = match *version >> 16 {
                0x030d => &NUMBERS_3_13[..],
                _ => &NUMBERS_3_14,
            };
            buffer.fill(0);
            let numbers = [0, u64::from(*version)]
                .into_iter()
                .chain(numbers.iter().copied());
            for (at, number) in numbers.enumerate().chain(changes.iter().copied()) {
                buffer[at * 8..at * 8 + 8].copy_from_slice(&number.to_le_bytes());
            }
            buffer[..8].copy_from_slice(b"xdebugpy");
            buffer.len()
        }
    }

    fn layout(version: u32, changes: &[(usize, u64)]) -> Option<PythonLayout> {
        layout_of(version, 0x1000, &mut Runtime(version, changes.to_vec()))
    }

    /// `changes`: another version, no lock, and offsets that lead nowhere, of threads, of the
    /// instruction and of the instructions.
    fn check(version: u32, expected: PythonLayout, changes: [(usize, u64); 5]) {
        assert_eq!(layout(version, &[]), Some(expected));
        for change in changes {
            assert_eq!(layout(version, &[change]), None, "{change:?}");
        }
    }

    /// The result of a C compiler for the headers of 3.14.10.
    const LAYOUT_3_14: PythonLayout = PythonLayout {
        interpreters: 808,
        next_interpreter: 7272,
        threads: 7344,
        next_thread: 8,
        thread_id: ThreadId::Kernel(160),
        current: Current::Frame(72),
        frame: FrameLayout {
            owner: 74,
            ..V3_12.frame
        },
        code: CodeLayout {
            instructions: Instructions::Inside(208),
            ..V3_12.code
        },
        ..V3_12
    };

    #[test]
    fn published_offsets_are_checked() {
        let layout_3_13 = PythonLayout {
            interpreters: 632,
            next_interpreter: 7264,
            frame: V3_12.frame,
            code: CodeLayout {
                instructions: Instructions::Inside(200),
                ..V3_12.code
            },
            ..LAYOUT_3_14
        };
        let far = 1 << 40;
        let others = [(1, 0x030d_01f0), (2, 1), (9, far), (31, 80), (43, 400)];
        check(V3_13_0, layout_3_13, others);
        let others = [(1, 0x030e_01f0), (2, 1), (9, far), (34, 80), (48, 400)];
        check(V3_14_10, LAYOUT_3_14, others);
        // A release candidate.
        assert_eq!(layout(0x030e_00c2, &[]), None);
    }
}
