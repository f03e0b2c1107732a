//! Files to profiles: [`input`] tells formats apart. Of recordings, records are followed, stacks
//! unwound where the file holds dumps, and everything interned.

mod chain;
mod counts;
mod dumps;
mod events;
mod files;
mod folded;
mod groups;
mod imported;
mod input;
mod intern;
mod live;
mod pprof;
mod progress;
mod thread_names;
mod wall;
mod weights;

use std::path::Path;
use std::sync::Arc;

use prof_model::{Modules, Pid, Processes};
use prof_perfdata::{Record, Recording, follow};
use prof_symbols::RecordedKernel;

use crate::profile::{Header, Profile, Sample};

pub use input::{profile_of, read};
pub use live::{LiveProfile, Span};
pub use progress::LoadProgress;

use chain::Chain;
use counts::Counts;
use dumps::Dumps;
use events::EventTraits;
use groups::Groups;
use intern::{Interner, Owner};
use progress::Meter;
use thread_names::ThreadNames;
use wall::Wall;
use weights::Corrections;

/// How to load a recording.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LoadOptions {
    /// Whether to unwind the copies of stacks that the file may hold (`perf record --call-graph
    /// dwarf`, `prof record --no-unwind`). Without, such samples have the one frame they were in.
    pub unwind: bool,
    /// Is told how far it is, of recordings of prof and perf.
    pub progress: Option<Arc<LoadProgress>>,
}

impl Default for LoadOptions {
    fn default() -> Self {
        Self {
            unwind: true,
            progress: None,
        }
    }
}

/// Reads a recording to its end.
///
/// A recording that was cut off gives what is there, and says so in [`Profile::quality`].
///
/// # Errors
/// The file can't be read as a recording at all.
pub fn load(
    mut recording: Recording,
    options: &LoadOptions,
) -> Result<Profile, prof_perfdata::Error> {
    let mut loader = Loader::new(options, &recording);
    let mut meter = Meter::new(options.progress.as_ref(), &recording);
    loop {
        meter.count(&recording);
        loader.learn_events(&recording);
        loader.learn_build_ids(&recording);
        match recording.next()? {
            Some(record) => loader.push(&record),
            None => break,
        }
    }
    Ok(loader.finish(&recording))
}

struct Loader {
    profile: Profile,
    traits: EventTraits,
    groups: Groups,
    wall: Option<Wall>,
    /// What the current sample stands for; kept to save allocations.
    weights: Vec<(usize, u64)>,
    processes: Processes,
    interner: Interner,
    thread_names: ThreadNames,
    dumps: Option<Dumps>,
    counts: Counts,
    chain: Chain,
    corrections: Corrections,
    /// How many modules were given the build ids of the file's table.
    modules_told: usize,
}

impl Loader {
    fn new(options: &LoadOptions, recording: &Recording) -> Self {
        Self {
            profile: Profile::default(),
            traits: EventTraits::default(),
            groups: Groups::default(),
            wall: None,
            weights: Vec::new(),
            processes: Processes::default(),
            interner: Interner::default(),
            thread_names: ThreadNames::default(),
            dumps: options.unwind.then(Dumps::default),
            counts: Counts::default(),
            chain: Chain::default(),
            corrections: Corrections::new(recording.features().quality.as_ref()),
            modules_told: 0,
        }
    }

    /// In a recording from a pipe, events may come late.
    fn learn_events(&mut self, recording: &Recording) {
        if self.traits.update(recording.events()) {
            self.groups.update(recording.events());
            self.wall = Wall::of(recording.events());
            self.corrections.update(recording.events());
        }
    }

    fn push(&mut self, record: &Record<'_>) {
        match record {
            Record::Sample(sample) => self.sample(sample),
            Record::Lost(lost) | Record::LostSamples(lost) => self.counts.lost(lost.count),
            Record::Throttle(_) => self.counts.throttled(),
            _ => {
                self.interner.forget_changed(record);
                self.thread_names.forget_changed(record);
                self.live_and_die(record);
                follow(record, &mut self.processes, &mut self.profile.modules);
            }
        }
    }

    fn live_and_die(&mut self, record: &Record<'_>) {
        let thread_lifetimes = &mut self.profile.thread_lifetimes;
        match record {
            Record::Fork(task) if !task.existed => {
                thread_lifetimes.begin(task.pid, task.tid, task.time)
            }
            Record::Exit(task) => thread_lifetimes.end(task.pid, task.tid, task.time),
            _ => {}
        }
    }

    fn sample(&mut self, sample: &prof_perfdata::Sample<'_>) {
        self.chain.read(sample, self.traits.of(sample.event));
        if let Some(dumps) = &mut self.dumps {
            let modules = &self.profile.modules;
            if dumps.unwind(sample, &self.processes, modules, &mut self.chain) {
                self.counts.unwound();
            }
        }
        let process = self.processes.get(sample.pid);
        if process.is_some_and(|process| process.space().iter().next().is_none()) {
            self.chain.drop_stale_user_part();
        }
        let owner = Owner {
            pid: sample.pid,
            process,
        };
        let stack = self
            .interner
            .stack(None, &self.chain, owner, &mut self.profile);
        let is_partial = self.chain.note.end.counts() && !self.chain.note.end.is_whole();
        let outermost = self
            .chain
            .user
            .last()
            .filter(|_| is_partial)
            .map(|&address| {
                self.interner
                    .user_frame(sample.pid, process, address, &mut self.profile)
            });
        self.counts.stack(self.chain.note, outermost);
        let (pid, tid) = (sample.pid, sample.tid);
        let name = (self.thread_names).get(pid, tid, process, &mut self.profile.names);
        let wall = self.wall.and_then(|wall| wall.place(sample.event));
        let wall = wall.map(|(event, root)| {
            let (chain, profile) = (&self.chain, &mut self.profile);
            let stack = (self.interner).stack(Some(root), chain, owner, profile);
            (event, stack)
        });
        self.groups.weights(sample, &mut self.weights);
        for &(event, period) in &self.weights {
            let sample = Sample {
                time: sample.time.unwrap_or(0),
                pid,
                tid,
                cpu: sample.cpu,
                event: u16::try_from(event).unwrap_or(u16::MAX),
                period: self.corrections.apply(event, (process, pid, tid), period),
                count: 1,
                name,
                stack,
                end: self.chain.note.end,
                remote_read: self.chain.note.remote_read,
            };
            self.profile.samples.push(sample);
            if let Some((event, stack)) = wall {
                self.profile.samples.push(Sample {
                    event,
                    stack,
                    ..sample
                });
            }
        }
    }
    /// Gives modules the build ids that the file has in a table rather than in MMAP2 records.
    fn learn_build_ids(&mut self, recording: &Recording) {
        let modules = &mut self.profile.modules;
        if modules.len() == self.modules_told {
            return;
        }
        let table = &recording.features().build_ids;
        let unknown: Vec<_> = modules
            .iter()
            .skip(self.modules_told)
            .filter(|(_, module)| module.build_id.is_none())
            .filter_map(|(id, module)| {
                let path = module.path.as_os_str();
                let mut entries = table.iter().filter(|entry| entry.path == path);
                let entry = entries.next()?;
                // Two files of one path: nothing says which of them this is.
                entries.next().is_none().then_some((id, entry.build_id))
            })
            .collect();
        for (id, build_id) in unknown {
            modules.set_build_id(id, build_id);
        }
        self.modules_told = modules.len();
    }

    /// Frames, stacks and names have other numbers from now on.
    fn forget_numbers(&mut self) {
        self.interner = Interner::default();
        self.thread_names = ThreadNames::default();
        self.counts.forget_frames();
    }

    fn finish(mut self, recording: &Recording) -> Profile {
        let profile = std::mem::take(&mut self.profile);
        self.complete(profile, recording)
    }

    /// Adds what is known of the recording as a whole.
    fn complete(&self, mut profile: Profile, recording: &Recording) -> Profile {
        let features = recording.features();
        profile.header = Header {
            command_line: features
                .command_line
                .iter()
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
            hostname: features.hostname.clone(),
            os_release: features.os_release.clone(),
            arch: features.arch.clone(),
        };
        profile.symbols = features.symbols.clone();
        profile.kernel = kernel(&self.processes, &profile.modules);
        profile.events = recording.events().iter().map(events::describe).collect();
        let wall = self.wall.map(|_| Wall::event());
        profile.events.extend(wall);
        profile.quality = self.counts.clone().finish(&profile, recording);
        profile
    }
}

/// What the mapping of the kernel's code says: perf and prof put the address of `_text` where
/// other mappings have the offset in the file.
fn kernel(processes: &Processes, modules: &Modules) -> RecordedKernel {
    const KERNEL: Pid = -1;
    const NAME: &str = "[kernel.kallsyms]";
    let mut mappings = processes
        .get(KERNEL)
        .into_iter()
        .flat_map(|kernel| kernel.space().iter());
    let text = mappings.find(|mapping| modules[mapping.module].path == Path::new(NAME));
    text.map_or_else(RecordedKernel::default, |mapping| RecordedKernel {
        build_id: modules[mapping.module].build_id,
        text: Some(mapping.file_offset.0).filter(|&text| text != 0),
    })
}
