//! The input of unwinding.

use std::ops::Range;

use prof_model::{AbsoluteAddress, ModuleKind, Modules, Pid, Process, StackEnd, UserRegisters};

/// The process that a sample is of, at the time of the sample.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    /// The process id, handed to [`ModuleFiles`](crate::ModuleFiles) when a file is first needed.
    pub pid: Pid,
    /// Its mappings.
    pub process: &'a Process,
    /// The table of the mappings' module ids. One [`Unwinder`](crate::Unwinder) serves one table:
    /// it keeps the tables of each module by [`ModuleId`](prof_model::ModuleId).
    pub modules: &'a Modules,
}

impl Target<'_> {
    /// Whether registers of a sample in the kernel, of which this is the instruction pointer, say
    /// nothing about the process's program: it has ended, or `exec` is replacing it, and they are
    /// those of the one before. `has_stack`: whether there is memory at their stack pointer.
    pub(crate) fn is_between_programs(&self, instruction_pointer: u64, has_stack: bool) -> bool {
        let mapping = (self.process.space()).find(AbsoluteAddress(instruction_pointer));
        let is_code = mapping.is_some_and(|mapping| mapping.executable);
        let has_ended = self.process.threads().next().is_none();
        // Without random addresses, the new stack is where the previous one was.
        !is_code && (!has_stack || has_ended || self.is_in_exec())
    }

    /// Whether `exec` has mapped nothing, or something but not yet the vDSO, or that as the last
    /// code: a program that runs maps its libraries after it.
    fn is_in_exec(&self) -> bool {
        let is_vdso = |module| self.modules[module].kind == ModuleKind::Vdso;
        let mut mappings = self.process.space().iter();
        self.process.has_called_exec()
            && (self.process.latest_code().is_none_or(is_vdso)
                || !mappings.any(|mapping| is_vdso(mapping.module)))
    }
}

/// The state of a thread in user code at a sample.
#[derive(Clone, Copy, Debug)]
pub struct UserState<'a> {
    /// Its registers.
    pub registers: &'a UserRegisters,
    /// Its stack.
    pub dump: StackDump<'a>,
}

/// The part of the user stack in the sample.
#[derive(Clone, Copy, Debug)]
pub struct StackDump<'a> {
    /// The address of the first byte: the stack pointer at that time, or the kernel's value of it.
    pub start: u64,
    /// The bytes that were really copied (PERF_SAMPLE_STACK_USER's `dyn_size`).
    pub bytes: &'a [u8],
    /// Whether the dump was filled to its limit, so that there may be more. If not, it ended where
    /// the next page could not be read without a page fault: mostly at the end of the stack.
    pub full: bool,
}

impl StackDump<'_> {
    /// The word at `address`, if it is in the dump.
    #[inline]
    pub(crate) fn word(&self, address: u64) -> Option<u64> {
        word(self.bytes, address.wrapping_sub(self.start))
    }

    /// The reason if the stack at `address` is unavailable.
    pub(crate) fn missing(&self, address: u64) -> StackEnd {
        /// The largest plausible distance beyond a dump.
        const PLAUSIBLE: u64 = 64 << 20;
        let distance = address.wrapping_sub(self.start);
        match self.full && distance < PLAUSIBLE {
            true => StackEnd::TruncatedDump,
            false => StackEnd::UnreadableMemory,
        }
    }
}

/// The word at an offset into these bytes.
#[inline]
pub(super) fn word(bytes: &[u8], offset: u64) -> Option<u64> {
    let offset = usize::try_from(offset).ok()?;
    let bytes = bytes.get(offset..)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*bytes))
}

/// Memory of the live target, for stack beyond the dump.
///
/// The unwinder requests few large blocks, and compares bytes from the dump and from here, so an
/// implementation must read on each call and must not cache.
pub trait Memory {
    /// Copies memory from `address` up into `buffer` and returns how many bytes, from the first on,
    /// could be read: fewer than requested, or 0, if memory is not mapped or the target is gone.
    fn read(&mut self, address: u64, buffer: &mut [u8]) -> usize;

    /// Like [`read`](Self::read), but the memory of an earlier sample of the same thread, as far as
    /// it is known. It is used if live memory has changed since the sample, and if a longer part of
    /// the dump's end is the same in it.
    fn read_snapshot(&mut self, address: u64, buffer: &mut [u8]) -> usize {
        let _ = (address, buffer);
        0
    }

    /// Whether [`read`](Self::read) has all memory in this range from one moment.
    fn is_of_one_moment(&self, range: Range<u64>) -> bool {
        let _ = range;
        false
    }

    /// Like [`read`](Self::read), for memory that does not change: code, and pointers to functions.
    fn read_lasting(&mut self, address: u64, buffer: &mut [u8]) -> usize {
        self.read(address, buffer)
    }

    /// The chain of frame pointers that the kernel followed when it took the sample: the
    /// instruction pointer, then return addresses. Used if nothing else leads on.
    fn kernel_callchain(&self, index: usize) -> Option<u64> {
        let _ = index;
        None
    }

    /// The run-time code at `address`, by its runtime.
    fn jit_code(&mut self, address: u64) -> Option<JitCode> {
        let _ = address;
        None
    }

    /// The addresses of the bytecodes of a method that a runtime interprets, given the value for
    /// the method in its frame; empty for native methods. `None`: there is no method.
    fn bytecodes(&mut self, method: u64) -> Option<Range<u64>> {
        let _ = method;
        None
    }

    /// The address that represents the frame of an interpreted method in the call chain, given the
    /// value for the method in its frame. `None`: the frame's own program counter does.
    fn interpreted_method(&mut self, method: u64) -> Option<u64> {
        let _ = method;
        None
    }

    /// Whether a runtime of the process names functions by their frames, so that
    /// [`function`](Self::function) is to be called.
    fn has_functions(&self) -> bool {
        false
    }

    /// Whether a runtime describes this code, which is in a file, as it does
    /// [run-time code](Self::jit_code).
    fn is_builtin(&self, address: u64) -> bool {
        let _ = address;
        false
    }

    /// The address that represents the function of a frame in the call chain, given the address of
    /// its code, which is in a file or was compiled at run time, and the words below its frame
    /// pointer, if the frame is complete. `None`: the code's address does.
    fn function(&mut self, address: u64, in_file: bool, words: Option<&FrameWords>) -> Option<u64> {
        let _ = (address, in_file, words);
        None
    }

    /// The walk continues on another stack, or at the other end of a large frame, in live memory.
    /// `overlap` is the part of the dump that led there, and is unchanged; but it may be the same
    /// whenever that code runs.
    fn leave_dump(&mut self, overlap: &[u8]) {
        let _ = overlap;
    }

    /// The walk continues at the other end of a large frame, whose variables have changed, in live
    /// memory. What the frame has called is unchanged; but it may be the same whenever that runs.
    fn leave_large_frame(&mut self) {}

    /// The mapping of the live target that contains `address` (a line of /proc/PID/maps), if known:
    /// a stack is not followed past the end of its mapping. Called at most a few times per stack,
    /// only for stacks deeper than their dump.
    fn mapping(&mut self, address: u64) -> Option<Range<u64>> {
        let _ = address;
        None
    }
}

/// The words below the frame pointer of a frame, the nearest first.
pub type FrameWords = [u64; 4];

/// Run-time code without unwind tables, as its runtime describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JitCode {
    /// The addresses of its instructions.
    pub range: Range<u64>,
    /// Its frames.
    pub frames: JitFrames,
}

/// The frames of run-time code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JitFrames {
    /// All have one size.
    Fixed {
        /// In bytes, with the return address, which is the outermost word. The caller's frame
        /// pointer is below it.
        size: u32,
        /// The address from which on frames are complete, if known.
        complete: Option<u64>,
    },
    /// Those of code that calls no run-time code: all have one size once they are complete.
    Stub {
        /// As above.
        size: u32,
        /// Whether the code itself pushes the return address: others jump to it.
        pushes_return_address: bool,
    },
    /// Those of V8: with a record of the return address and the caller's frame pointer, to which
    /// the frame pointer points.
    V8 {
        /// Whether the range begins where the code does.
        is_start: bool,
    },
    /// As those of V8, but only where the code has made a call.
    V8Builtin,
    /// Frames of HotSpot's interpreter.
    HotSpotInterpreter,
    /// Those of HotSpot's code that brings the callers in a virtual thread back from the heap.
    HotSpotContinuation,
    /// Unknown: stubs, with frames or without.
    Unknown,
    /// The code is no longer there.
    None,
}

/// No live target: memory outside of the dump is unavailable.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoMemory;

impl Memory for NoMemory {
    fn read(&mut self, _: u64, _: &mut [u8]) -> usize {
        0
    }
}

#[cfg(test)]
mod tests {
    use prof_model::{FileOffset, Mapping, Module, Processes};

    use super::*;

    /// Whether a process at `exec` or later, with these mappings at 0x1000, 0x2000, ..., is between
    /// programs with registers that point to `ip`, and to a stack or to nothing.
    #[track_caller]
    fn check(has_called_exec: bool, mapped: &[&str], ip: u64, has_stack: bool, expected: bool) {
        let (mut modules, mut processes) = (Modules::default(), Processes::default());
        processes.rename(1, 1, "sh");
        if has_called_exec {
            processes.exec(1, "ls");
        }
        for (path, start) in mapped.iter().zip((0x1000..).step_by(0x1000)) {
            let mapping = Mapping {
                start: AbsoluteAddress(start),
                end: AbsoluteAddress(start + 0x1000),
                file_offset: FileOffset(0),
                module: modules.intern(Module::from_path(path)),
                executable: true,
            };
            processes.map(1, mapping);
        }
        let target = Target {
            pid: 1,
            process: processes.get(1).expect("it was named"),
            modules: &modules,
        };
        assert_eq!(target.is_between_programs(ip, has_stack), expected);
    }

    #[test]
    fn registers_outside_of_known_code_are_of_the_program_before_only_in_exec() {
        const STARTING: &[&str] = &["/bin/ls", "/lib/ld.so"];
        const MAPPED: &[&str] = &["/bin/ls", "/lib/ld.so", "[vdso]"];
        const STARTED: &[&str] = &["/bin/ls", "/lib/ld.so", "[vdso]", "/lib/libc.so"];
        // The stack of the program before is gone.
        check(true, &[], 0x9000, false, true);
        check(true, STARTED, 0x9000, false, true);
        // The new one is at the same addresses.
        check(true, &[], 0x9000, true, true);
        check(true, STARTING, 0x9000, true, true);
        check(true, MAPPED, 0x9000, true, true);
        check(true, STARTING, 0x1000, true, false);
        // Code that was moved.
        check(true, STARTED, 0x9000, true, false);
        // Mappings that were never known.
        check(false, &[], 0x9000, true, false);
        check(false, &["/bin/sh"], 0x1000, false, false);
        let ended = Target {
            pid: 1,
            process: &Process::default(),
            modules: &Modules::default(),
        };
        assert!(ended.is_between_programs(0x1000, true));
    }
}
