//! The functions of an interpreter, which stand for those of the program.

use prof_model::{AbsoluteAddress, InterpretedFunction, ModuleId, Modules, Process};

use super::chain::Chain;

/// Removes the functions of the file that the evaluation loop is in from a stack that has
/// interpreted ones.
///
/// A stack whose interpreted functions are not known keeps them: they are all that is known of it.
pub(in crate::load) fn fold_interpreter(chain: &mut Chain, process: &Process, modules: &Modules) {
    let Some(interpreter) = interpreter(&chain.user, process, modules) else {
        return;
    };
    let count = chain.user.len();
    let late = count.saturating_sub(chain.note.remote_read.into());
    let elided_at = chain.note.elided_at as usize;
    let (mut index, mut removed_late, mut removed_before) = (0, 0_u16, 0_u32);
    chain.user.retain(|&address| {
        // The outermost frame says that the stack reaches its root.
        let is_its = index + 1 < count && module_of(address, process) == Some(interpreter);
        removed_late += u16::from(is_its && index >= late);
        removed_before += u32::from(is_its && index < elided_at);
        index += 1;
        !is_its
    });
    chain.note.remote_read = chain.note.remote_read.saturating_sub(removed_late);
    chain.note.elided_at = chain.note.elided_at.saturating_sub(removed_before);
}

/// The file with the evaluation loop: that which runs interpreted functions.
fn interpreter(user: &[u64], process: &Process, modules: &Modules) -> Option<ModuleId> {
    let first = user.iter().position(|&it| InterpretedFunction::holds(it))?;
    let (&python, rest) = user.get(first..)?.split_first()?;
    let path = modules[module_of(python, process)?].path.to_str()?;
    if InterpretedFunction::of_path(path)?.is_missing() {
        return None;
    }
    let evaluation = rest.iter().find(|&&it| !InterpretedFunction::holds(it))?;
    module_of(*evaluation, process)
}

fn module_of(address: u64, process: &Process) -> Option<ModuleId> {
    let mapping = process.space().find(AbsoluteAddress(address))?;
    Some(mapping.module)
}
