//! A run as the files of a data set, and a data set as a destination of runs.

mod bounded;
mod number;
mod partition;
mod pushed;
mod rows;
mod stored;

use bytes::Bytes;
use prof_model::Verdict;

use crate::destination::{Destination, Pushed};
use crate::error::Error;
use crate::run::Run;
use crate::store::Store;
use crate::table::{RunRow, SampleRow, Table, runs_file, samples_file, stacks_file};
use number::NumberedStack;
use pushed::PushedStacks;

pub(crate) use bounded::{MOST_BYTES, read as read_bounded};
pub(crate) use partition::{Partition, content_name, date_of, run_of, table_prefix};
pub(crate) use rows::end_name;

/// A data set that runs are pushed to.
#[derive(Debug)]
pub(crate) struct DataSet {
    store: Store,
    pushed: PushedStacks,
}

impl DataSet {
    pub(crate) fn new(store: Store) -> Self {
        Self {
            store,
            pushed: PushedStacks::default(),
        }
    }
}

impl Destination for DataSet {
    /// Stacks come first and the run comes last, so that what is there refers to what is there,
    /// wherever this ends, and a run that is there was pushed to its end. Samples and runs are
    /// called by the run's number: those of one recording are there once. Stacks are called by
    /// what is in them: names may be better the next time.
    ///
    /// Damaged files are removed, and those of a run that is there may be among them.
    fn push(&mut self, run: &Run) -> Result<Pushed, Error> {
        let days = days(run, &self.pushed);
        let row = run_row(run, &days);
        let last_day = partition(run, &date_of(row.start));
        let last = last_day.file(Table::Runs, &run.id.to_string());
        let was_complete =
            self.store.has(&last)? || stored::has_run(&self.store, &last_day, run.id)?;
        let mut is_new = !was_complete;
        for day in &days {
            for (table, path, bytes) in day.files(run)? {
                if bytes.len() as u64 > MOST_BYTES {
                    return Err(Error::TooLarge { path });
                }
                if !(was_complete && self.has(run, day, table, &path)?) {
                    is_new |= self.store.put_new(&path, bytes)?;
                }
            }
        }
        if !was_complete {
            self.store.put_new(&last, runs_file(&[row])?)?;
        }
        for day in days {
            self.pushed.add(&day.partition, &day.stacks);
        }
        Ok(match is_new {
            true => Pushed::Stored,
            false => Pushed::Known,
        })
    }
}

impl DataSet {
    /// Whether a file is there, or others that have its rows.
    fn has(&self, run: &Run, day: &Day<'_>, table: Table, path: &str) -> Result<bool, Error> {
        if self.store.has(path)? {
            return Ok(true);
        }
        match table {
            Table::Stacks => stored::has_stacks(&self.store, &day.partition, &day.stacks),
            _ => stored::has_samples(&self.store, &day.partition, run.id),
        }
    }
}

fn partition(run: &Run, date: &str) -> Partition {
    Partition {
        date: date.to_owned(),
        service: run.service.clone(),
        host: run.host.clone(),
    }
}

/// What a run has of one day.
struct Day<'a> {
    partition: Partition,
    samples: Vec<SampleRow<&'a str>>,
    /// Those of the samples that are not there yet.
    stacks: Vec<NumberedStack>,
}

/// The days that a run is of: stacks are looked for among those of the samples' day.
fn days<'a>(run: &'a Run, pushed: &PushedStacks) -> Vec<Day<'a>> {
    let numbered = number::of_stacks(&run.profile);
    let sums = rows::sums(run);
    let mut days = Vec::new();
    let mut rest = &*sums;
    while let Some(first) = rest.first() {
        let date = date_of(first.time());
        let end = rest.partition_point(|sum| date_of(sum.time()) <= date);
        let (sums, later) = rest.split_at(end);
        let partition = partition(run, &date);
        days.push(Day {
            stacks: rows::stacks(sums, &numbered, pushed.lack(&partition)),
            partition,
            samples: rows::of_samples(run, sums, &numbered),
        });
        rest = later;
    }
    days
}

impl Day<'_> {
    /// Paths and bytes, of stacks first.
    fn files(&self, run: &Run) -> Result<Vec<(Table, String, Bytes)>, Error> {
        let mut files = Vec::new();
        if !self.stacks.is_empty() {
            let rows = rows::of_stacks(&run.profile, &self.stacks);
            let stacks = stacks_file(rows)?;
            let name = content_name(&stacks);
            let path = self.partition.file(Table::Stacks, &name);
            files.push((Table::Stacks, path, stacks));
        }
        let path = self.partition.file(Table::Samples, &run.id.to_string());
        files.push((Table::Samples, path, samples_file(&self.samples)?));
        Ok(files)
    }
}

fn run_row(run: &Run, days: &[Day<'_>]) -> RunRow {
    let (profile, quality) = (run.profile.profile(), run.profile.quality());
    let verdict = Verdict::new(quality);
    let mut times = profile.samples.iter().map(|sample| sample.time);
    let first = times.next().unwrap_or_default();
    let last = times.last().unwrap_or(first);
    let (used, sampled) = quality.coverage.iter().fold((0_u64, 0_u64), |sum, one| {
        let used = one.used.saturating_sub(one.unseen);
        (
            sum.0.saturating_add(used),
            sum.1.saturating_add(one.sampled),
        )
    });
    let settings = quality.settings.as_ref();
    let counts = days.iter().flat_map(|day| &day.samples);
    let samples = counts.fold(0_i64, |sum, row| sum.saturating_add(row.count));
    let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    RunRow {
        run: run.id,
        start: run.micros(first),
        end: run.micros(last),
        samples,
        lost: count(quality.losses.samples()),
        coverage: (used > 0).then(|| sampled as f64 / used as f64),
        verdict: verdict.grade.to_string().to_lowercase(),
        reasons: verdict.to_string(),
        kernel: profile.header.os_release.clone(),
        arch: profile.header.arch.clone(),
        command: profile.header.command_line.join(" "),
        rate: settings.and_then(|settings| settings.rate).map(count),
        version: env!("CARGO_PKG_VERSION").into(),
        labels: run.labels.clone(),
    }
}
