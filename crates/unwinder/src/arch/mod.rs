//! The differences between processor architectures: register numbers, and how to walk code without
//! unwind information.

mod aarch64;
mod compiled_code;
mod x86_64;

use std::ops::Range;

use prof_model::{StackEnd, UserRegisters};

use crate::entry::Entry;
use crate::registers::Registers;
use crate::rule::{CompactRule, Rule};

/// Copies code bytes from an address of the module on; returns how many bytes there are.
pub(crate) type Code<'a> = &'a mut dyn FnMut(u64, &mut [u8]) -> usize;
/// Reads a word of the stack.
pub(crate) type ReadWord<'a> = &'a mut dyn FnMut(u64) -> Result<u64, StackEnd>;

/// The target of a call instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Called {
    /// The function at this address.
    Function(u64),
    /// This function, unless the bytes are those of another instruction and the end of the one
    /// before.
    PerhapsFunction(u64),
    /// The function that the pointer at this address points to.
    Pointer(u64),
    /// Unknown: the target was in a register or memory that has changed since.
    Anything,
}

/// A processor architecture whose stacks can be unwound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Architecture {
    /// 64-bit x86.
    X86_64,
    /// 64-bit ARM.
    Aarch64,
}

impl Architecture {
    /// The architecture that this program was compiled for, if it is one of these.
    pub fn host() -> Option<Self> {
        match std::env::consts::ARCH {
            "x86_64" => Some(Self::X86_64),
            "aarch64" => Some(Self::Aarch64),
            _ => None,
        }
    }

    /// The state of the user's code at a sample that hit the kernel, as far as the registers at
    /// that instant show; see [`Entry`]. `saved` are the user's registers by the kernel.
    pub(crate) fn entry(self, saved: Option<&UserRegisters>, at_sample: &UserRegisters) -> Entry {
        match self {
            Self::X86_64 => x86_64::entry(saved, at_sample),
            Self::Aarch64 => Entry::Saved,
        }
    }

    /// Finds out how to leave the function that contains `target` and has no CFI. `entry` is the
    /// module's entry point, or 0.
    pub(crate) fn analyze(self, code: Code<'_>, target: u64, entry: u64) -> Rule {
        match self {
            Self::X86_64 => x86_64::analyze(code, target, entry),
            Self::Aarch64 => aarch64::analyze(code, target, entry),
        }
    }

    /// Finds rules from the code before `target`, until `enough` returns true.
    pub(crate) fn analyze_from_entry(
        self,
        code: Code<'_>,
        target: u64,
        enough: &mut dyn FnMut(CompactRule) -> bool,
    ) -> bool {
        match self {
            Self::X86_64 => x86_64::analyze_from_entry(code, target, enough),
            Self::Aarch64 => aarch64::analyze_from_entry(code, target, enough),
        }
    }

    /// The rule at `target` of a function that starts at `start`, by the changes of its code to the
    /// stack pointer up to there.
    pub(crate) fn follow_to(self, code: Code<'_>, start: u64, target: u64) -> Option<CompactRule> {
        match self {
            Self::X86_64 => x86_64::follow_to(code, start, target),
            Self::Aarch64 => aarch64::follow_to(code, start, target),
        }
    }

    /// Whether a function that starts at `start` has a frame pointer at `target`, where its CFA is
    /// that far from the stack pointer; `None` if that is unknown.
    pub(crate) fn has_frame_pointer(
        self,
        code: Code<'_>,
        start: u64,
        target: u64,
        cfa_offset: i32,
    ) -> Option<bool> {
        match self {
            Self::X86_64 => x86_64::has_frame_pointer(code, start, target, cfa_offset),
            Self::Aarch64 => None,
        }
    }

    /// Whether a frame record is where the frame pointer points to, at `target` in a function that
    /// starts at `start`, if that is known; `None`: the code does not show it.
    pub(crate) fn sets_frame_pointer(
        self,
        code: Code<'_>,
        start: Option<u64>,
        target: u64,
    ) -> Option<bool> {
        match self {
            // Its CFI names the frame pointer where there is one.
            Self::X86_64 => None,
            Self::Aarch64 => aarch64::sets_frame_pointer(code, start, target),
        }
    }

    /// If the code at `target` goes straight to the jump or return that leaves its function,
    /// whether a register says where the stack will be.
    pub(crate) fn exit_has_stack(self, code: Code<'_>, target: u64) -> Option<bool> {
        match self {
            Self::X86_64 => x86_64::exit_has_stack(code, target),
            Self::Aarch64 => None,
        }
    }

    /// Whether it goes straight to a return with another stack pointer than by this rule.
    pub(crate) fn returns_elsewhere(self, code: Code<'_>, target: u64, rule: &CompactRule) -> bool {
        match self {
            Self::X86_64 => x86_64::returns_elsewhere(code, target, rule),
            Self::Aarch64 => false,
        }
    }

    /// The registers once code that goes straight to the end of its function has left it, and
    /// whether it does so by a return.
    pub(crate) fn registers_at_exit(
        self,
        code: Code<'_>,
        target: u64,
        registers: &Registers,
        read: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> Option<(Registers, bool)> {
        match self {
            Self::X86_64 => x86_64::registers_at_exit(code, target, registers, read),
            Self::Aarch64 => None,
        }
    }

    /// Where the context of an exception's handler is, from the frame pointer, if the exception
    /// lands in the code at `target`.
    pub(crate) fn landing(self, code: Code<'_>, function: Range<u64>, target: u64) -> Option<i32> {
        match self {
            Self::X86_64 => x86_64::landing(code, function, target),
            Self::Aarch64 => None,
        }
    }

    /// The registers at the handler, by this context.
    pub(crate) fn landing_registers(
        self,
        context: u64,
        read: ReadWord<'_>,
    ) -> Result<Registers, StackEnd> {
        match self {
            Self::X86_64 => x86_64::landing_registers(context, read),
            Self::Aarch64 => Err(StackEnd::NoUnwindInfo),
        }
    }

    /// Whether a function can return to the address between these bytes of code.
    pub(crate) fn is_return_address(self, before: &[u8], after: &[u8]) -> bool {
        match self {
            Self::X86_64 => x86_64::is_return_address(before, after),
            Self::Aarch64 => aarch64::is_return_address(before, after),
        }
    }

    /// The target of the call at the end of these bytes, which returns to `target`; `None` if there
    /// is no call.
    pub(crate) fn called(self, before: &[u8], target: u64) -> Option<Called> {
        match self {
            Self::X86_64 => x86_64::called(before, target),
            Self::Aarch64 => aarch64::called(before, target),
        }
    }

    /// If the code at `address` only jumps through a pointer, as in procedure linkage tables, the
    /// address of that pointer.
    pub(crate) fn jumps_through(self, code: Code<'_>, address: u64) -> Option<u64> {
        match self {
            Self::X86_64 => x86_64::jumps_through(code, address),
            Self::Aarch64 => aarch64::jumps_through(code, address),
        }
    }

    /// The rule for the address between these bytes, if it is in one of CPython's trampolines.
    pub(crate) fn trampoline(self, before: &[u8], after: &[u8]) -> Option<CompactRule> {
        match self {
            Self::X86_64 => x86_64::trampoline(before, after),
            // They keep frame pointers.
            Self::Aarch64 => None,
        }
    }

    /// Reports the targets of jumps out of a function; returns whether these are all.
    pub(crate) fn jumps_out(
        self,
        code: Code<'_>,
        function: Range<u64>,
        to: &mut dyn FnMut(u64),
    ) -> bool {
        match self {
            Self::X86_64 => x86_64::jumps_out(code, function, to),
            Self::Aarch64 => aarch64::jumps_out(code, function, to),
        }
    }

    /// Whether the code at this return address only ends its thread.
    pub(crate) fn ends_thread(self, after: &[u8]) -> bool {
        match self {
            Self::X86_64 => x86_64::ends_thread(after),
            Self::Aarch64 => aarch64::ends_thread(after),
        }
    }

    /// Whether a goroutine or its scheduler starts at the address between these bytes.
    pub(crate) fn starts_goroutine(self, before: &[u8], after: &[u8]) -> bool {
        match self {
            Self::X86_64 => x86_64::starts_goroutine(before, after),
            Self::Aarch64 => aarch64::starts_goroutine(before, after),
        }
    }

    /// Whether a goroutine makes its last call at the address between these bytes.
    pub(crate) fn ends_goroutine(self, before: &[u8], after: &[u8]) -> bool {
        match self {
            Self::X86_64 => x86_64::ends_goroutine(before, after),
            Self::Aarch64 => false,
        }
    }

    /// Whether code that is returned to, but was never called, is where a coroutine's stack ends.
    pub(crate) fn ends_coroutine(self, code: &[u8]) -> bool {
        match self {
            Self::X86_64 => x86_64::ends_coroutine(code),
            Self::Aarch64 => aarch64::ends_coroutine(code),
        }
    }

    /// Whether a function that begins with this code takes its stack from a register.
    pub(crate) fn starts_stack(self, code: &[u8]) -> bool {
        match self {
            Self::X86_64 => x86_64::starts_stack(code),
            Self::Aarch64 => false,
        }
    }

    /// Whether `target` is in the start code of a Go program with this entry point.
    pub(crate) fn is_go_entry(self, code: Code<'_>, target: u64, entry: u64) -> bool {
        match self {
            Self::X86_64 => x86_64::is_go_entry(code, target, entry),
            Self::Aarch64 => false,
        }
    }

    /// If a function that begins with this code is where C starts Go: how much of the stack it has
    /// taken after `done` bytes of code.
    pub(crate) fn room_of_go_start(self, code: &[u8], done: u64) -> Option<i32> {
        match self {
            Self::X86_64 => x86_64::room_of_go_start(code, done),
            Self::Aarch64 => None,
        }
    }

    /// Whether these bytes end with code that moves to another stack and calls a function on it.
    pub(crate) fn switches_stack(self, before: &[u8]) -> bool {
        match self {
            Self::X86_64 => x86_64::switches_stack(before),
            Self::Aarch64 => false,
        }
    }

    /// Whether Go calls the vDSO between these bytes, on another stack.
    pub(crate) fn calls_vdso_from_go(self, before: &[u8], after: &[u8]) -> bool {
        match self {
            Self::X86_64 => x86_64::calls_vdso_from_go(before, after),
            Self::Aarch64 => false,
        }
    }

    /// Whether these bytes end with the call by which Go calls C, on another stack.
    pub(crate) fn calls_c_from_go(self, before: &[u8]) -> bool {
        match self {
            Self::X86_64 => x86_64::calls_c_from_go(before),
            Self::Aarch64 => false,
        }
    }

    /// Whether a thread that was interrupted after these bytes has just been created by `clone`.
    pub(crate) fn is_new_thread(self, before: &[u8], registers: &Registers) -> bool {
        match self {
            Self::X86_64 => x86_64::is_new_thread(before, registers),
            Self::Aarch64 => aarch64::is_new_thread(before, registers),
        }
    }

    /// The registers in the signal frame that the kernel left at `stack_pointer`, as of the
    /// handler's return.
    pub(crate) fn signal_registers(
        self,
        stack_pointer: u64,
        read: ReadWord<'_>,
    ) -> Result<Registers, StackEnd> {
        match self {
            Self::X86_64 => x86_64::signal_registers(stack_pointer, read),
            Self::Aarch64 => aarch64::signal_registers(stack_pointer, read),
        }
    }

    pub(crate) fn layout(self) -> &'static RegisterLayout {
        match self {
            Self::X86_64 => &x86_64::LAYOUT,
            Self::Aarch64 => &aarch64::LAYOUT,
        }
    }
}

/// An architecture's registers, by their DWARF numbers.
pub(crate) struct RegisterLayout {
    pub(crate) architecture: Architecture,
    /// `e_machine` of its ELF files.
    pub(crate) machine: u16,
    pub(crate) program_counter: u8,
    pub(crate) stack_pointer: u8,
    pub(crate) frame_pointer: u8,
    /// The column of CFI tables that the return address is in.
    pub(crate) return_address: u8,
    /// Where a call stores the return address: in memory at CFA + this, or in the register of that
    /// column.
    pub(crate) return_slot: Option<i64>,
    /// The registers a [`CompactRule`] can restore, by slot.
    pub(crate) saved: &'static [u8],
    /// The registers in which libgcc passes arguments to a landing pad.
    pub(crate) landing_arguments: &'static [u8],
    /// DWARF numbers by the kernel's numbers (`enum perf_event_..._regs`).
    pub(crate) from_kernel: &'static [u8],
    /// The bits of a code address: without pointer authentication codes.
    pub(crate) address_mask: u64,
    pub(crate) vendor: gimli::Vendor,
}

/// A kernel register that has no DWARF number of interest.
const NONE: u8 = u8::MAX;

impl RegisterLayout {
    /// The registers of a sample; `None` without program counter and stack pointer.
    pub(crate) fn registers(&self, sample: &UserRegisters) -> Option<Registers> {
        let mut registers = Registers::default();
        for (kernel, &dwarf) in self.from_kernel.iter().enumerate() {
            if let (true, Some(value)) = (dwarf != NONE, sample.get(kernel as u32)) {
                registers.set(dwarf, value);
            }
        }
        registers.get(self.program_counter)?;
        registers.get(self.stack_pointer)?;
        if self.architecture == Architecture::X86_64 {
            x86_64::forget_unsaved(&mut registers);
        }
        Some(registers)
    }

    /// Whether calls leave the return address in a register, from which functions store it at the
    /// bottom of their frames. So the frame pointer does not say where a frame ends, and in
    /// functions that call nothing, leads past their caller.
    pub(crate) fn has_link_register(&self) -> bool {
        self.return_slot.is_none()
    }

    /// The slot of this register in [`saved`](Self::saved).
    pub(crate) fn saved_slot(&self, register: u16) -> Option<usize> {
        self.saved.iter().position(|&r| u16::from(r) == register)
    }
}
