//! Rows of a day that are there in files of other names: in those that `prof data compact` made,
//! and stacks in those of other runs.

use std::collections::HashSet;

use super::bounded;
use super::number::NumberedStack;
use super::partition::{Partition, run_of};
use crate::error::Error;
use crate::run::RunId;
use crate::store::{Entry, Store};
use crate::table::{Groups, StackHash, Table};

/// Whether a partition has a run among those that were merged.
///
/// # Errors
/// The store cannot be reached.
pub(super) fn has_run(store: &Store, partition: &Partition, run: RunId) -> Result<bool, Error> {
    let mut merged = store.list(&partition.folder(Table::Runs))?;
    merged.retain(|entry| run_of(&entry.path).is_none());
    has_rows(store, Table::Runs, &merged, run)
}

/// Whether a partition has samples of a run.
///
/// # Errors
/// The store cannot be reached.
pub(super) fn has_samples(store: &Store, partition: &Partition, run: RunId) -> Result<bool, Error> {
    let files = store.list(&partition.folder(Table::Samples))?;
    has_rows(store, Table::Samples, &files, run)
}

fn has_rows(store: &Store, table: Table, files: &[Entry], run: RunId) -> Result<bool, Error> {
    let mut found = false;
    read(store, table, files, |file, group| {
        found |= file.run_ids(group)?.contains(&run);
        Ok(())
    })?;
    Ok(found)
}

/// Whether a partition has all of these stacks.
///
/// # Errors
/// The store cannot be reached.
pub(super) fn has_stacks(
    store: &Store,
    partition: &Partition,
    stacks: &[NumberedStack],
) -> Result<bool, Error> {
    let files = store.list(&partition.folder(Table::Stacks))?;
    let mut missing: HashSet<StackHash> = stacks.iter().map(|stack| stack.hash).collect();
    read(store, Table::Stacks, &files, |file, group| {
        for id in file.stack_ids(group)? {
            missing.remove(&id);
        }
        Ok(())
    })?;
    Ok(missing.is_empty())
}

/// Hands over the row groups of files. Nothing is found in damaged ones.
fn read(
    store: &Store,
    table: Table,
    files: &[Entry],
    mut with: impl FnMut(&Groups, usize) -> parquet::errors::Result<()>,
) -> Result<(), Error> {
    for entry in files {
        let bytes = match bounded::read(store, entry) {
            Ok(Some(bytes)) => bytes,
            Ok(None) | Err(Error::Table { .. }) => continue,
            Err(error) => return Err(error),
        };
        if let Ok(file) = Groups::of(table, bytes) {
            let _ = (0..file.len()).try_for_each(|group| with(&file, group));
        }
    }
    Ok(())
}
