//! Runtimes that name their compiled code only on request: requests the symbols, and stores them in
//! the recording.
//!
//! ```text
//! before recording   variables for the command (Node, Erlang, Mono), or  environment.rs
//!                    arguments of it (Node from 23 on)
//!                    a directory with settings (PHP)                     php.rs
//!                    which of them the installed releases take           releases.rs
//! after it           the attach protocol of JVMs that were attached to   java.rs
//! in the end         names of /tmp/perf-PID.map go into the recording,   perf_maps.rs
//!                    and the file is removed
//! ```

mod environment;
mod java;
mod perf_maps;
mod php;
mod releases;

use std::collections::BTreeSet;

use prof_console::Console;
use prof_model::{Pid, counted};
use prof_procfs::descendants;
use prof_recorder::{CpuTarget, PinnedFiles, Summary, Target};

use crate::symbolization;
use environment::Settings;
use perf_maps::{PerfMap, PerfMaps};

/// The requests to runtimes.
#[derive(Debug)]
pub(crate) struct RuntimeHelp {
    /// What was set for the command.
    settings: Settings,
    /// The processes that ran before: at the end, JVMs among them get a request.
    attached: Vec<Pid>,
    /// The perf maps that exist already.
    before: PerfMaps,
}

impl RuntimeHelp {
    /// Makes no requests.
    pub(crate) fn none() -> Self {
        Self {
            settings: Settings::default(),
            attached: Vec::new(),
            before: PerfMaps::default(),
        }
    }

    /// Makes the runtimes of a command that is about to start write symbols, unless the user has
    /// configured them.
    pub(crate) fn prepare(target: &mut Target) -> Self {
        let program = match target {
            Target::Command(program) => Some(program),
            Target::Cpus(CpuTarget { command, .. }) => command.as_mut(),
            _ => None,
        };
        let program = program.filter(|_| perf_maps::are_writable());
        let settings = program.map(environment::set).unwrap_or_default();
        Self {
            settings,
            attached: match target {
                Target::Processes(pids) => pids.clone(),
                _ => Vec::new(),
            },
            before: PerfMaps::read(),
        }
    }

    /// Requests symbols from the JVMs that were running. Then embeds symbols in the recording that
    /// cannot be found later, also those of files that only the recorder can still open, and
    /// removes the perf maps that prof caused.
    pub(crate) fn finish(self, summary: &Summary, console: Console) {
        let mut maps = self.request_from_jvms(&summary.pinned, console);
        let how = match maps.is_empty() {
            true => format!("set {} for them", self.settings.names.join(", ")),
            false => "requested them".to_owned(),
        };
        if !self.settings.names.is_empty() {
            // Other programs write such maps on their own: those stay.
            let asked = perf_maps::requested_processes(&summary.files);
            let written = PerfMaps::read();
            let written = written.changed_since(&self.before);
            maps.extend(written.filter(|map| asked.contains(&map.pid)));
            maps.extend(perf_maps::inside(&summary.pinned, &asked, &self.before));
        }
        if maps.is_empty() && summary.pinned.is_empty() {
            return;
        }
        let pids: BTreeSet<Pid> = maps.iter().map(|map| map.pid).collect();
        let mut recorded = BTreeSet::new();
        for file in &summary.files {
            match symbolization::embed_pinned(file, &summary.pinned, &pids) {
                Ok(found) => recorded.extend(found),
                Err(error) => {
                    let context = "cannot store the symbols of files that will be gone later";
                    Console::error(&error.context(context));
                    return;
                }
            }
        }
        maps.retain(|map| recorded.contains(&map.pid));
        maps.iter().for_each(PerfMap::remove);
        if !maps.is_empty() {
            console.say(format_args!(
                "kept the symbols of JIT code of {} (prof {how}; --no-runtime-help leaves programs \
                 alone)",
                counted(maps.len() as u64, "process"),
            ));
        }
    }

    /// The perf maps that the JVMs wrote whose names were not read from their memory.
    fn request_from_jvms(&self, pinned: &PinnedFiles, console: Console) -> Vec<PerfMap> {
        let mut pids = descendants(&self.attached, &BTreeSet::new());
        pids.extend(&self.attached);
        let mut written = Vec::new();
        for pid in pids
            .into_iter()
            .filter(|pid| !pinned.perf_maps.contains_key(pid))
        {
            match java::request_perf_map(pid) {
                Ok(map) => written.extend(map),
                Err(error) => console.say(format_args!(
                    "the JVM {pid} did not name the code it compiled: {error}"
                )),
            }
        }
        written
    }
}
