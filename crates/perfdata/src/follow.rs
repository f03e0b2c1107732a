//! Records to the model: who runs, and what is mapped where.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use prof_model::{AbsoluteAddress, FileOffset, Mapping, Module, ModuleKind, Modules, Processes};

use crate::abi::CpuMode;
use crate::record::{Mmap, Record};

/// Tells `processes` what the record says of them. Records must come in time order; those that
/// say nothing of processes are ignored.
///
/// The kernel's own mappings (pid -1) become modules of kind [`ModuleKind::Kernel`] mapped into
/// process -1, and guests' are ignored.
pub fn follow(record: &Record<'_>, processes: &mut Processes, modules: &mut Modules) {
    match record {
        Record::Comm(comm) => {
            let name = comm.name.to_string_lossy();
            if comm.exec {
                processes.exec(comm.pid, &name);
            } else {
                processes.rename(comm.pid, comm.tid, &name);
            }
        }
        Record::Fork(task) if task.existed && task.pid != task.parent_pid => {}
        Record::Fork(task) => {
            processes.fork((task.parent_pid, task.parent_tid), (task.pid, task.tid));
        }
        Record::Exit(task) => processes.exit(task.pid, task.tid),
        Record::Mmap(mmap) => map(mmap, processes, modules),
        _ => {}
    }
}

/// perf marks the kernel's mapping with the symbol that it measured by: `[kernel.kallsyms]_text`.
fn module_path(path: &OsStr) -> &OsStr {
    const KERNEL: &[u8] = b"[kernel.kallsyms]";
    match path.as_bytes().starts_with(KERNEL) {
        true => OsStr::from_bytes(KERNEL),
        false => path,
    }
}

fn map(mmap: &Mmap<'_>, processes: &mut Processes, modules: &mut Modules) {
    if matches!(mmap.mode, CpuMode::GuestKernel | CpuMode::GuestUser) {
        return;
    }
    let kernel = mmap.mode == CpuMode::Kernel || mmap.pid == -1;
    let start = AbsoluteAddress(mmap.address);
    // The kernel's map may reach to the end of the address space.
    let end = AbsoluteAddress(mmap.address.saturating_add(mmap.length));
    let named = Module::from_path(module_path(mmap.path));
    let module = Module {
        kind: if kernel {
            ModuleKind::Kernel
        } else {
            named.kind
        },
        build_id: mmap.build_id,
        identity: mmap.identity,
        ..named
    };
    let mapping = Mapping {
        start,
        end,
        file_offset: FileOffset(mmap.file_offset),
        module: modules.intern(module),
        executable: mmap.executable,
    };
    processes.map(if kernel { -1 } else { mmap.pid }, mapping);
}
