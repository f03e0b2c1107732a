//! Records in the order of time: followed, unwound, written.

mod samples;

use std::fs::File;
use std::time::{Duration, Instant};

use prof_events::Weight;
use prof_model::{AbsoluteAddress, Mapping, Modules, Pid, Process, Processes, Quality, StackEnd};
use prof_perfdata::{
    Attr, ModuleBuildId, Record, RecordFormat, Sample, StackNote, WriteError, Writer, context,
    encode, follow,
};

use crate::allocation::EveryBytes;
use crate::backlog::{Backlog, Batch, Popped, ReaderCounts};
use crate::coverage::Lifetimes;
use crate::duplicates::Duplicates;
use crate::failures::{Failures, Place};
use crate::held::Held;
use crate::hits::Hits;
use crate::kept::{Keeper, KeptFiles};
use crate::kernel_modules;
use crate::order::{Order, Waiting};
use crate::synthesize::{self, BuildIds};
use crate::unwind::ChainMaker;
use crate::waits::Waits;

/// Puts records in order, follows the processes, unwinds samples and writes it all.
pub(crate) struct Session {
    /// Of the records in the rings.
    format: RecordFormat,
    events: Vec<SessionEvent>,
    writer: Writer<File>,
    chain_maker: Box<ChainMaker>,
    processes: Processes,
    modules: Modules,
    duplicates: Duplicates,
    keeper: Keeper,
    waits: Waits,
    every_bytes: EveryBytes,
    tally: Tally,
    lifetimes: Lifetimes,
    /// Bytes written since readers were last told that all before is in order.
    since_round: usize,
    /// Bytes of records after which the recording ends.
    max_size: Option<u64>,
    /// When the file was last made readable.
    checked: Instant,
    /// A record while it is put together.
    out: Vec<u8>,
    chain: Vec<u64>,
}

/// One of the events whose samples come.
pub(crate) struct SessionEvent {
    /// How its records are in the file.
    pub(crate) attr: Attr,
    /// What is to be done with its stacks.
    pub(crate) stacks: StackWork,
    /// What its samples weigh.
    pub(crate) weight: Weight,
}

/// What is to be done with the stacks of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StackWork {
    /// Unwind them.
    Unwind,
    /// Leave them in the file as they came, and count them as ended like this.
    Keep(StackEnd),
}

/// What is counted on the way.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) quality: Quality,
    failures: Failures,
    hits: Hits,
    /// Time of the first and of the last sample.
    pub(crate) sample_time: Option<(u64, u64)>,
}

/// All that is left when the last record is written.
pub(crate) struct Finished {
    pub(crate) writer: Writer<File>,
    pub(crate) quality: Quality,
    pub(crate) sample_time: Option<(u64, u64)>,
    pub(crate) build_ids: Vec<ModuleBuildId>,
    pub(crate) kept: KeptFiles,
}

impl Session {
    /// Readers sort records in memory from one end of a round to the next.
    const ROUND: usize = 256 << 10;
    /// The file is made readable this often.
    const CHECKPOINT: Duration = Duration::from_secs(1);

    pub(crate) fn new(
        format: RecordFormat,
        events: Vec<SessionEvent>,
        writer: Writer<File>,
        duplicates: Duplicates,
        lifetimes: Lifetimes,
    ) -> Self {
        Self {
            format,
            events,
            writer,
            chain_maker: Box::new(ChainMaker::new()),
            processes: Processes::default(),
            modules: Modules::default(),
            duplicates,
            keeper: Keeper::default(),
            waits: Waits::default(),
            every_bytes: EveryBytes::default(),
            tally: Tally::default(),
            lifetimes,
            since_round: 0,
            max_size: None,
            checked: Instant::now(),
            out: Vec::new(),
            chain: Vec::new(),
        }
    }

    /// Ends after so many bytes of records.
    pub(crate) fn of_size(self, max_size: Option<u64>) -> Self {
        Self { max_size, ..self }
    }

    /// Whether the recording has ended because it is as large as it may be.
    pub(crate) fn is_full(&self) -> bool {
        (self.max_size).is_some_and(|most| self.writer.data_size() >= most)
    }

    /// Writes where the kernel's code is.
    pub(crate) fn begin_kernel(&mut self) -> Result<(), WriteError> {
        self.begin(|each| {
            synthesize::kernel(each);
            kernel_modules::synthesize(each);
        })
    }

    /// Writes the name that a command has until it has called `exec`, as perf does.
    pub(crate) fn begin_command(&mut self, pid: Pid) -> Result<(), WriteError> {
        self.begin(|each| each(&synthesize::held_command(pid)))
    }

    /// Writes what is known of processes that ran before they were sampled, unless it is known
    /// already. It must be soon after sampling began: what has ended tells nothing any more.
    pub(crate) fn begin_processes(&mut self, pids: &[Pid]) -> Result<(), WriteError> {
        self.begin(|each| {
            let mut ids = BuildIds::default();
            for &pid in pids {
                synthesize::process(pid, &mut ids, each);
            }
        })
    }

    fn begin(
        &mut self,
        synthesize: impl FnOnce(&mut dyn FnMut(&Record<'_>)),
    ) -> Result<(), WriteError> {
        let Some(SessionEvent { attr, .. }) = self.events.first() else {
            return Ok(());
        };
        let mut out = Vec::new();
        synthesize(&mut |record: &Record<'_>| {
            if is_known(record, &self.processes, &self.modules) {
                return;
            }
            // A name or path that is too long for a record cannot come from the kernel.
            let _ = match record {
                Record::Mmap(mmap) => encode::mmap2(&mut out, attr, mmap),
                Record::Comm(comm) => encode::comm(&mut out, attr, comm),
                _ => Ok(()),
            };
            follow(record, &mut self.processes, &mut self.modules);
        });
        self.writer.write(&out)
    }

    /// Takes batches until the backlog is closed.
    pub(crate) fn run(&mut self, backlog: &Backlog) -> Result<(), WriteError> {
        let mut order = Order::default();
        let mut ready = Vec::new();
        let mut held = Held::default();
        let mut last_time = 0;
        loop {
            let batch = match backlog.pop(Self::CHECKPOINT) {
                Popped::Batch(batch) => batch,
                Popped::Nothing => {
                    self.checkpoint()?;
                    continue;
                }
                Popped::End => break,
            };
            let counts = batch.counts;
            self.tally.count_reader(counts);
            for index in 0..batch.len() {
                // A record without a time belongs where it came.
                last_time = self.format.time(batch.record(index)).unwrap_or(last_time);
                order.push(Waiting {
                    time: last_time,
                    batch: held.next(),
                    index,
                });
            }
            held.push(batch);
            order.end_pass(&mut ready);
            self.deal_with(&mut ready, &mut held, backlog)?;
            if self.is_full() {
                return Ok(());
            }
        }
        order.finish(&mut ready);
        self.deal_with(&mut ready, &mut held, backlog)?;
        self.end_waits()
    }

    fn deal_with(
        &mut self,
        ready: &mut Vec<Waiting>,
        held: &mut Held,
        backlog: &Backlog,
    ) -> Result<(), WriteError> {
        for waiting in ready.drain(..) {
            if let Some(batch) = held.get(waiting.batch) {
                self.record(batch, waiting.index)?;
            }
            if self.is_full() {
                return Ok(());
            }
            held.done_with(waiting.batch);
        }
        while let Some(batch) = held.pop_done() {
            backlog.recycle(batch);
        }
        if self.since_round >= Self::ROUND {
            self.end_round()?;
        }
        match self.checked.elapsed() >= Self::CHECKPOINT {
            true => self.checkpoint(),
            false => Ok(()),
        }
    }

    /// All that comes from here on is younger.
    fn end_round(&mut self) -> Result<(), WriteError> {
        self.out.clear();
        encode::finished_round(&mut self.out);
        self.since_round = 0;
        self.writer.write(&self.out)
    }

    /// What was written so far can be read if we should be killed.
    fn checkpoint(&mut self) -> Result<(), WriteError> {
        if self.since_round > 0 {
            self.end_round()?;
        }
        self.checked = Instant::now();
        self.writer.checkpoint()
    }

    fn record(&mut self, batch: &Batch, index: usize) -> Result<(), WriteError> {
        let bytes = batch.record(index);
        let Ok(record) = self.format.parse(bytes) else {
            self.tally.quality.losses.malformed += 1;
            return Ok(());
        };
        self.tally.count(&record);
        match &record {
            Record::Sample(sample) => return self.sample(sample, bytes, batch, index),
            Record::Switch(switch) => return self.switch(switch),
            Record::Exit(task) => {
                self.duplicates.forget(task.tid);
                if let Some(unseen) = self.waits.forget(task.tid) {
                    self.unseen(unseen, task.stamp.time.unwrap_or(task.time))?;
                }
                if task.tid == task.pid {
                    self.keeper.forget(task.pid);
                }
            }
            _ => {}
        }
        self.lifetimes.follow(&record, &self.processes);
        follow(&record, &mut self.processes, &mut self.modules);
        self.since_round += bytes.len();
        self.writer.write(bytes)
    }

    /// Counts how a sample's stack ended, and which modules it was in.
    fn note(&mut self, sample: &Sample<'_>, note: StackNote, unwound: bool) {
        let tally = &mut self.tally;
        tally.quality.count_stack(note.end);
        tally.quality.read_back += u64::from(note.read_back > 0);
        if let Some(time) = sample.time {
            let (first, last) = tally.sample_time.unwrap_or((time, time));
            tally.sample_time = Some((first.min(time), last.max(time)));
        }
        let process = self.processes.get(sample.pid);
        let space = process.map(|process| process.space());
        if let Some(process) = process {
            self.keeper.meet(sample.pid, process.generation());
        }
        if let Some(space) = space {
            let (keeper, modules) = (&mut self.keeper, &self.modules);
            let keep = |mapping: &Mapping| keeper.hit(sample.pid, mapping, modules);
            tally.hits.mark(space, &self.chain, keep);
        }
        tally.hits.kernel |= sample.mode.is_kernel();
        if note.end.is_whole() || !note.end.counts() || !unwound {
            return;
        }
        let last = self
            .chain
            .last()
            .copied()
            .filter(|&last| last < context::MAX);
        let address = AbsoluteAddress(last.unwrap_or(sample.ip));
        let mapping = space.and_then(|space| space.find(address));
        tally.failures.count(Place {
            end: note.end,
            module: mapping.map(|mapping| mapping.module),
            offset: mapping.map_or(address.0, |mapping| mapping.file_offset_of(address).0),
        });
    }

    /// What is left to write at the end of the file. `counted` is what each event counted, by its
    /// id.
    pub(crate) fn finish(self, counted: &[(u64, u64)]) -> Finished {
        let full = self.is_full();
        let mut quality = self.tally.quality;
        quality.waits = Some(self.waits.seen()).filter(|waits| waits.seen < waits.waits);
        quality.size_limit = self.max_size.filter(|_| full);
        if !full {
            // Of what was counted up to the end, not all was sampled up to here.
            quality.coverage = self.lifetimes.finish(counted, &self.processes);
        }
        quality.failures = self.tally.failures.most_frequent(&self.modules);
        Finished {
            writer: self.writer,
            quality,
            sample_time: self.tally.sample_time,
            build_ids: self.tally.hits.build_ids(&self.modules),
            kept: self.keeper.finish(&self.modules),
        }
    }
}

/// Whether the file tells that already.
fn is_known(record: &Record<'_>, processes: &Processes, modules: &Modules) -> bool {
    match record {
        Record::Comm(comm) => {
            let name = processes.get(comm.pid).and_then(|it| it.own_name(comm.tid));
            name.is_some_and(|name| comm.name == &**name)
        }
        Record::Mmap(mmap) => {
            let space = processes.get(mmap.pid).map(Process::space);
            let found = space.and_then(|space| space.find(AbsoluteAddress(mmap.address)));
            found.is_some_and(|found| {
                let module = &modules[found.module];
                found.start.0 == mmap.address
                    && found.end.0 == mmap.address.saturating_add(mmap.length)
                    && found.file_offset.0 == mmap.file_offset
                    && module.path == mmap.path
                    && (module.build_id, module.identity) == (mmap.build_id, mmap.identity)
            })
        }
        _ => false,
    }
}

impl Tally {
    fn count(&mut self, record: &Record<'_>) {
        let losses = &mut self.quality.losses;
        match record {
            Record::Lost(lost) | Record::LostSamples(lost) => losses.ring_full += lost.count,
            Record::Throttle(_) => losses.throttled += 1,
            _ => {}
        }
    }

    /// The reader's counts are totals.
    fn count_reader(&mut self, counts: ReaderCounts) {
        let losses = &mut self.quality.losses;
        losses.backlog = counts.dropped;
        losses.cut_stacks = counts.cut;
        losses.corrupt_rings = counts.corrupt;
    }
}
