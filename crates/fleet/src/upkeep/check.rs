//! Damaged, duplicated and incomplete parts of a data set.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use super::compact::is_full;
use super::{partitions, unfinished};
use crate::dataset::{Partition, read_bounded, table_prefix};
use crate::error::{Error, reason};
use crate::run::RunId;
use crate::store::{Alias, Entry, Store};
use crate::table::{Groups, StackHash, Table, Texts};

/// A push has ended after so long, and the next attempt of `prof collect` as well.
const LONGEST_PUSH: Duration = Duration::from_secs(60 * 60);

/// The findings.
#[derive(Debug, Default)]
pub(crate) struct Health {
    /// Files of tables, and their bytes.
    pub(crate) files: usize,
    pub(crate) bytes: u64,
    /// Files that cannot be read, with the reason.
    pub(crate) damaged: Vec<String>,
    /// Samples whose frames are nowhere.
    pub(crate) without_stack: u64,
    /// Files in folders that are no partitions. Other engines read them.
    pub(crate) strays: Vec<String>,
    /// Further paths of files and folders, which other engines read as well.
    pub(crate) aliases: Vec<Alias>,
    /// Stacks that no samples of their day and service have.
    pub(crate) unused_stacks: u64,
    /// Files of samples of runs that were not pushed to their end.
    pub(crate) incomplete: Vec<String>,
    /// How many files of samples are of runs that are still being pushed, or were killed just now.
    pub(crate) being_pushed: usize,
    /// Files of samples with runs that another file of their partition has, too.
    pub(crate) doubled: Vec<String>,
    /// The files of each run that is in several partitions, where all of it counts.
    pub(crate) repeated: Vec<Vec<String>>,
    /// Runs of which there are more or fewer samples than their rows say.
    pub(crate) mismatches: Vec<Mismatch>,
    /// Partitions of several small files.
    pub(crate) scattered: usize,
    /// Files that killed processes have not completed. Nobody reads them.
    pub(crate) unfinished: usize,
}

/// A run of which there are more or fewer samples than its row says.
#[derive(Debug)]
pub(crate) struct Mismatch {
    /// The run's file.
    pub(crate) path: String,
    pub(crate) found: u64,
    pub(crate) expected: u64,
}

/// The stacks of a day and a service: in samples, with how many these are, and in the table.
#[derive(Default)]
struct Day {
    used: HashMap<StackHash, u64>,
    known: HashSet<StackHash>,
}

/// The runs of a data set.
#[derive(Default)]
struct Runs {
    /// The files with a run's row. A recording may be of several services and hosts.
    files: BTreeMap<RunId, Vec<(Partition, String)>>,
    /// How many samples the rows say that a run has, by service and host.
    expected: BTreeMap<RunOwner, u64>,
    /// How many it has.
    found: HashMap<RunOwner, u64>,
}

/// A run of a service and a host, on all days.
type RunOwner = (RunId, String, String);

fn owner(run: RunId, partition: &Partition) -> RunOwner {
    (run, partition.service.clone(), partition.host.clone())
}

/// Reads all files.
///
/// # Errors
/// The store cannot be reached, or is being compacted.
pub(crate) fn check(store: &Store) -> Result<Health, Error> {
    let mut health = Health::default();
    let mut days: BTreeMap<(String, String), Day> = BTreeMap::new();
    let day_of = |partition: &Partition| (partition.date.clone(), partition.service.clone());
    // Samples of a run are there before its row is: what is pushed meanwhile is not missing.
    let mut known = Runs::default();
    let (runs, aliases) = partitions(store, Table::Runs)?;
    health.aliases.extend(aliases);
    for (partition, files) in runs {
        for entry in &files {
            let rows = health.read(store, Table::Runs, entry, run_rows)?;
            for (run, samples) in rows.into_iter().flatten() {
                known.add(run, samples, &partition, &entry.path);
            }
        }
        health.scattered += usize::from(files.len() > 1);
    }
    let (samples, aliases) = partitions(store, Table::Samples)?;
    health.aliases.extend(aliases);
    for (partition, files) in samples {
        let mut small = 0;
        let mut owners: HashSet<RunId> = HashSet::new();
        let day = days.entry(day_of(&partition)).or_default();
        for entry in &files {
            let read = health.read(store, Table::Samples, entry, |file| {
                small += usize::from(!is_full(file));
                day.add_samples(file)
            });
            let Some(runs) = read? else {
                continue;
            };
            if runs.keys().any(|run| owners.contains(run)) {
                health.doubled.push(entry.path.clone());
            }
            let has_row = |run: &RunId| known.expected.contains_key(&owner(*run, &partition));
            if !runs.keys().all(has_row) {
                match entry.is_older(LONGEST_PUSH) {
                    true => health.incomplete.push(entry.path.clone()),
                    false => health.being_pushed += 1,
                }
            }
            for (run, samples) in runs {
                if owners.insert(run) {
                    let found = known.found.entry(owner(run, &partition)).or_default();
                    *found = found.saturating_add(samples);
                }
            }
        }
        health.scattered += usize::from(small > 1);
    }
    let (stacks, aliases) = partitions(store, Table::Stacks)?;
    health.aliases.extend(aliases);
    for (partition, files) in stacks {
        health.scattered += usize::from(files.len() > 1);
        let day = days.entry(day_of(&partition)).or_default();
        for entry in &files {
            health.read(store, Table::Stacks, entry, |file| day.add_stacks(file))?;
        }
    }
    for day in days.values() {
        let missing = day.used.iter().filter(|(id, _)| !day.known.contains(id));
        let missing = missing.map(|(_, &count)| count);
        health.without_stack = missing.fold(health.without_stack, u64::saturating_add);
        let unused = day.known.iter().filter(|id| !day.used.contains_key(id));
        health.unused_stacks += unused.count() as u64;
    }
    health.strays = strays(store)?;
    health.unfinished = unfinished(store)?.len();
    health.mismatches = known.mismatches();
    health.repeated = known.repeated();
    Ok(health)
}

/// The paths of files that are in no partition of their table, except those that engines skip.
fn strays(store: &Store) -> Result<Vec<String>, Error> {
    let mut strays = Vec::new();
    for table in [Table::Runs, Table::Samples, Table::Stacks] {
        let entries = store.list(&table_prefix(table))?;
        let paths = entries.into_iter().map(|entry| entry.path);
        strays.extend(paths.filter(|path| {
            let name = path.rsplit('/').next().unwrap_or_default();
            Partition::of(path).is_none() && !name.starts_with(['.', '_'])
        }));
    }
    Ok(strays)
}

/// The runs of a file, with the number of their samples.
fn run_rows(file: &Groups) -> parquet::errors::Result<Vec<(RunId, u64)>> {
    let mut rows = Vec::new();
    for group in 0..file.len() {
        let samples = file.run_samples(group)?.into_iter();
        let samples = samples.map(|samples| u64::try_from(samples).unwrap_or(0));
        rows.extend(file.run_ids(group)?.into_iter().zip(samples));
    }
    Ok(rows)
}

impl Runs {
    /// A killed compaction leaves a run in two files of its partition: it counts once.
    fn add(&mut self, run: RunId, samples: u64, partition: &Partition, path: &str) {
        let files = self.files.entry(run).or_default();
        if files.iter().any(|(known, _)| known == partition) {
            return;
        }
        files.push((partition.clone(), path.to_owned()));
        let sum = self.expected.entry(owner(run, partition)).or_default();
        *sum = sum.saturating_add(samples);
    }

    fn repeated(&self) -> Vec<Vec<String>> {
        let several = self.files.values().filter(|files| files.len() > 1);
        let paths = several.map(|files| files.iter().map(|(_, path)| path.clone()).collect());
        paths.collect()
    }

    fn mismatches(&self) -> Vec<Mismatch> {
        let one = |(at, &expected): (&RunOwner, &u64)| {
            let found = self.found.get(at).copied().unwrap_or(0);
            let mut files = self.files.get(&at.0)?.iter();
            let (_, path) = files.find(|(partition, _)| owner(at.0, partition) == *at)?;
            (found != expected).then(|| Mismatch {
                path: path.clone(),
                found,
                expected,
            })
        };
        self.expected.iter().filter_map(one).collect()
    }
}

impl Health {
    pub(crate) fn is_empty(&self) -> bool {
        self.files == 0 && self.strays.is_empty() && self.unfinished == 0
    }

    /// Whether sums may be wrong, or names missing.
    pub(crate) fn is_bad(&self) -> bool {
        !self.damaged.is_empty()
            || !self.doubled.is_empty()
            || !self.incomplete.is_empty()
            || !self.strays.is_empty()
            || !self.aliases.is_empty()
            || !self.repeated.is_empty()
            || !self.mismatches.is_empty()
            || self.without_stack > 0
    }

    /// Reads a file by `with`; remembers that it is damaged if that fails.
    fn read<T>(
        &mut self,
        store: &Store,
        table: Table,
        entry: &Entry,
        with: impl FnOnce(&Groups) -> parquet::errors::Result<T>,
    ) -> Result<Option<T>, Error> {
        let bytes = match read_bounded(store, entry) {
            Ok(Some(bytes)) => Ok(bytes),
            Ok(None) => {
                let path = entry.path.clone();
                return Err(Error::Changed { path });
            }
            Err(Error::Table { cause, .. }) => Err(cause),
            Err(error) => return Err(error),
        };
        self.files += 1;
        self.bytes += entry.size;
        let file = bytes.and_then(|bytes| Groups::of(table, bytes));
        match file.and_then(|file| with(&file)) {
            Ok(found) => Ok(Some(found)),
            Err(error) => {
                self.damaged
                    .push(format!("{}: {}", entry.path, reason(&error)));
                Ok(None)
            }
        }
    }
}

impl Day {
    /// Adds a file of samples, and returns whose they are, and how many.
    fn add_samples(&mut self, file: &Groups) -> parquet::errors::Result<HashMap<RunId, u64>> {
        let mut texts = Texts::default();
        let mut runs: HashMap<RunId, u64> = HashMap::new();
        for group in 0..file.len() {
            let sums = file.sums(group, &mut texts)?;
            let stacks = sums.stacks.iter().zip(sums.runs);
            for ((&stack, run), &count) in stacks.zip(&sums.counts) {
                let count = u64::try_from(count).unwrap_or(0);
                for sum in [
                    self.used.entry(stack).or_default(),
                    runs.entry(run).or_default(),
                ] {
                    *sum = sum.saturating_add(count);
                }
            }
        }
        Ok(runs)
    }

    fn add_stacks(&mut self, file: &Groups) -> parquet::errors::Result<()> {
        for group in 0..file.len() {
            self.known.extend(file.stack_ids(group)?);
        }
        Ok(())
    }
}
