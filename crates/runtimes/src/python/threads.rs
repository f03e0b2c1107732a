//! Finds the thread states of a thread.

use crate::Memory;

use super::layout::{PythonLayout, ThreadId};
use crate::native::InterpreterThread;
use crate::read::word;

/// The states of a thread: one for each interpreter that it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ThreadStates {
    /// The id that they store.
    id: u64,
    /// The interpreter, if there is only one.
    interpreter: Option<u64>,
    pub(super) addresses: Vec<u64>,
}

impl ThreadStates {
    /// The most interpreters of a process and threads of all of them.
    const INTERPRETERS: usize = 256;
    const THREADS: usize = 4_096;

    /// Searches all threads of the interpreters.
    pub(super) fn find(
        layout: &PythonLayout,
        runtime: u64,
        memory: &mut impl Memory,
        thread: InterpreterThread,
        stack_pointer: u64,
    ) -> Option<Self> {
        let (mut interpreters, mut found) = (0, Vec::new());
        let newest = word(memory, runtime.checked_add(layout.interpreters.into())?)?;
        let mut interpreter = newest;
        while interpreter != 0 {
            interpreters += 1;
            let mut state = word(memory, interpreter.checked_add(layout.threads.into())?)?;
            while state != 0 {
                (found.len() < Self::THREADS).then_some(())?;
                found.push((state, id_of(layout, memory, state)?));
                state = word(memory, state.checked_add(layout.next_thread.into())?)?;
            }
            let at = interpreter.checked_add(layout.next_interpreter.into())?;
            interpreter = word(memory, at)?;
            (interpreters < Self::INTERPRETERS).then_some(())?;
        }
        let id = match layout.thread_id {
            ThreadId::Kernel(_) => thread.tid,
            ThreadId::Pthread { main, .. } if thread.is_main => {
                word(memory, runtime.checked_add(main.into())?)?
            }
            // libpthread has the thread's descriptor right above its stack.
            ThreadId::Pthread { .. } => {
                let ids = found.iter().map(|&(_, id)| id);
                ids.filter(|&id| id > stack_pointer).min()?
            }
        };
        let own = found.iter().filter(|&&(_, of)| of == id);
        let addresses: Vec<_> = own.map(|&(state, _)| state).collect();
        // One for each interpreter, at most.
        (1..=Self::INTERPRETERS)
            .contains(&addresses.len())
            .then_some(Self {
                id,
                interpreter: (interpreters == 1).then_some(newest),
                addresses,
            })
    }

    /// Whether they still belong to the thread. With several interpreters, more states may appear
    /// at any time.
    pub(super) fn are_current(
        &self,
        layout: &PythonLayout,
        runtime: u64,
        memory: &mut impl Memory,
    ) -> bool {
        let at = runtime.checked_add(layout.interpreters.into());
        let newest = at.and_then(|at| word(memory, at));
        let mut states = self.addresses.iter();
        self.interpreter.is_some()
            && self.interpreter == newest
            && states.all(|&state| id_of(layout, memory, state) == Some(self.id))
    }
}

fn id_of(layout: &PythonLayout, memory: &mut impl Memory, state: u64) -> Option<u64> {
    let (ThreadId::Kernel(at) | ThreadId::Pthread { at, .. }) = layout.thread_id;
    word(memory, state.checked_add(at.into())?)
}
