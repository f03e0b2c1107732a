//! Small files to large ones.

use std::collections::BTreeMap;

use super::{complete_runs, partitions};
use crate::dataset::{Partition, content_name};
use crate::error::Error;
use crate::run::RunId;
use crate::store::{Entry, Store};
use crate::table::{
    Groups, SampleRow, StackHash, StackRow, Table, Texts, samples_file, stacks_file,
};

/// How many files became how many.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Compacted {
    /// The number of removed files.
    pub(crate) before: usize,
    /// The number of files that replace them.
    pub(crate) after: usize,
}

/// Makes one file of all that a partition has, of samples and of stacks.
///
/// The new file is there before the old ones go. Wherever this ends, the next one finishes it: of
/// samples that are in two files of a partition, a run's count once.
///
/// # Errors
/// The store cannot be reached, or a file is damaged: its partition is then unchanged.
pub(crate) fn compact(store: &Store) -> Result<Compacted, Error> {
    let mut done = Compacted::default();
    let complete = complete_runs(store)?;
    for (partition, files) in partitions(store, Table::Samples)? {
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
            replace(
                store,
                &partition,
                Table::Samples,
                &merged,
                samples_file(&rows)?,
            )?;
            done.add(merged.len());
        }
    }
    for (partition, files) in partitions(store, Table::Stacks)? {
        if files.len() > 1 {
            let mut best: BTreeMap<StackHash, StackRow> = BTreeMap::new();
            for entry in &files {
                stacks(store, entry, &mut best)?;
            }
            let rows: Vec<&StackRow> = best.values().collect();
            replace(
                store,
                &partition,
                Table::Stacks,
                &files,
                stacks_file(&rows)?,
            )?;
            done.add(files.len());
        }
    }
    Ok(done)
}

impl Compacted {
    fn add(&mut self, files: usize) {
        self.before += files;
        self.after += 1;
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
    store.put_new(&path, bytes)?;
    let old = old.iter().filter(|entry| entry.path != path);
    old.map(|entry| &entry.path)
        .try_for_each(|path| store.delete(path))
}

fn groups(store: &Store, table: Table, entry: &Entry) -> Result<Groups, Error> {
    let path = &entry.path;
    let bytes = store
        .get(path)?
        .ok_or_else(|| Error::Changed { path: path.clone() })?;
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
