//! Where each version of CPython has its fields, in bytes from the start of each struct.
//!
//! The table is of 64-bit release builds; `tests/python/layouts.rs` compares it with headers.
//! CPython 3.13 publishes its own at the start of `_PyRuntime` (`_Py_DebugOffsets`,
//! pycore_runtime.h).

use super::PythonError;

/// A version of CPython: the first two numbers, which decide where the fields are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// The 3 of 3.12.
    pub major: u8,
    /// The 12 of 3.12.
    pub minor: u8,
}

impl Version {
    /// That of `Py_Version`, of which all before the release is refused: fields still move.
    pub(crate) fn of_hex(hex: u64) -> Option<Self> {
        const FINAL: u64 = 0xf0;
        (hex & 0xf0 == FINAL && hex >> 32 == 0).then_some(Self {
            major: (hex >> 24) as u8,
            minor: (hex >> 16) as u8,
        })
    }

    /// That in the name of an interpreter's file: `python3.8`, `libpython3.10.so.1.0`.
    pub(crate) fn of_file_name(name: &str) -> Option<Self> {
        let rest = name.strip_prefix("lib").unwrap_or(name);
        let (major, rest) = rest.strip_prefix("python")?.split_once('.')?;
        let minor = rest.strip_suffix(".so").unwrap_or(rest);
        let minor = minor.split_once(".so.").map_or(minor, |(minor, _)| minor);
        Some(Self {
            major: major.parse().ok()?,
            minor: minor.parse().ok()?,
        })
    }
}

/// Where a thread state has its innermost frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CurrentFrame {
    /// `frame` or `current_frame`.
    Direct(u64),
    /// `cframe`, a struct on the thread's stack, and `current_frame` in it.
    CFrame {
        /// `PyThreadState.cframe`.
        cframe: u64,
        /// `_PyCFrame.current_frame`.
        current: u64,
    },
}

/// What tells the outermost frame of an activation of the evaluation loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryMark {
    /// Each frame is one.
    EachFrame,
    /// A byte that is 1: `is_entry`.
    IsEntry(u64),
    /// A byte, `owner`, of the frame before it, which belongs to the C stack and has no code.
    Owner(u64),
}

/// Where a code object has its instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeBytes {
    /// In a bytes object. Frames count from its start, in units of so many bytes.
    Object {
        /// `co_code`.
        field: u64,
        /// The bytes of one step of `f_lasti`.
        unit: i64,
    },
    /// At its own end. Frames hold addresses.
    Inline(u64),
}

/// The format of line tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineFormat {
    /// `co_lnotab` (Objects/lnotab_notes.txt).
    Lnotab,
    /// `co_linetable` of 3.10.
    Ranges,
    /// `co_linetable` of 3.11 and later (Objects/locations.md).
    Locations,
}

/// Where a version has its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names of CPython's own fields")]
pub struct Layout {
    pub version: Version,
    pub interpreters_head: u64,
    pub interpreter_next: u64,
    pub threads_head: u64,
    pub thread_next: u64,
    pub thread_id: u64,
    /// CPython 3.11 and later have it.
    pub native_thread_id: Option<u64>,
    pub current_frame: CurrentFrame,
    pub frame_previous: u64,
    pub frame_code: u64,
    /// `f_lasti`, `prev_instr` or `instr_ptr`.
    pub frame_instruction: u64,
    pub entry_mark: EntryMark,
    pub code_filename: u64,
    pub code_name: u64,
    /// CPython 3.11 and later have it.
    pub code_qualname: Option<u64>,
    pub code_firstlineno: u64,
    pub code_linetable: u64,
    pub code_bytes: CodeBytes,
    pub line_format: LineFormat,
    pub object_type: u64,
    pub object_size: u64,
    pub bytes_data: u64,
    pub unicode_length: u64,
    pub unicode_state: u64,
    pub ascii_data: u64,
    pub compact_data: u64,
}

const V3_9: Layout = Layout {
    version: Version { major: 3, minor: 9 },
    interpreters_head: 32,
    interpreter_next: 0,
    threads_head: 8,
    thread_next: 8,
    thread_id: 176,
    native_thread_id: None,
    current_frame: CurrentFrame::Direct(24),
    frame_previous: 24,
    frame_code: 32,
    frame_instruction: 104,
    entry_mark: EntryMark::EachFrame,
    code_filename: 104,
    code_name: 112,
    code_qualname: None,
    code_firstlineno: 40,
    code_linetable: 120,
    code_bytes: CodeBytes::Object { field: 48, unit: 1 },
    line_format: LineFormat::Lnotab,
    object_type: 8,
    object_size: 16,
    bytes_data: 32,
    unicode_length: 16,
    unicode_state: 32,
    ascii_data: 48,
    compact_data: 72,
};

const V3_8: Layout = Layout {
    version: Version { major: 3, minor: 8 },
    ..V3_9
};

const V3_10: Layout = Layout {
    version: Version {
        major: 3,
        minor: 10,
    },
    frame_instruction: 96,
    code_bytes: CodeBytes::Object { field: 48, unit: 2 },
    line_format: LineFormat::Ranges,
    ..V3_9
};

const V3_11: Layout = Layout {
    version: Version {
        major: 3,
        minor: 11,
    },
    interpreters_head: 40,
    threads_head: 16,
    thread_id: 152,
    native_thread_id: Some(160),
    current_frame: CurrentFrame::CFrame {
        cframe: 56,
        current: 8,
    },
    frame_previous: 48,
    frame_code: 32,
    frame_instruction: 56,
    entry_mark: EntryMark::IsEntry(68),
    code_filename: 112,
    code_name: 120,
    code_qualname: Some(128),
    code_firstlineno: 72,
    code_linetable: 136,
    code_bytes: CodeBytes::Inline(184),
    line_format: LineFormat::Locations,
    ..V3_9
};

const V3_12: Layout = Layout {
    version: Version {
        major: 3,
        minor: 12,
    },
    threads_head: 72,
    thread_id: 136,
    native_thread_id: Some(144),
    current_frame: CurrentFrame::CFrame {
        cframe: 56,
        current: 0,
    },
    frame_previous: 8,
    frame_code: 0,
    entry_mark: EntryMark::Owner(70),
    code_firstlineno: 68,
    code_bytes: CodeBytes::Inline(192),
    ascii_data: 40,
    compact_data: 56,
    ..V3_11
};

const LAYOUTS: [Layout; 5] = [V3_8, V3_9, V3_10, V3_11, V3_12];

impl Layout {
    /// How much of `_Py_DebugOffsets` is read: up to the end of `unicode_object`.
    pub(crate) const PUBLISHED: usize = 71 * 8;
    /// No struct of CPython is larger; the interpreter's state has some 200 KB.
    const LARGEST: u64 = 16 << 20;

    /// That of a version which does not publish it.
    pub fn of(version: Version) -> Option<&'static Self> {
        LAYOUTS.iter().find(|layout| layout.version == version)
    }

    /// That which CPython 3.13 publishes at the start of `_PyRuntime`. `None` if nothing is
    /// published there.
    pub(crate) fn published(start: &[u8; Self::PUBLISHED]) -> Option<Result<Self, PythonError>> {
        if !start.starts_with(b"xdebugpy") {
            return None;
        }
        let words = start.as_chunks::<8>().0.iter();
        let words: Vec<u64> = words.map(|word| u64::from_le_bytes(*word)).collect();
        Some(Self::of_words(&words))
    }

    /// `_Py_DebugOffsets` of 3.13, by the position of its words; later versions have others.
    fn of_words(words: &[u64]) -> Result<Self, PythonError> {
        let at = |index: usize| words.get(index).copied().unwrap_or(u64::MAX);
        let version = Version::of_hex(at(1)).ok_or(PythonError::UnknownVersion)?;
        let is_free_threaded = at(2) != 0;
        if (version.major, version.minor) != (3, 13) || is_free_threaded {
            return Err(PythonError::UnknownVersion);
        }
        let layout = Self {
            version,
            interpreters_head: at(5),
            interpreter_next: at(8),
            threads_head: at(9),
            thread_next: at(21),
            current_frame: CurrentFrame::Direct(at(23)),
            thread_id: at(24),
            native_thread_id: Some(at(25)),
            frame_previous: at(29),
            frame_code: at(30),
            frame_instruction: at(31),
            entry_mark: EntryMark::Owner(at(33)),
            code_filename: at(35),
            code_name: at(36),
            code_qualname: Some(at(37)),
            code_linetable: at(38),
            code_firstlineno: at(39),
            code_bytes: CodeBytes::Inline(at(43)),
            line_format: LineFormat::Locations,
            object_type: at(45),
            object_size: at(65),
            bytes_data: at(66),
            unicode_state: at(68),
            unicode_length: at(69),
            ascii_data: at(70),
            // One pointer and one size more (PyCompactUnicodeObject).
            compact_data: at(70).wrapping_add(16),
        };
        match words.iter().skip(3).all(|&offset| offset < Self::LARGEST) {
            true => Ok(layout),
            false => Err(PythonError::BadOffsets),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_names_and_numbers() {
        let check = |name, expected: Option<(u8, u8)>| {
            let found = Version::of_file_name(name).map(|it| (it.major, it.minor));
            assert_eq!(found, expected, "{name}");
        };
        check("python3.8", Some((3, 8)));
        check("libpython3.10.so.1.0", Some((3, 10)));
        check("libpython3.9.so", Some((3, 9)));
        check("libpython3.so", None);
        check("python3.8d", None);
        check("python", None);
        check("uwsgi", None);
        let hex = |hex| Version::of_hex(hex).map(|it| (it.major, it.minor));
        assert_eq!(hex(0x030b_07f0), Some((3, 11)));
        assert_eq!(hex(0x030c_00c1), None, "a release candidate");
    }
}
