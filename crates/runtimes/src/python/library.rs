//! Files that contain a CPython, and their parts.

use std::ops::Range;

use super::frames::Interpreter;
use crate::elf::{self, Elf, Segments};
use crate::{Memory, function_parts};

/// A file that contains an interpreter: an executable or libpython.
#[derive(Clone, Debug)]
pub struct Library {
    /// The value of `Py_Version`: major, minor, micro version and more, a byte each. `None` if its
    /// frames cannot be read.
    version: Option<u32>,
    /// The address of `_PyRuntime` in the file's own address space.
    runtime: Option<u64>,
    /// The addresses of the evaluation loop.
    evaluation: Vec<Range<u64>>,
    segments: Segments,
}

impl Library {
    /// Whether a file of this name may contain one: `python3.12`, `libpython3.12.so.1.0`.
    pub fn is_named(name: &str) -> bool {
        name.starts_with("python") || name.starts_with("libpython")
    }

    /// Reads the symbol tables of a file; `None` if it contains no interpreter.
    pub(crate) fn read(elf: &Elf<'_>) -> Option<Self> {
        let (mut runtime, mut version, mut evaluation) = (None, None, Vec::new());
        let mut oldest = None;
        let mut before_3_6 = Vec::new();
        elf.symbols(|name, range| match name {
            b"_PyRuntime" => runtime = Some(range.start),
            b"Py_Version" => version = Some(range.start),
            b"_PyEval_EvalFrameDefault" | b"_PyEval_EvalFrameDefault.cold"
                if !range.is_empty() && !evaluation.contains(&range) =>
            {
                evaluation.push(range);
            }
            // Later versions have it, too, but it calls the loop then.
            b"PyEval_EvalFrameEx" | b"PyEval_EvalFrameEx.cold" if !range.is_empty() => {
                before_3_6.push(range);
            }
            name => oldest = oldest.max(since(name)),
        });
        if evaluation.is_empty() {
            let is_interpreter = !before_3_6.is_empty();
            return is_interpreter.then(|| Self {
                version: None,
                runtime: None,
                evaluation: before_3_6,
                segments: elf.mapped(),
            });
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
        Some(Self {
            version,
            runtime,
            evaluation,
            segments: elf.mapped(),
        })
    }

    /// The interpreter of a process that has the file's bytes from `file_offset` on mapped at
    /// `start`; `None` if that is not part of it.
    pub fn at(
        &self,
        start: u64,
        file_offset: u64,
        memory: &mut impl Memory,
    ) -> Option<Interpreter> {
        let bias = self.segments.bias(start, file_offset)?;
        let evaluation = elf::moved(&self.evaluation, bias);
        let (Some(version), Some(runtime)) = (self.version, self.runtime) else {
            return Some(Interpreter::unknown(evaluation));
        };
        let runtime = bias.wrapping_add(runtime);
        Some(Interpreter::new(version, runtime, evaluation, memory))
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
