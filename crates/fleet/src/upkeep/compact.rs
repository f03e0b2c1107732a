//! Small files to large ones.

use std::collections::{BTreeMap, HashSet};

use super::{complete_runs, partitions, unfinished};
use crate::dataset::{MOST_BYTES, Partition, content_name, read_bounded};
use crate::error::Error;
use crate::run::RunId;
use crate::store::{Entry, Store};
use crate::table::{
    Groups, SampleRow, StackHash, StackRow, Table, Texts, samples_file, stacks_file,
};

/// How many files became how many.
#[derive(Debug, Default)]
pub(crate) struct Compacted {
    /// The number of removed files.
    pub(crate) before: usize,
    /// The number of files that replace them.
    pub(crate) after: usize,
    /// The number of removed files that killed processes have not completed.
    pub(crate) unfinished: usize,
    /// Why partitions are unchanged.
    pub(crate) failed: Vec<Error>,
}

/// Makes one file of all that a partition has, of samples and of stacks.
///
/// The new file is there before the old ones go. Wherever this ends, the next one finishes it: of
/// samples that are in two files of a partition, a run's count once.
///
/// # Errors
/// The store cannot be reached.
pub(crate) fn compact(store: &Store) -> Result<Compacted, Error> {
    let mut done = Compacted::default();
    let complete = complete_runs(store)?;
    for (partition, files) in mergeable(store, Table::Samples)? {
        done.add(merge_samples(store, &complete, &partition, files))?;
    }
    for (partition, files) in mergeable(store, Table::Stacks)? {
        done.add(merge_stacks(store, &partition, &files))?;
    }
    for entry in unfinished(store)? {
        store.delete(&entry.path)?;
        done.unfinished += 1;
    }
    Ok(done)
}

/// The partitions whose files are not too large for one.
fn mergeable(
    store: &Store,
    table: Table,
) -> Result<impl Iterator<Item = (Partition, Vec<Entry>)>, Error> {
    let partitions = partitions(store, table)?.into_iter();
    Ok(partitions.filter(|(_, files)| {
        let sizes = files.iter().filter(|entry| entry.size <= MOST_BYTES);
        let size = sizes.fold(0, |sum: u64, entry| sum.saturating_add(entry.size));
        size <= MOST_BYTES
    }))
}

/// Merges the samples of the runs that were pushed completely. Returns how many files these were.
fn merge_samples(
    store: &Store,
    complete: &HashSet<String>,
    partition: &Partition,
    files: Vec<Entry>,
) -> Result<usize, Error> {
    let mut rows = Vec::new();
    let mut merged = Vec::new();
    let mut owners: BTreeMap<RunId, usize> = BTreeMap::new();
    for entry in files {
        let found = samples(store, &entry)?;
        // Of a run that is still being pushed, or was not pushed completely.
        if !found
            .iter()
            .all(|row| complete.contains(&row.run.to_string()))
        {
            continue;
        }
        let number = merged.len();
        let is_first = |row: &SampleRow| *owners.entry(row.run).or_insert(number) == number;
        rows.extend(found.into_iter().filter(is_first));
        merged.push(entry);
    }
    if merged.len() > 1 {
        rows.sort_unstable();
        let file = samples_file(&rows)?;
        replace(store, partition, Table::Samples, &merged, file)?;
    }
    Ok(merged.len())
}

/// Merges stacks. Returns how many files these were.
fn merge_stacks(store: &Store, partition: &Partition, files: &[Entry]) -> Result<usize, Error> {
    if files.len() > 1 {
        let mut best: BTreeMap<StackHash, StackRow> = BTreeMap::new();
        for entry in files {
            stacks(store, entry, &mut best)?;
        }
        let rows: Vec<&StackRow> = best.values().collect();
        let file = stacks_file(&rows)?;
        replace(store, partition, Table::Stacks, files, file)?;
    }
    Ok(files.len())
}

impl Compacted {
    /// Adds a partition. One with a damaged file stays as it is, and is no reason to leave others
    /// so.
    fn add(&mut self, merged: Result<usize, Error>) -> Result<(), Error> {
        match merged {
            Ok(0 | 1) => {}
            Ok(files) => {
                self.before += files;
                self.after += 1;
            }
            Err(error @ (Error::Table { .. } | Error::Changed { .. } | Error::TooLarge { .. })) => {
                self.failed.push(error)
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

fn replace(
    store: &Store,
    partition: &Partition,
    table: Table,
    old: &[Entry],
    bytes: bytes::Bytes,
) -> Result<(), Error> {
    let path = partition.file(table, &content_name(&bytes));
    if bytes.len() as u64 > MOST_BYTES {
        return Err(Error::TooLarge { path });
    }
    store.put_new(&path, bytes)?;
    let old = old.iter().filter(|entry| entry.path != path);
    old.map(|entry| &entry.path)
        .try_for_each(|path| store.delete(path))
}

fn groups(store: &Store, table: Table, entry: &Entry) -> Result<Groups, Error> {
    let path = &entry.path;
    let bytes = read_bounded(store, entry)?.ok_or_else(|| Error::Changed { path: path.clone() })?;
    Groups::of(table, bytes).map_err(|source| Error::table(path, source))
}

fn samples(store: &Store, entry: &Entry) -> Result<Vec<SampleRow>, Error> {
    let file = groups(store, Table::Samples, entry)?;
    let mut texts = Texts::default();
    let mut rows = Vec::new();
    for group in 0..file.len() {
        let more = file.samples(group, &mut texts);
        rows.extend(more.map_err(|source| Error::table(&entry.path, source))?);
    }
    Ok(rows)
}

/// Keeps of each stack the row with the most names, and the first of these.
fn stacks(
    store: &Store,
    entry: &Entry,
    best: &mut BTreeMap<StackHash, StackRow>,
) -> Result<(), Error> {
    let file = groups(store, Table::Stacks, entry)?;
    let mut texts = Texts::default();
    for group in 0..file.len() {
        let rows = file.stacks(group, &mut texts);
        for row in rows.map_err(|source| Error::table(&entry.path, source))? {
            let known = best.get(&row.stack).map(|known| known.named);
            if known.is_none_or(|known| row.named > known) {
                best.insert(row.stack, row);
            }
        }
    }
    Ok(())
}
