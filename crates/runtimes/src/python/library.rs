//! Files that contain a CPython, and their parts.

use std::ops::Range;

use super::frames::Interpreter;
use crate::Memory;
use crate::elf::Elf;
use crate::function_parts::{self, is_new_part};

/// What a file says of its interpreter: an executable or libpython.
#[derive(Clone, Debug)]
pub(crate) struct Library {
    /// The value of `Py_Version`: major, minor, micro version and more, a byte each. `None` if its
    /// frames cannot be read.
    version: Option<u32>,
    /// The address of `_PyRuntime` in the file's own address space.
    runtime: Option<u64>,
}

impl Library {
    /// Whether a file of this name may contain one: `python3.12`, `libpython3.12.so.1.0`.
    pub(crate) fn is_named(name: &str) -> bool {
        name.starts_with("python") || name.starts_with("libpython")
    }

    /// Reads the symbol tables of a file, and the addresses of the evaluation loop; `None` if it
    /// contains no interpreter.
    pub(crate) fn read(elf: &Elf<'_>) -> Option<(Self, Vec<Range<u64>>)> {
        let (mut runtime, mut version, mut evaluation) = (None, None, Vec::new());
        let mut oldest = None;
        let mut before_3_6 = Vec::new();
        elf.symbols(|name, range| match name {
            b"_PyRuntime" => runtime = Some(range.start),
            b"Py_Version" => version = Some(range.start),
            b"_PyEval_EvalFrameDefault" | b"_PyEval_EvalFrameDefault.cold"
                if is_new_part(&evaluation, &range) =>
            {
                evaluation.push(range);
            }
            // Later versions have it, too, but it calls the loop then.
            b"PyEval_EvalFrameEx" | b"PyEval_EvalFrameEx.cold"
                if is_new_part(&before_3_6, &range) =>
            {
                before_3_6.push(range);
            }
            name => oldest = oldest.max(since(name)),
        });
        if evaluation.is_empty() {
            let unknown = Self {
                version: None,
                runtime: None,
            };
            return (!before_3_6.is_empty()).then_some((unknown, before_3_6));
        }
        let evaluation = function_parts::with_unnamed(elf, evaluation);
        let version = version.and_then(|address| {
            let bytes = elf.at(address..address.saturating_add(8))?;
            u32::try_from(u64::from_le_bytes(*bytes.first_chunk()?)).ok()
        });
        // Otherwise the code of the loop is unknown.
        let version = version
            .or(oldest)
            .filter(|_| function_parts::dispatch(elf, &evaluation));
        Some((Self { version, runtime }, evaluation))
    }

    /// The interpreter of a process that has the file mapped this far from its own addresses;
    /// `None` if its frames cannot be read.
    pub(crate) fn at(&self, bias: u64, memory: &mut impl Memory) -> Option<Interpreter> {
        Interpreter::new(self.version?, bias.wrapping_add(self.runtime?), memory)
    }
}

/// The version that introduced a function, for versions before 3.11, which do not store theirs.
fn since(function: &[u8]) -> Option<u32> {
    match function {
        b"PyCode_NewWithPosOnlyArgs" => Some(0x0308_00f0),
        b"PyFrame_GetBack" => Some(0x0309_00f0),
        b"PyIter_Send" => Some(0x030a_00f0),
        _ => None,
    }
}
