//! Records to the model: processes, threads and mappings.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use prof_model::{AbsoluteAddress, FileOffset, Mapping, Module, ModuleKind, Modules, Processes};

use crate::abi::CpuMode;
use crate::record::{Mmap, Record};

/// Updates `processes` by a record. Records must come in time order; those that do not concern
/// processes are ignored.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Comm, Task};
    use crate::stamp::Stamp;

    fn mmap(pid: i32, start: u64, path: &str) -> Mmap<'_> {
        Mmap {
            stamp: Stamp::default(),
            mode: CpuMode::User,
            pid,
            tid: pid,
            address: start,
            length: 0x1000,
            file_offset: 0x200,
            executable: true,
            protection: None,
            flags: None,
            build_id: None,
            identity: None,
            path: OsStr::new(path),
        }
    }

    fn fork(existed: bool) -> Record<'static> {
        Record::Fork(Task {
            stamp: Stamp::default(),
            pid: 2,
            tid: 2,
            parent_pid: 1,
            parent_tid: 1,
            time: 0,
            existed,
        })
    }

    fn comm(pid: i32, exec: bool) -> Record<'static> {
        Record::Comm(Comm {
            stamp: Stamp::default(),
            pid,
            tid: pid,
            exec,
            name: OsStr::new("name"),
        })
    }

    /// Follows the records, then lists the mappings of `pid`: path, kind, start, executable.
    fn check(records: &[Record<'_>], pid: i32, expected: &[(&str, ModuleKind, u64, bool)]) {
        let (mut processes, mut modules) = (Processes::default(), Modules::default());
        for record in records {
            follow(record, &mut processes, &mut modules);
        }
        let mappings = processes.get(pid).map(|process| process.space().iter());
        let mappings: Vec<_> = mappings
            .into_iter()
            .flatten()
            .map(|mapping| {
                let module = &modules[mapping.module];
                let path = module.path.to_str().unwrap();
                (path, module.kind, mapping.start.0, mapping.executable)
            })
            .collect();
        assert_eq!(mappings, expected);
    }

    #[test]
    fn children_inherit_mappings_unless_perf_reports_them() {
        let parent = Record::Mmap(mmap(1, 0x1000, "/bin/sh"));
        let sh = ("/bin/sh", ModuleKind::File, 0x1000, true);
        check(&[parent, fork(false)], 2, &[sh]);
        check(&[parent, fork(true)], 2, &[]);
        check(&[parent, fork(false), comm(2, false)], 2, &[sh]);
        check(&[parent, fork(false), comm(2, true)], 2, &[]);
        check(&[parent, fork(false), comm(2, true)], 1, &[sh]);
    }

    #[test]
    fn data_and_kernel_mappings_are_distinguished_from_code() {
        let data = Mmap {
            executable: false,
            ..mmap(1, 0x5000, "/usr/share/x")
        };
        let data = Record::Mmap(data);
        check(
            &[data],
            1,
            &[("/usr/share/x", ModuleKind::File, 0x5000, false)],
        );
        let kernel = Record::Mmap(Mmap {
            mode: CpuMode::Kernel,
            length: u64::MAX,
            ..mmap(-1, 0xffff_0000, "[kernel.kallsyms]_text")
        });
        let expected = ("[kernel.kallsyms]", ModuleKind::Kernel, 0xffff_0000, true);
        check(&[kernel], -1, &[expected]);
        let guest = Record::Mmap(Mmap {
            mode: CpuMode::GuestKernel,
            ..mmap(-1, 0x1000, "[guest.kernel.kallsyms]")
        });
        check(&[guest], -1, &[]);
    }
}
