//! Runtimes that name their compiled code only on request: requests the symbols, and stores them in
//! the recording.
//!
//! ```text
//! before recording   a variable for a command that is such a runtime     environment.rs
//!                    (Erlang, Mono, .NET), by its file                   commands.rs
//!                    where nobody else can take the names of its maps    map_names.rs
//!                    with a note, for the next prof if this is killed    notes.rs
//! after it           the attach protocol of JVMs that were attached to   java.rs
//! in the end         names of /tmp/perf-PID.map go into the recording,   perf_maps.rs
//!                    and the file is removed
//! ```

mod commands;
mod deadline;
mod environment;
mod java;
mod map_names;
mod notes;
mod perf_maps;

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use prof_console::Console;
use prof_model::{Pid, counted};
use prof_procfs::descendants;
use prof_recorder::{PinnedFiles, Signals, Summary, Target};

use crate::symbolization;
use deadline::Deadline;
use environment::Settings;
use notes::Note;
use perf_maps::{PerfMap, PerfMaps};

/// Any process may pose as a JVM that does not answer, and there may be many.
const ALL_JVMS: Duration = Duration::from_secs(15);

/// The requests to runtimes.
#[derive(Debug)]
pub(crate) struct RuntimeHelp {
    /// What was set for the command.
    settings: Settings,
    /// Stays until the maps are removed; after an error, the next prof does that.
    note: Option<Note>,
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
            note: None,
            attached: Vec::new(),
            before: PerfMaps::default(),
        }
    }

    /// Removes what profs that were killed have left.
    pub(crate) fn remove_leftovers() {
        notes::remove_leftovers();
    }

    /// Makes a command that is about to start in `recording` write symbols, if it is a runtime that
    /// can, nobody else can take the place of its map, and the user has not configured it.
    pub(crate) fn prepare(target: &mut Target, recording: &Path) -> Self {
        // Of all that runs, other processes write maps, too.
        let program = match target {
            Target::Command(program) if map_names::are_ours() => Some(program),
            _ => None,
        };
        let requested = program.and_then(|program| {
            let wanted = environment::wanted(program)?;
            let note = Note::write(recording)?;
            Some((environment::set(program, wanted), note))
        });
        let (settings, note) = requested.unzip();
        Self {
            settings: settings.unwrap_or_default(),
            note,
            attached: match target {
                Target::Processes(pids) => pids.clone(),
                _ => Vec::new(),
            },
            before: PerfMaps::read(),
        }
    }

    /// Requests symbols from the JVMs that were running. Then embeds symbols in the recording that
    /// cannot be found later, also those of files that only the recorder can still open, and
    /// removes the perf maps that prof caused. Signals end the requests.
    pub(crate) fn finish(self, summary: &Summary, signals: &Signals, console: Console) {
        if self.store(summary, signals, console)
            && let Some(note) = self.note
        {
            note.remove();
        }
    }

    /// Returns whether that went well.
    fn store(&self, summary: &Summary, signals: &Signals, console: Console) -> bool {
        let mut maps = self.request_from_jvms(&summary.pinned, signals, console);
        let requested = self.add_written(&mut maps, summary);
        if maps.is_empty() && summary.pinned.is_empty() {
            return true;
        }
        let pids: BTreeSet<Pid> = maps.iter().map(|map| map.pid).collect();
        let mut recorded = BTreeSet::new();
        for file in &summary.files {
            match symbolization::embed_pinned(file, &summary.pinned, &pids) {
                Ok(found) => recorded.extend(found),
                Err(error) => {
                    let context = "cannot store the symbols of files that will be gone later";
                    Console::error(&error.context(context));
                    return false;
                }
            }
        }
        // A process of which nothing was recorded needs no map.
        for map in &maps {
            let dotnet = self.settings.of_dotnet();
            if dotnet.is_some()
                && requested.get(&map.pid).copied() == dotnet
                && let Some(begin) = self.before.read_at
            {
                map.remove_images(begin);
            }
            map.remove();
        }
        maps.retain(|map| recorded.contains(&map.pid));
        let settings: BTreeSet<&str> = (maps.iter())
            .filter_map(|map| requested.get(&map.pid).copied())
            .collect();
        let settings: Vec<&str> = settings.into_iter().collect();
        let how = match settings.is_empty() {
            true => "requested them".to_owned(),
            false => format!("set {} for them", settings.join(", ")),
        };
        if !maps.is_empty() {
            console.say(format_args!(
                "kept the symbols of JIT code of {} (prof {how}; --no-runtime-help leaves programs \
                 alone)",
                counted(maps.len() as u64, "process"),
            ));
        }
        true
    }

    /// Adds the perf maps that the settings caused; returns the processes that may have written
    /// them, and the setting of each.
    fn add_written(
        &self,
        maps: &mut Vec<PerfMap>,
        summary: &Summary,
    ) -> BTreeMap<Pid, &'static str> {
        if self.settings.is_empty() {
            return BTreeMap::new();
        }
        let written = PerfMaps::read();
        let written: Vec<PerfMap> = written.changed_since(&self.before).collect();
        if written.is_empty() && summary.pinned.processes.is_empty() {
            return BTreeMap::new();
        }
        let of_dotnet = written.iter().filter(|map| map.is_of_dotnet());
        let of_dotnet: BTreeSet<Pid> = of_dotnet.map(|map| map.pid).collect();
        let requested = perf_maps::requested_processes(&summary.files, |pid, mapped| {
            let by_map = || {
                self.settings
                    .of_dotnet()
                    .filter(|_| of_dotnet.contains(&pid))
            };
            self.settings.of_executable(mapped).or_else(by_map)
        });
        // Other programs write such maps on their own: those stay.
        let written = written.into_iter();
        maps.extend(written.filter(|map| requested.contains_key(&map.pid)));
        maps.extend(perf_maps::inside(&summary.pinned, &requested, &self.before));
        requested
    }

    /// The perf maps that the JVMs wrote whose names were not read from their memory.
    fn request_from_jvms(
        &self,
        pinned: &PinnedFiles,
        signals: &Signals,
        console: Console,
    ) -> Vec<PerfMap> {
        let mut pids = descendants(&self.attached, &BTreeSet::new());
        pids.extend(&self.attached);
        let deadline = Deadline::after(ALL_JVMS, signals);
        let mut written = Vec::new();
        for pid in pids
            .into_iter()
            .filter(|pid| !pinned.perf_maps.contains_key(pid))
        {
            match java::request_perf_map(pid, &deadline) {
                Ok(map) => written.extend(map),
                Err(error) => {
                    console.say(format_args!(
                        "the JVM {pid} did not name the code it compiled: {error}"
                    ));
                    if error.kind() == ErrorKind::Interrupted {
                        break;
                    }
                }
            }
            if deadline.has_passed() {
                console.say(format_args!(
                    "prof waits {} s for all JVMs together: the others name no code",
                    ALL_JVMS.as_secs()
                ));
                break;
            }
        }
        written
    }
}
