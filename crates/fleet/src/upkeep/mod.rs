//! Compaction of data sets, and their check.

mod check;
mod compact;

use std::collections::{BTreeMap, HashSet};

use crate::dataset::{Partition, read_bounded, run_of, table_prefix};
use crate::error::Error;
use crate::store::{Entry, Store};
use crate::table::{Groups, Table};

pub(crate) use check::{Health, check};
pub(crate) use compact::compact;

/// The files of a table by their partition.
fn partitions(store: &Store, table: Table) -> Result<BTreeMap<Partition, Vec<Entry>>, Error> {
    let mut partitions: BTreeMap<Partition, Vec<Entry>> = BTreeMap::new();
    for entry in store.list(&table_prefix(table))? {
        if let Some(partition) = Partition::of(&entry.path) {
            partitions.entry(partition).or_default().push(entry);
        }
    }
    Ok(partitions)
}

/// The ids of the completely pushed runs, except those in damaged files.
fn complete_runs(store: &Store) -> Result<HashSet<String>, Error> {
    let mut complete = HashSet::new();
    for entry in store.list(&table_prefix(Table::Runs))? {
        if let Some(run) = run_of(&entry.path) {
            complete.insert(run.to_owned());
            continue;
        }
        let rows = match read_bounded(store, &entry) {
            Ok(Some(bytes)) => Groups::of(Table::Runs, bytes).and_then(|file| file.all_run_ids()),
            Ok(None) | Err(Error::Table { .. }) => continue,
            Err(error) => return Err(error),
        };
        let runs = rows.unwrap_or_default();
        complete.extend(runs.iter().map(ToString::to_string));
    }
    Ok(complete)
}

/// The files of all tables that killed processes have not completed.
fn unfinished(store: &Store) -> Result<Vec<Entry>, Error> {
    let mut found = Vec::new();
    for table in [Table::Runs, Table::Samples, Table::Stacks] {
        found.extend(store.unfinished(&table_prefix(table))?);
    }
    Ok(found)
}
