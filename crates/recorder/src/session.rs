//! Records in the order of time: followed, unwound, written.

mod samples;
mod state;
mod tally;

use std::time::Instant;

use prof_events::{Weight, system};
use prof_model::{Modules, Pid, Processes, Quality, StackEnd};
use prof_perfdata::{Attr, Record, RecordFormat, WriteError, encode, follow};

use crate::allocation::EveryBytes;
use crate::backlog::{Backlog, Batch, Popped, ReaderCounts};
use crate::catching_up::CatchingUp;
use crate::checkpoints::Checkpoints;
use crate::contents::Contents;
use crate::coverage::Lifetimes;
use crate::duplicates::Duplicates;
use crate::held::Held;
use crate::hotplug::Hotplug;
use crate::kept::{Keeper, KeptFiles};
use crate::options::Storage;
use crate::order::{Order, Waiting};
use crate::probe_coverage::ProbeCoverage;
use crate::reader::Outcome;
use crate::rotation::{Turn, Turns};
use crate::series::{Series, Written};
use crate::unwind::ChainMaker;
use crate::waits::Waits;
use tally::Tally;

/// Puts records in order, follows the processes, unwinds samples and writes it all.
pub(crate) struct Session {
    /// Of the records in the rings.
    format: RecordFormat,
    events: Vec<SessionEvent>,
    series: Series,
    turns: Turns,
    chain_maker: Box<ChainMaker>,
    processes: Processes,
    modules: Modules,
    duplicates: Duplicates,
    keeper: Keeper,
    waits: Waits,
    every_bytes: EveryBytes,
    /// Of the file at hand, or of the chunk that is kept in memory.
    tally: Tally,
    /// Of all files before.
    total: Contents,
    /// What the reader had counted when it was last asked.
    counted: ReaderCounts,
    /// Samples that records have told to be lost.
    told_lost: u64,
    lifetimes: Lifetimes,
    probes: ProbeCoverage,
    hotplug: Hotplug,
    own_pid: Pid,
    /// Bytes written since readers were last told that all before is in order.
    since_round: usize,
    /// Whether a stack needed the live target since the reader was last told so.
    urgent: bool,
    /// Bytes of records after which the recording ends.
    max_size: Option<u64>,
    checkpoints: Checkpoints,
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

/// All that is left when the last record is written.
pub(crate) struct Finished {
    /// Of all files.
    pub(crate) quality: Quality,
    pub(crate) kept: KeptFiles,
    pub(crate) written: Written,
    /// Whether the last file could be completed.
    pub(crate) ended: Result<(), WriteError>,
}

impl Session {
    /// Readers sort records in memory from one end of a round to the next.
    const ROUND: usize = 256 << 10;
    pub(crate) fn new(
        format: RecordFormat,
        events: Vec<SessionEvent>,
        series: Series,
        duplicates: Duplicates,
        lifetimes: Lifetimes,
        hotplug: Hotplug,
    ) -> Self {
        Self {
            format,
            events,
            series,
            turns: Turns::new(None),
            chain_maker: Box::new(ChainMaker::new()),
            processes: Processes::default(),
            modules: Modules::default(),
            duplicates,
            keeper: Keeper::default(),
            waits: Waits::default(),
            every_bytes: EveryBytes::default(),
            tally: Tally::default(),
            total: Contents::default(),
            counted: ReaderCounts::default(),
            told_lost: 0,
            lifetimes,
            probes: ProbeCoverage::default(),
            hotplug,
            own_pid: std::process::id() as Pid,
            since_round: 0,
            urgent: false,
            max_size: None,
            checkpoints: Checkpoints::begin(Instant::now()),
            out: Vec::new(),
            chain: Vec::new(),
        }
    }

    /// Keeps to limits on the size of files and to when another one is to be begun.
    pub(crate) fn stored(self, storage: &Storage) -> Self {
        let when = storage.rotation.as_ref().map(|rotation| rotation.when);
        Self {
            max_size: storage.max_size,
            turns: Turns::new(when),
            ..self
        }
    }

    /// Follows which programs the probes reach.
    pub(crate) fn probing(self, probes: ProbeCoverage) -> Self {
        Self { probes, ..self }
    }

    /// What is written stays, whatever comes: the target runs.
    pub(crate) fn keep(&mut self) {
        self.series.keep();
    }

    /// Whether the recording has ended because it is as large as it may be.
    pub(crate) fn is_full(&self) -> bool {
        (self.max_size).is_some_and(|most| self.series.data_size() >= most)
    }

    /// Takes batches until the backlog is closed.
    pub(crate) fn run(&mut self, backlog: &Backlog) -> Result<(), WriteError> {
        let mut order = Order::default();
        let mut ready = Vec::new();
        let mut held = Held::default();
        let mut last_time = 0;
        let mut catching_up = CatchingUp::default();
        self.begin_files()?;
        loop {
            if let Some(time) = backlog.take_switch() {
                self.turns.ask(time);
            }
            let batch = match backlog.pop(self.checkpoints.interval()) {
                Popped::Batch(batch) => batch,
                Popped::Nothing => {
                    self.turn(system::monotonic_now())?;
                    self.checkpoint()?;
                    continue;
                }
                Popped::End => break,
            };
            catching_up.follow(backlog);
            self.tally.count_reader(batch.counts, self.counted);
            self.counted = batch.counts;
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
            self.turn(waiting.time)?;
            self.chain_maker.unwinds = backlog.unwinds();
            if let Some(batch) = held.get(waiting.batch) {
                self.record(batch, waiting.index)?;
            }
            if self.is_full() {
                return Ok(());
            }
            held.done_with(waiting.batch);
        }
        if std::mem::take(&mut self.urgent) {
            backlog.ask_for_haste();
        }
        while let Some(batch) = held.pop_done() {
            backlog.recycle(batch);
        }
        if self.since_round >= Self::ROUND {
            self.end_round()?;
        }
        match self.checkpoints.are_due(Instant::now()) {
            true => self.checkpoint(),
            false => Ok(()),
        }
    }

    /// Samples come from here on, and processes that lived before are known.
    fn begin_files(&mut self) -> Result<(), WriteError> {
        let state = match self.series.is_in_memory() {
            true => self.state(),
            // The file has it.
            false => Vec::new(),
        };
        let now = system::monotonic_now();
        self.turns.begin(now);
        self.series.begin(now, state)
    }

    /// Goes on in another file, if that is due before a record of this time.
    fn turn(&mut self, time: u64) -> Result<(), WriteError> {
        let Some(turn) = self.turns.due(time, self.series.news()) else {
            return Ok(());
        };
        let contents = self.contents();
        match turn {
            Turn::Chunk => self.series.end_chunk(contents),
            Turn::File => {
                let contents = self.series.complete(contents)?;
                self.total.add(contents);
                self.series.next()?;
                self.since_round = 0;
            }
        }
        self.series.begin(time, self.state())
    }

    /// What there is in the file or chunk at hand, which ends here.
    fn contents(&mut self) -> Contents {
        let mut tally = std::mem::take(&mut self.tally);
        let waits = self.waits.take_seen();
        self.hotplug.look();
        tally.quality.changed_cpus = self.hotplug.changed().to_vec();
        tally.quality.waits = Some(waits).filter(|waits| waits.seen < waits.waits);
        self.told_lost += tally.quality.losses.ring_full;
        tally.into_contents(&self.modules)
    }

    /// All that comes from here on is younger.
    fn end_round(&mut self) -> Result<(), WriteError> {
        self.out.clear();
        encode::finished_round(&mut self.out);
        self.since_round = 0;
        self.series.write(&self.out)
    }

    /// What was written so far can be read if we should be killed.
    fn checkpoint(&mut self) -> Result<(), WriteError> {
        if self.since_round > 0 {
            self.end_round()?;
        }
        self.hotplug.look();
        self.checkpoints.done(Instant::now());
        self.series.checkpoint()
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
        self.probes.follow(&record, &self.processes);
        self.since_round += bytes.len();
        self.series.write(bytes)
    }

    /// Completes the last file. `outcome` is what the reader found out at the end.
    pub(crate) fn finish(mut self, outcome: Option<&Outcome>) -> Finished {
        let full = self.is_full();
        let mut last = self.contents();
        // No record tells of what was lost after the last one.
        let lost = outcome.map_or(0, |outcome| outcome.lost);
        last.quality.losses.ring_full += lost.saturating_sub(self.told_lost);
        last.quality.size_limit = self.max_size.filter(|_| full);
        last.quality.unseen.left_running = self.left_running(outcome);
        let counts = outcome.map_or(&[][..], |outcome| &outcome.counts);
        let (covered_event, unsampled) = self.lifetimes.subject();
        let probes = self.probes.finish(outcome.map(|outcome| outcome.ended));
        let mut all = self.total.quality.clone();
        all.add(&last.quality);
        let coverage = match full {
            // Of what was counted up to the end, not all was sampled up to here.
            true => Vec::new(),
            false => (self.lifetimes).finish(counts, all.lost_share(), &self.processes),
        };
        if self.series.is_one() {
            last.quality.coverage.clone_from(&coverage);
            last.quality.covered_event.clone_from(&covered_event);
            last.quality.unsampled.clone_from(&unsampled);
            last.quality.probes.clone_from(&probes);
        }
        let ended = (self.series.complete(last)).map(|contents| self.total.add(contents));
        Finished {
            quality: Quality {
                coverage,
                covered_event,
                unsampled,
                probes,
                ..self.total.quality
            },
            kept: self.keeper.finish(&self.modules),
            written: self.series.written(),
            ended,
        }
    }
}
