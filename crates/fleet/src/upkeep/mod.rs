//! Compaction of data sets, and their check.

mod check;
mod compact;
#[cfg(test)]
mod layouts;

use std::collections::{BTreeMap, HashSet};

use crate::dataset::{Partition, read_bounded, run_of, table_prefix};
use crate::error::Error;
use crate::run::RunId;
use crate::store::{Alias, Entry, Store};
use crate::table::{Groups, Table};

pub(crate) use check::{Health, check};
pub(crate) use compact::compact;

/// The files of each partition.
type Partitions = BTreeMap<Partition, Vec<Entry>>;

/// The files of a table by their partition, and further paths of some.
fn partitions(store: &Store, table: Table) -> Result<(Partitions, Vec<Alias>), Error> {
    let mut partitions = Partitions::new();
    let found = store.find(&table_prefix(table))?;
    for entry in found.entries {
        if let Some(partition) = Partition::of(&entry.path) {
            partitions.entry(partition).or_default().push(entry);
        }
    }
    Ok((partitions, found.aliases))
}

/// The completely pushed runs, each with its service and its host, except those in damaged files.
#[derive(Default)]
struct CompleteRuns(HashSet<(String, String, String)>);

impl CompleteRuns {
    fn read(store: &Store) -> Result<Self, Error> {
        let mut complete = Self::default();
        for entry in store.list(&table_prefix(Table::Runs))? {
            let Some(partition) = Partition::of(&entry.path) else {
                continue;
            };
            if let Some(run) = run_of(&entry.path) {
                complete.add(run.to_owned(), &partition);
                continue;
            }
            let rows = match read_bounded(store, &entry) {
                Ok(Some(bytes)) => {
                    Groups::of(Table::Runs, bytes).and_then(|file| file.all_run_ids())
                }
                Ok(None) | Err(Error::Table { .. }) => continue,
                Err(error) => return Err(error),
            };
            for run in rows.unwrap_or_default() {
                complete.add(run.to_string(), &partition);
            }
        }
        Ok(complete)
    }

    fn add(&mut self, run: String, of: &Partition) {
        let owner = (run, of.service.clone(), of.host.clone());
        self.0.insert(owner);
    }

    /// Whether a run of this partition's service and host, on any day, is one of them.
    fn has(&self, run: RunId, of: &Partition) -> bool {
        let owner = (run.to_string(), of.service.clone(), of.host.clone());
        self.0.contains(&owner)
    }
}

/// The files of all tables that killed processes have not completed.
fn unfinished(store: &Store) -> Result<Vec<Entry>, Error> {
    let mut found = Vec::new();
    for table in [Table::Runs, Table::Samples, Table::Stacks] {
        found.extend(store.unfinished(&table_prefix(table))?);
    }
    Ok(found)
}
