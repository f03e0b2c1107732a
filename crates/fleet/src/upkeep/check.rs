//! Damaged, duplicated and incomplete parts of a data set.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{complete_runs, partitions};
use crate::dataset::Partition;
use crate::error::{Error, reason};
use crate::run::RunId;
use crate::store::{Entry, Store};
use crate::table::{Groups, StackHash, Table, Texts};

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
    /// Stacks that no samples of their day and service have.
    pub(crate) unused_stacks: u64,
    /// Files of samples of runs that were not pushed to their end.
    pub(crate) incomplete: Vec<String>,
    /// Files of samples with runs that another file of their partition has, too.
    pub(crate) doubled: Vec<String>,
    /// Partitions of several files.
    pub(crate) scattered: usize,
}

/// The stacks of a day and a service: in samples, with how many these are, and in the table.
#[derive(Default)]
struct Day {
    used: HashMap<StackHash, u64>,
    known: HashSet<StackHash>,
}

/// Reads all files.
///
/// # Errors
/// The store cannot be reached.
pub(crate) fn check(store: &Store) -> Result<Health, Error> {
    let mut health = Health::default();
    let complete = complete_runs(store)?;
    let mut days: BTreeMap<(String, String), Day> = BTreeMap::new();
    let day_of = |partition: &Partition| (partition.date.clone(), partition.service.clone());
    for (partition, files) in partitions(store, Table::Samples)? {
        health.scattered += usize::from(files.len() > 1);
        let mut owners: HashSet<RunId> = HashSet::new();
        let day = days.entry(day_of(&partition)).or_default();
        for entry in &files {
            let Some(runs) =
                health.read(store, Table::Samples, entry, |file| day.add_samples(file))?
            else {
                continue;
            };
            if runs.iter().any(|run| owners.contains(run)) {
                health.doubled.push(entry.path.clone());
            }
            if runs.iter().any(|run| !complete.contains(&run.to_string())) {
                health.incomplete.push(entry.path.clone());
            }
            owners.extend(runs);
        }
    }
    for (partition, files) in partitions(store, Table::Stacks)? {
        health.scattered += usize::from(files.len() > 1);
        let day = days.entry(day_of(&partition)).or_default();
        for entry in &files {
            health.read(store, Table::Stacks, entry, |file| day.add_stacks(file))?;
        }
    }
    for files in partitions(store, Table::Runs)?.into_values() {
        for entry in &files {
            health.read(store, Table::Runs, entry, |file| {
                (0..file.len()).try_for_each(|group| file.run_ids(group).map(drop))
            })?;
        }
    }
    for day in days.values() {
        let missing = day.used.iter().filter(|(id, _)| !day.known.contains(id));
        health.without_stack += missing.map(|(_, count)| count).sum::<u64>();
        let unused = day.known.iter().filter(|id| !day.used.contains_key(id));
        health.unused_stacks += unused.count() as u64;
    }
    Ok(health)
}

impl Health {
    /// Whether sums may be wrong, or names missing.
    pub(crate) fn is_bad(&self) -> bool {
        !self.damaged.is_empty() || !self.doubled.is_empty() || self.without_stack > 0
    }

    /// Reads a file by `with`; remembers that it is damaged if that fails.
    fn read<T>(
        &mut self,
        store: &Store,
        table: Table,
        entry: &Entry,
        with: impl FnOnce(&Groups) -> parquet::errors::Result<T>,
    ) -> Result<Option<T>, Error> {
        let Some(bytes) = store.get(&entry.path)? else {
            return Ok(None);
        };
        self.files += 1;
        self.bytes += entry.size;
        match Groups::of(table, bytes).and_then(|file| with(&file)) {
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
    /// Adds a file of samples, and returns whose they are.
    fn add_samples(&mut self, file: &Groups) -> parquet::errors::Result<HashSet<RunId>> {
        let mut texts = Texts::default();
        let mut runs = HashSet::new();
        for group in 0..file.len() {
            let sums = file.sums(group, &mut texts)?;
            for (&stack, &count) in sums.stacks.iter().zip(&sums.counts) {
                *self.used.entry(stack).or_default() += u64::try_from(count).unwrap_or(0);
            }
            runs.extend(sums.runs);
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
