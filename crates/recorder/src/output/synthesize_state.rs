//! The state of living processes, written again at the beginning of each file.

use std::ffi::OsStr;

use prof_model::{Mapping, Module, ModuleKind, Modules, Pid, Process, Processes};
use prof_perfdata::{CpuMode, Mmap, Record, Stamp};

use crate::output::synthesize;

/// Passes MMAP2 records of the kernel, then COMM and MMAP2 records of all processes to `each`.
pub(crate) fn synthesize_state(
    processes: &Processes,
    modules: &Modules,
    each: &mut dyn FnMut(&Record<'_>),
) {
    let mut known: Vec<(Pid, &Process)> = processes.iter().collect();
    // The kernel is process -1.
    known.sort_unstable_by_key(|&(pid, _)| pid);
    for (pid, process) in known {
        let mut tids: Vec<_> = process.threads().collect();
        tids.sort_unstable();
        for tid in tids {
            if let Some(name) = process.name(pid, tid) {
                each(&synthesize::name(pid, tid, name.as_bytes()));
            }
        }
        for mapping in process.space().iter() {
            each(&Record::Mmap(mmap(pid, mapping, &modules[mapping.module])));
        }
    }
}

fn mmap<'a>(pid: Pid, mapping: &Mapping, module: &'a Module) -> Mmap<'a> {
    const READ: u32 = 1;
    const EXECUTE: u32 = 4;
    const MAP_PRIVATE: u32 = 2;
    let kernel = module.kind == ModuleKind::Kernel;
    let path = module.path.as_os_str();
    Mmap {
        stamp: Stamp::default(),
        mode: if kernel {
            CpuMode::Kernel
        } else {
            CpuMode::User
        },
        pid,
        tid: if kernel { 0 } else { pid },
        address: mapping.start.0,
        length: mapping.end.0.saturating_sub(mapping.start.0),
        file_offset: mapping.file_offset.0,
        executable: mapping.executable,
        protection: Some(if mapping.executable {
            READ | EXECUTE
        } else {
            READ
        }),
        flags: Some(MAP_PRIVATE),
        build_id: module.build_id,
        identity: module.identity,
        // perf needs the symbol that the kernel's address was measured by.
        path: match path == "[kernel.kallsyms]" {
            true => OsStr::new("[kernel.kallsyms]_text"),
            false => path,
        },
    }
}

#[cfg(test)]
mod tests {
    use prof_perfdata::follow;

    use super::*;
    use crate::output::synthesize::{self, BuildIds};

    fn synthesized(processes: &Processes, modules: &Modules) -> Vec<String> {
        let mut reported = Vec::new();
        synthesize_state(processes, modules, &mut |record| {
            reported.push(format!("{record:?}"))
        });
        reported
    }

    #[test]
    fn synthesized_records_restore_the_state() {
        let (mut processes, mut modules) = (Processes::default(), Modules::default());
        let own = std::process::id() as Pid;
        let mut follow_first = |record: &Record<'_>| follow(record, &mut processes, &mut modules);
        synthesize::kernel(&mut follow_first);
        synthesize::process(own, &mut BuildIds::default(), &mut follow_first);
        processes.fork((own, own), (own, i32::MAX));
        processes.fork((own, own), (i32::MAX - 1, i32::MAX - 1));
        let (mut again, mut its_modules) = (Processes::default(), Modules::default());
        synthesize_state(&processes, &modules, &mut |record| {
            follow(record, &mut again, &mut its_modules);
        });
        let reported = synthesized(&processes, &modules);
        assert!(reported.len() > 10, "{reported:?}");
        assert_eq!(reported, synthesized(&again, &its_modules));
        let spaces = |processes: &Processes, modules: &Modules| {
            let space = processes.get(own).map(Process::space);
            let mappings = space.into_iter().flat_map(|space| space.iter());
            let reported =
                mappings.map(|it| (it.start, it.end, it.file_offset, modules[it.module].clone()));
            reported.collect::<Vec<_>>()
        };
        assert_eq!(spaces(&processes, &modules), spaces(&again, &its_modules));
    }
}
