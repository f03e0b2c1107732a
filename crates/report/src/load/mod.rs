//! Files to profiles: [`input`] distinguishes formats. Of recordings, records are followed, stacks
//! unwound where the file holds dumps, and everything interned.

mod counts;
mod current_names;
mod events;
mod foreign;
mod imports;
mod input;
mod losses;
mod packed;
mod progress;
mod samples;
mod stacks;
mod streaming;
mod weights;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use prof_model::{Modules, Pid, Processes, Tid};
use prof_perfdata::{ClockData, Record, Recording, Sample, follow};
use prof_symbols::RecordedKernel;
use rustc_hash::FxHashSet;

use crate::error::InputError;
use crate::profile::{Header, Profile};

pub use input::{profile_of, read, recording_file};
pub use progress::LoadProgress;
pub use streaming::{Span, StreamingProfile};

use current_names::CurrentNames;
use progress::Meter;
use samples::Collector;
use stacks::chain::Chain;
use stacks::dumps::{Context, Dumps};
use stacks::stack_check::{Opinion, StackChecks};

/// How to load a recording.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct LoadOptions {
    /// The use of copies of stacks that the file may hold.
    pub stack_copies: StackCopies,
    /// Keeps the interpreter's own functions among those of the program.
    pub native: bool,
    /// Where the recorded machine's files are, if not below `/`.
    pub symfs: Option<PathBuf>,
    /// Receives the progress, for recordings of prof and perf.
    pub progress: Option<Arc<LoadProgress>>,
}

/// The use of copies of stacks (`perf record --call-graph dwarf`, `prof record --no-unwind`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StackCopies {
    /// Such samples have the one frame they were in.
    Ignore,
    /// prof's unwinder unwinds them.
    #[default]
    Unwind,
    /// framehop unwinds them. It is an error if there are none.
    UnwindWithFramehop,
    /// prof's unwinder unwinds them, and [`Profile::stack_check`] says where framehop differs. It
    /// is an error if there are none.
    Check,
}

impl StackCopies {
    /// Whether there must be some.
    fn are_needed(self) -> bool {
        matches!(self, Self::UnwindWithFramehop | Self::Check)
    }
}

/// Reads a recording to its end.
///
/// A recording that was cut off gives what is there, and says so in [`Profile::quality`].
///
/// # Errors
/// The file can't be read as a recording at all, or holds no copies of stacks, which are needed.
pub fn load(mut recording: Recording, options: &LoadOptions) -> Result<Profile, InputError> {
    let mut loader = Loader::new(options, &recording);
    let mut meter = Meter::new(options.progress.as_ref(), &recording);
    loop {
        meter.count(&recording);
        loader.learn_events(&recording);
        loader.learn_build_ids(&recording);
        let Some(record) = recording.next() else {
            break;
        };
        if let Some(context) = loader.push(&record) {
            loader.delay(context, &mut recording);
        }
    }
    loader.unwind(&mut recording);
    if options.stack_copies.are_needed() && !loader.collector.counts.has_unwound() {
        return Err(InputError::NoStackCopies);
    }
    if recording.features().has_counts_only {
        return Err(InputError::CountsOnly);
    }
    Ok(loader.finish(&recording))
}

/// Follows the records, in their order.
struct Loader {
    collector: Collector,
    processes: Processes,
    current_names: CurrentNames,
    dumps: Option<Dumps>,
    /// The comparison with framehop's stacks, if requested.
    checks: Option<StackChecks>,
    /// The frames of the current sample; kept to save allocations.
    chain: Chain,
    /// How many modules were given the build ids of the file's table.
    modules_seen: usize,
}

impl Loader {
    fn new(options: &LoadOptions, recording: &Recording) -> Self {
        Self {
            collector: Collector::new(recording.features(), options),
            processes: Processes::default(),
            current_names: CurrentNames::default(),
            checks: (options.stack_copies == StackCopies::Check).then(StackChecks::default),
            dumps: Dumps::new(options),
            chain: Chain::default(),
            modules_seen: 0,
        }
    }

    /// In a recording from a pipe, events may come late.
    fn learn_events(&mut self, recording: &Recording) {
        self.collector.learn_events(recording.events());
    }

    /// Takes a record; or returns what to remember of a sample that has to wait.
    fn push(&mut self, record: &Record<'_>) -> Option<Context> {
        let counts = &mut self.collector.counts;
        match record {
            Record::Sample(sample) => return self.sample(sample),
            Record::Lost(lost) => counts.lost(lost),
            Record::LostSamples(lost) => {
                counts.lost_samples(lost, self.collector.traits.of(lost.stamp.event));
            }
            Record::Throttle(_) => counts.throttled(),
            _ => {
                self.current_names.follow(record, &self.processes);
                self.follow_lifetimes(record);
                let modules = &mut self.collector.profile.modules;
                follow(record, &mut self.processes, modules);
            }
        }
        None
    }

    fn follow_lifetimes(&mut self, record: &Record<'_>) {
        let thread_lifetimes = &mut self.collector.profile.thread_lifetimes;
        match record {
            Record::Fork(task) if !task.existed => {
                thread_lifetimes.begin(task.pid, task.tid, task.time)
            }
            Record::Exit(task) => {
                thread_lifetimes.end(task.pid, task.tid, task.time);
                if task.pid == task.tid {
                    self.collector.interner.forget(task.pid);
                }
            }
            _ => {}
        }
    }

    fn sample(&mut self, sample: &Sample<'_>) -> Option<Context> {
        let (pid, tid) = (sample.pid, sample.tid);
        let process = self.processes.get(pid);
        let names = &mut self.collector.profile.names;
        let name = self.current_names.get(pid, tid, process, names);
        if self.dumps.as_ref().is_some_and(|dumps| dumps.delay(sample)) {
            return Some(Context {
                process: self.processes.shared(pid),
                name,
                copied: sample.user_stack.map_or(0, |stack| stack.bytes.len()),
            });
        }
        self.chain
            .read(sample, self.collector.traits.of(sample.event));
        self.collector.push(sample, &mut self.chain, process, name);
        None
    }

    /// Has the sample that came last wait, until there is enough to unwind.
    fn delay(&mut self, context: Context, recording: &mut Recording) {
        let (Some(dumps), Some(record)) = (&mut self.dumps, recording.hold()) else {
            return;
        };
        if dumps.add(record, context) {
            self.unwind(recording);
        }
    }

    /// Unwinds all that waits.
    fn unwind(&mut self, recording: &mut Recording) {
        let Some(dumps) = &mut self.dumps else {
            return;
        };
        let waiting = dumps.take();
        let collector = &mut self.collector;
        let (traits, modules) = (&collector.traits, &collector.profile.modules);
        let finished = dumps.unwind(&waiting, recording, traits, modules);
        for (finished, waiting) in finished.zip(&waiting) {
            let Some(mut finished) = finished else {
                continue;
            };
            if finished.unwound {
                collector.counts.unwound();
            }
            let Context { process, name, .. } = &waiting.context;
            let process = process.as_deref();
            let (sample, chain) = (&finished.sample, &mut finished.chain);
            collector.push(sample, chain, process, *name);
            if let (Some(checks), Some(second)) = (&mut self.checks, &finished.second)
                && chain.note.end.counts()
            {
                let (interner, profile) = (&mut collector.interner, &mut collector.profile);
                checks.compare(Opinion::of(chain), second.opinion(), |address| {
                    interner.user_frame(sample.pid, process, address, profile)
                });
            }
        }
        for waiting in waiting {
            waiting.release(recording);
        }
        collector.interner.forget_old(&self.processes);
    }

    /// Gives modules the build ids that the file has in a table rather than in MMAP2 records.
    fn learn_build_ids(&mut self, recording: &Recording) {
        let modules = &mut self.collector.profile.modules;
        if modules.len() == self.modules_seen {
            return;
        }
        let table = &recording.features().build_ids;
        let unknown: Vec<_> = modules
            .iter()
            .skip(self.modules_seen)
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
        self.modules_seen = modules.len();
    }

    /// Frames, stacks and names have other numbers from now on, and of ended threads only these are
    /// needed.
    fn renumber(&mut self, is_needed: impl FnMut(Pid, Tid) -> bool) {
        self.collector.forget_numbers();
        self.current_names.renumber(is_needed);
    }

    fn finish(mut self, recording: &Recording) -> Profile {
        let profile = std::mem::take(&mut self.collector.profile);
        self.complete(profile, recording)
    }

    /// Gives the sampled processes the names of their main threads, which may have no samples.
    fn name_processes(&self, profile: &mut Profile) {
        let sampled: FxHashSet<Pid> = profile.samples.iter().map(|sample| sample.pid).collect();
        for pid in sampled {
            if let Some(name) = self.current_names.main(pid, self.processes.get(pid)) {
                let name = profile.names.intern(name);
                profile.main_names.insert(pid, name);
            }
        }
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
        let zero = |clock: ClockData| i128::from(clock.wall_clock) - i128::from(clock.clock);
        profile.clock_zero = features.clock.and_then(|clock| zero(clock).try_into().ok());
        profile.symbols = features.symbols.clone();
        profile.native = self.collector.native;
        profile.kernel = kernel(&self.processes, &profile.modules);
        self.name_processes(&mut profile);
        profile.events = self.collector.describe(recording.events());
        profile.quality = self.collector.counts.clone().finish(&profile, recording);
        profile.stack_check = self.checks.as_ref().map(|checks| checks.finish(&profile));
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
