//! Where fields are in CPython's structures.

use crate::Memory;

use crate::read::{word, word_at};

/// Offsets of fields, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// `_PyRuntimeState.interpreters.head`.
    pub(super) interpreters: u16,
    /// `PyInterpreterState`.
    pub(super) next_interpreter: u16,
    pub(super) threads: u16,
    /// `PyThreadState`.
    pub(super) next_thread: u16,
    pub(super) native_thread_id: u16,
    pub(super) current: Current,
    pub(super) entry: Entry,
    pub(super) frame: FrameLayout,
    pub(super) code: CodeLayout,
    pub(super) strings: StringLayout,
}

/// Where the thread's innermost frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Current {
    /// `PyThreadState.current_frame`.
    Frame(u16),
    /// `PyThreadState.cframe`, a `_PyCFrame` on the native stack.
    CFrame {
        at: u16,
        current_frame: u16,
        previous: u16,
    },
}

/// How the outermost frame of an activation shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// By its `is_entry` flag. The anchor is the `_PyCFrame`.
    Flag(u16),
    /// The frame after it is owned by the native stack, and is the anchor.
    OnStack,
}

/// `_PyInterpreterFrame`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameLayout {
    pub(super) code: u16,
    pub(super) previous: u16,
    pub(super) instruction: u16,
    pub(super) owner: u16,
}

/// `PyCodeObject`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CodeLayout {
    pub(super) filename: u16,
    pub(super) qualname: u16,
    pub(super) linetable: u16,
    pub(super) firstlineno: u16,
    /// The instructions, up to the end of the object.
    pub(super) instructions: u16,
}

/// Objects of types `bytes` and `str`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StringLayout {
    /// `PyASCIIObject`: its state, and its size, after which ASCII text stands.
    pub(super) state: u16,
    pub(super) ascii: u16,
    /// The size of `PyCompactUnicodeObject`, after which other text stands.
    pub(super) compact: u16,
}

/// `FRAME_OWNED_BY_CSTACK` of 3.12 and 3.13 (pycore_frame.h).
pub(super) const OWNED_BY_C_STACK: u8 = 3;

/// What no offset exceeds: 3.13 has the threads of an interpreter at 7,344.
const LARGEST: u64 = 32 << 10;
/// The frame and the head of a code object are read as a whole.
pub(super) const FRAME_SIZE: usize = 80;
pub(super) const CODE_SIZE: usize = 256;

impl Layout {
    /// Of this version, as `Py_Version` has it; `None` if it is not known.
    pub(super) fn of(version: u32, runtime: u64, memory: &mut impl Memory) -> Option<Self> {
        // Before the first release of a version, its structures change.
        let is_final = version >> 4 & 0xf == 0xf;
        match version >> 16 {
            0x030b if is_final => Some(V3_11),
            0x030c if is_final => Some(V3_12),
            0x030d => Self::published(version, runtime, memory),
            _ => None,
        }
    }

    /// What the interpreter publishes at the start of `_PyRuntime` (`_Py_DebugOffsets`).
    fn published(version: u32, runtime: u64, memory: &mut impl Memory) -> Option<Self> {
        let mut bytes = [0; 8 * 72];
        if memory.read(runtime, &mut bytes) < bytes.len() || !bytes.starts_with(b"xdebugpy") {
            return None;
        }
        let number = |index: u16| word_at(&bytes, index * 8);
        let offset = |index| u16::try_from(number(index).filter(|&it| it <= LARGEST)?).ok();
        // Builds without the interpreter's lock have other objects.
        if number(1)? != u64::from(version) || number(2)? != 0 {
            return None;
        }
        let layout = Self {
            interpreters: offset(5)?,
            next_interpreter: offset(8)?,
            threads: offset(9)?,
            next_thread: offset(21)?,
            native_thread_id: offset(25)?,
            current: Current::Frame(offset(23)?),
            entry: Entry::OnStack,
            frame: FrameLayout {
                previous: offset(29)?,
                code: offset(30)?,
                instruction: offset(31)?,
                owner: offset(33)?,
            },
            code: CodeLayout {
                filename: offset(35)?,
                qualname: offset(37)?,
                linetable: offset(38)?,
                firstlineno: offset(39)?,
                instructions: offset(43)?,
            },
            strings: V3_12.strings,
        };
        layout.is_plausible().then_some(layout)
    }

    /// Whether what is read as a whole holds the fields.
    fn is_plausible(&self) -> bool {
        let FrameLayout {
            code: of_code,
            previous,
            instruction,
            owner,
        } = self.frame;
        let CodeLayout {
            filename,
            qualname,
            linetable,
            firstlineno,
            instructions,
        } = self.code;
        let fit =
            |offsets: &[u16], size: usize| offsets.iter().all(|&at| usize::from(at) + 8 <= size);
        fit(&[of_code, previous, instruction], FRAME_SIZE)
            && usize::from(owner) < FRAME_SIZE
            && fit(&[filename, qualname, linetable, firstlineno], CODE_SIZE)
            && usize::from(instructions) <= CODE_SIZE
    }

    /// The innermost frame of a thread, and the anchor that leads to it, if there is one.
    pub(super) fn current(
        &self,
        memory: &mut impl Memory,
        thread: u64,
    ) -> Option<(u64, Option<u64>)> {
        match self.current {
            Current::Frame(at) => Some((word(memory, thread.checked_add(at.into())?)?, None)),
            Current::CFrame {
                at, current_frame, ..
            } => {
                let cframe = word(memory, thread.checked_add(at.into())?)?;
                let frame = word(memory, cframe.checked_add(current_frame.into())?)?;
                Some((frame, Some(cframe)))
            }
        }
    }

    /// The `_PyCFrame` of the activation before that of this one.
    pub(super) fn previous_cframe(&self, memory: &mut impl Memory, cframe: u64) -> Option<u64> {
        match self.current {
            Current::CFrame { previous, .. } => word(memory, cframe.checked_add(previous.into())?),
            Current::Frame(_) => None,
        }
    }
}

/// `offsetof` in the headers of 3.11.7, 64 bits; the structures are the same in all of 3.11.
pub(super) const V3_11: Layout = Layout {
    interpreters: 40,
    next_interpreter: 0,
    threads: 16,
    next_thread: 8,
    native_thread_id: 160,
    current: Current::CFrame {
        at: 56,
        current_frame: 8,
        previous: 16,
    },
    entry: Entry::Flag(68),
    frame: FrameLayout {
        code: 32,
        previous: 48,
        instruction: 56,
        owner: 69,
    },
    code: CodeLayout {
        filename: 112,
        qualname: 128,
        linetable: 136,
        firstlineno: 72,
        instructions: 184,
    },
    strings: StringLayout {
        state: 32,
        ascii: 48,
        compact: 72,
    },
};

/// The same of 3.12.1.
pub(super) const V3_12: Layout = Layout {
    interpreters: 40,
    next_interpreter: 0,
    threads: 72,
    next_thread: 8,
    native_thread_id: 144,
    current: Current::CFrame {
        at: 56,
        current_frame: 0,
        previous: 8,
    },
    entry: Entry::OnStack,
    frame: FrameLayout {
        code: 0,
        previous: 8,
        instruction: 56,
        owner: 70,
    },
    code: CodeLayout {
        filename: 112,
        qualname: 128,
        linetable: 136,
        firstlineno: 68,
        instructions: 192,
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

    /// `_PyRuntime` as 3.13.0 has it, with these numbers at these places.
    struct Runtime(Vec<(usize, u64)>);

    impl Memory for Runtime {
        fn read(&mut self, _: u64, buffer: &mut [u8]) -> usize {
            let numbers = [
                0,
                0x030d_00f0,
                0,
                0,
                0,
                632,
                0,
                0,
                7264,
                7344,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                8,
                0,
                72,
                0,
                160,
                0,
                0,
                0,
                8,
                0,
                56,
                72,
                70,
                0,
                112,
                120,
                128,
                136,
                68,
                0,
                0,
                0,
                200,
            ];
            buffer.fill(0);
            let numbers = numbers.into_iter().enumerate().chain(self.0.clone());
            for (at, number) in numbers {
                buffer[at * 8..at * 8 + 8].copy_from_slice(&number.to_le_bytes());
            }
            buffer[..8].copy_from_slice(b"xdebugpy");
            buffer.len()
        }
    }

    #[test]
    fn published_offsets_are_checked() {
        let of = |changes: &[(usize, u64)]| {
            Layout::of(0x030d_00f0, 0x1000, &mut Runtime(changes.to_vec()))
        };
        let layout = of(&[]).expect("those of 3.13.0");
        assert_eq!(layout.threads, 7344);
        assert_eq!(layout.frame.owner, 70);
        assert_eq!(layout.code.instructions, 200);
        // Another version, no lock, and offsets that lead nowhere.
        assert_eq!(of(&[(1, 0x030d_01f0)]), None);
        assert_eq!(of(&[(2, 1)]), None);
        assert_eq!(of(&[(9, 1 << 40)]), None);
        assert_eq!(of(&[(31, 80)]), None);
        assert_eq!(of(&[(43, 400)]), None);
    }

    /// The numbers that `offsets.c` prints.
    fn numbers(layout: &Layout) -> Vec<u16> {
        let Current::CFrame {
            at,
            current_frame,
            previous,
        } = layout.current
        else {
            panic!("{layout:?}");
        };
        let (frame, code, strings) = (layout.frame, layout.code, layout.strings);
        let threads = [
            layout.interpreters,
            layout.next_interpreter,
            layout.threads,
            layout.next_thread,
            layout.native_thread_id,
        ];
        let frame = [frame.code, frame.previous, frame.instruction, frame.owner];
        let code = [
            code.filename,
            code.qualname,
            code.linetable,
            code.firstlineno,
            code.instructions,
        ];
        let strings = [strings.state, strings.ascii, strings.compact];
        let cframe = [at, current_frame, previous];
        [&threads[..], &cframe, &frame, &code, &strings].concat()
    }

    /// What a C compiler says, by the headers that pyenv and Debian install.
    fn of_headers(version: &str) -> Option<Vec<u16>> {
        let home = std::env::var("HOME").unwrap_or_default();
        let pyenv = std::fs::read_dir(format!("{home}/.pyenv/versions"));
        let pyenv = pyenv.into_iter().flatten().flatten();
        let mut folders = pyenv
            .map(|entry| entry.path().join("include").join(version))
            .chain([std::path::Path::new("/usr/include").join(version)]);
        let folder = folders.find(|it| it.join("internal/pycore_frame.h").exists())?;
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
        for (version, layout) in [("python3.11", V3_11), ("python3.12", V3_12)] {
            match of_headers(version) {
                Some(expected) => assert_eq!(numbers(&layout), expected, "{version}"),
                None => _ = prof_needs::met(version != "python3.11", "the headers of CPython 3.11"),
            }
        }
    }
}
