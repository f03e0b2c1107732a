//! Compaction of data sets, and their check.

mod check;
mod compact;

use std::collections::{BTreeMap, HashSet};

use crate::dataset::{Partition, table_prefix};
use crate::error::Error;
use crate::store::{Entry, Store};
use crate::table::Table;

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

/// The ids of the completely pushed runs.
fn complete_runs(store: &Store) -> Result<HashSet<String>, Error> {
    let files = store.list(&table_prefix(Table::Runs))?;
    let name = |entry: &Entry| {
        let (_, name) = entry.path.rsplit_once('/')?;
        Some(name.strip_suffix(".parquet")?.to_owned())
    };
    Ok(files.iter().filter_map(name).collect())
}

/// The files of all tables that killed processes have not completed.
fn unfinished(store: &Store) -> Result<Vec<Entry>, Error> {
    let mut found = Vec::new();
    for table in [Table::Runs, Table::Samples, Table::Stacks] {
        found.extend(store.unfinished(&table_prefix(table))?);
    }
    Ok(found)
}
