//! Finds the execution context of a thread.

use super::layout::{Layout, context, vm};
use crate::Memory;
use crate::read::{word, word_at};

/// The execution context of a thread, or of the fiber that it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Context {
    /// The innermost frame.
    pub(super) frame: u64,
    /// The end of the frames.
    pub(super) end: u64,
}

impl Context {
    /// The most threads to look at.
    const THREADS: usize = 4096;

    /// That of the thread whose native stack contains `stack_pointer`.
    pub(super) fn of_thread(
        memory: &mut impl Memory,
        layout: &Layout,
        current_vm: u64,
        stack_pointer: u64,
    ) -> Option<Self> {
        let vm = word(memory, current_vm)?;
        let ractor = word(memory, vm.checked_add(vm::RACTOR)?)?;
        let list = ractor.checked_add(layout.threads)?;
        let mut next = word(memory, list)?;
        for _ in 0..Self::THREADS {
            if next == list {
                return None;
            }
            let context = word(memory, next.checked_add(layout.context)?)?;
            let found = Self::around(memory, layout, context, stack_pointer);
            if found.is_some() {
                return found;
            }
            next = word(memory, next)?;
        }
        None
    }

    /// The context at this address, if it is that of the native stack.
    fn around(
        memory: &mut impl Memory,
        layout: &Layout,
        address: u64,
        stack_pointer: u64,
    ) -> Option<Self> {
        let mut bytes = [0; context::SIZE];
        (memory.read(address, &mut bytes) == bytes.len()).then_some(())?;
        let field = |at| word_at(&bytes, at);
        let above = field(layout.stack_start)?.checked_sub(stack_pointer)?;
        (above < field(layout.stack_max_size)?).then_some(())?;
        let size = field(context::VM_STACK_SIZE)?.checked_mul(8)?;
        Some(Self {
            frame: field(context::FRAME)?,
            end: field(context::VM_STACK)?.checked_add(size)?,
        })
    }
}
