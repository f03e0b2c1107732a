//! Unwinds a recording of `perf record --call-graph dwarf`, sample by sample, without symbols:
//! `unwind-foreign perf.data`
#![expect(clippy::print_stdout, reason = "that is what it is for")]

use std::collections::BTreeMap;
use std::error::Error;

use prof_model::{Modules, Processes};
use prof_perfdata::{Record, Recording, follow};
use prof_unwinder::{LocalFiles, NoMemory, StackDump, Target, Unwinder, UserState};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("which recording?")?;
    let mut recording = Recording::open(path)?;
    let (mut processes, mut modules) = (Processes::default(), Modules::default());
    let mut unwinder = Unwinder::new(LocalFiles);
    let (mut frames, mut ends) = (Vec::new(), BTreeMap::new());
    while let Some(record) = recording.next() {
        follow(&record, &mut processes, &mut modules);
        let Record::Sample(sample) = record else {
            continue;
        };
        let (Some(registers), Some(stack), Some(process)) = (
            sample.user_registers(),
            sample.user_stack,
            processes.get(sample.pid),
        ) else {
            continue;
        };
        let target = Target {
            pid: sample.pid,
            process,
            modules: &modules,
        };
        let dump = StackDump {
            start: registers.stack_pointer().unwrap_or_default(),
            bytes: stack.bytes,
            full: stack.is_full(),
        };
        frames.clear();
        let unwound = unwinder.unwind(
            &target,
            &UserState {
                registers: &registers,
                dump,
            },
            &mut NoMemory,
            &mut frames,
        );
        let (stacks, depth) = ends.entry(unwound.end.describe()).or_insert((0, 0));
        *stacks += 1;
        *depth += frames.len();
    }
    for (end, (stacks, depth)) in ends {
        println!(
            "{stacks} stacks, {} frames on average: {end}",
            depth / stacks
        );
    }
    Ok(())
}
