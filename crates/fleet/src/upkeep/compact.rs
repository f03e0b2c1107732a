//! Small files to large ones.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

use bytes::Bytes;
use parquet::errors::ParquetError;
use rustc_hash::FxHashMap;

use super::{CompleteRuns, partitions, unfinished};
use crate::dataset::{MOST_BYTES, Partition, read_bounded};
use crate::error::Error;
use crate::run::RunId;
use crate::store::{Alias, Entry, Store};
use crate::table::{
    Groups, RunRow, SampleRow, StackHash, StacksFile, Table, Texts, runs_file, samples_file,
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

/// A file of so many samples is not merged with others: compaction holds less than two of these in
/// memory. Fewer in tests, whose code is not optimized: two row groups.
const FULL_ROWS: usize = if cfg!(test) { 1 << 17 } else { 1 << 19 };

/// Whether a file of samples has so many.
pub(super) fn is_full(file: &Groups) -> bool {
    (0..file.len()).map(|group| file.rows(group)).sum::<usize>() >= FULL_ROWS
}

/// Makes few files of the many that a partition has: of samples, full ones and at most one other;
/// of stacks and of runs, one.
///
/// The new file is there before the old ones go, and only files go that were just read. Wherever
/// this ends, the next one finishes it: of samples that are in two files of a partition, a run's
/// count once. A partition with a file that has another path stays as it is: what goes here would
/// remain there.
///
/// # Errors
/// The store cannot be reached.
pub(crate) fn compact(store: &Store) -> Result<Compacted, Error> {
    let mut done = Compacted::default();
    let complete = CompleteRuns::read(store)?;
    for table in [Table::Samples, Table::Stacks, Table::Runs] {
        let (partitions, aliases) = partitions(store, table)?;
        for (partition, files) in partitions {
            let merge = done.merge(store, &partition);
            let merged = match alias_of(&files, &aliases) {
                Some(alias) => Err(Error::Alias {
                    paths: alias.to_string(),
                }),
                None => match table {
                    Table::Samples => merge.samples(&complete, files),
                    Table::Stacks => merge.stacks(&files),
                    Table::Runs => merge.runs(&files),
                },
            };
            done.note(merged)?;
        }
    }
    for entry in unfinished(store)? {
        store.delete(&entry)?;
        done.unfinished += 1;
    }
    Ok(done)
}

impl Compacted {
    fn merge<'a>(&'a mut self, store: &'a Store, partition: &'a Partition) -> Merge<'a> {
        Merge {
            store,
            partition,
            done: self,
        }
    }

    /// Notes how the merge of a partition ended. One with a damaged file stays as it is, and is no
    /// reason to leave others so.
    fn note(&mut self, merged: Result<(), Error>) -> Result<(), Error> {
        match merged {
            Err(
                error @ (Error::Table { .. }
                | Error::Changed { .. }
                | Error::Alias { .. }
                | Error::TooLarge { .. }),
            ) => {
                self.failed.push(error);
                Ok(())
            }
            merged => merged,
        }
    }
}

/// The merge of a partition's files.
struct Merge<'a> {
    store: &'a Store,
    partition: &'a Partition,
    done: &'a mut Compacted,
}

/// Samples that become one file.
#[derive(Default)]
struct Batch {
    rows: Vec<SampleRow>,
    /// The files that they are from.
    files: Vec<Entry>,
    /// Whether these have more rows, which other files have as well.
    repeats: bool,
}

impl Merge<'_> {
    /// Merges the samples of the runs that were pushed completely.
    fn samples(mut self, complete: &CompleteRuns, mut files: Vec<Entry>) -> Result<(), Error> {
        // Full files first: what they have need not be read as a whole.
        files.sort_by_key(|entry| Reverse(entry.size));
        let mut known: HashSet<RunId> = HashSet::new();
        let mut batch = Batch::default();
        for entry in files {
            let file = groups(self.store, Table::Samples, &entry)?;
            let damaged = |source| Error::table(&entry.path, source);
            let runs = file.all_run_ids().map_err(damaged)?;
            // Of a run that is still being pushed, or was not pushed completely.
            if !(runs.iter()).all(|run| complete.has(*run, self.partition)) {
                continue;
            }
            let repeats = !runs.is_disjoint(&known);
            if repeats || !is_full(&file) {
                let mut rows = samples(&file).map_err(damaged)?;
                rows.retain(|row| !known.contains(&row.run));
                batch.rows.extend(rows);
                batch.files.push(entry);
                batch.repeats |= repeats;
            }
            known.extend(runs);
            if batch.rows.len() >= FULL_ROWS {
                self.write(std::mem::take(&mut batch))?;
            }
        }
        self.write(batch)
    }

    fn write(&mut self, mut batch: Batch) -> Result<(), Error> {
        if batch.files.len() < 2 && !batch.repeats {
            return Ok(());
        }
        let new = match batch.rows.is_empty() {
            true => None,
            false => {
                batch.rows.sort_unstable();
                Some(samples_file(&batch.rows)?)
            }
        };
        self.replace(Table::Samples, &batch.files, new)
    }

    /// Merges stacks, if they are not too large for one file. Of each stack it keeps the row with
    /// the most names.
    fn stacks(mut self, files: &[Entry]) -> Result<(), Error> {
        let sizes = files.iter().filter(|entry| entry.size <= MOST_BYTES);
        let size = sizes.fold(0, |sum: u64, entry| sum.saturating_add(entry.size));
        if files.len() < 2 || size > MOST_BYTES {
            return Ok(());
        }
        let mut best = best_rows(self.store, files)?;
        let mut new = StacksFile::new()?;
        for (number, entry) in files.iter().enumerate() {
            each_group(self.store, Table::Stacks, entry, |file, group, texts| {
                for row in file.stacks(group, texts)? {
                    if best.get(&row.stack) == Some(&(row.named, number)) {
                        best.remove(&row.stack);
                        new.add(row)?;
                    }
                }
                Ok(())
            })?;
        }
        let new = new.finish()?;
        match (best.is_empty(), files.first()) {
            (false, Some(entry)) => Err(Error::Changed {
                path: entry.path.clone(),
            }),
            _ => self.replace(Table::Stacks, files, Some(new)),
        }
    }

    /// Merges the rows of runs, which are a file each.
    fn runs(mut self, files: &[Entry]) -> Result<(), Error> {
        if files.len() < 2 {
            return Ok(());
        }
        let mut runs = BTreeMap::new();
        for entry in files {
            each_group(self.store, Table::Runs, entry, |file, group, texts| {
                let rows = file.runs(group, texts)?.into_iter();
                runs.extend(rows.map(|row| (row.run, row)));
                Ok(())
            })?;
        }
        let mut rows: Vec<RunRow> = runs.into_values().collect();
        rows.sort_by_key(|row| row.start);
        self.replace(Table::Runs, files, Some(runs_file(&rows)?))
    }

    /// Puts a new file, if any, in the place of old ones.
    fn replace(&mut self, table: Table, old: &[Entry], new: Option<Bytes>) -> Result<(), Error> {
        let mut kept = None;
        if let Some(bytes) = new {
            let path = self.partition.merged_file(table, &bytes);
            if bytes.len() as u64 > MOST_BYTES {
                return Err(Error::TooLarge { path });
            }
            let is_new = self.store.put_new(&path, bytes.clone())?;
            if !is_new && self.store.get(&path)?.is_none_or(|there| there != bytes) {
                let cause = "it has other bytes than its name says";
                return Err(Error::table(&path, ParquetError::General(cause.into())));
            }
            self.done.after += 1;
            kept = Some(path);
        }
        self.done.before += old.len();
        let mut old = old
            .iter()
            .filter(|entry| kept.as_ref() != Some(&entry.path));
        old.try_for_each(|entry| self.store.delete(entry))
    }
}

/// Another path of one of these files, if there is one.
fn alias_of<'a>(files: &[Entry], aliases: &'a [Alias]) -> Option<&'a Alias> {
    let is_file = |alias: &&Alias| files.iter().any(|entry| entry.path == alias.of);
    aliases
        .iter()
        .filter(|alias| !alias.is_folder)
        .find(is_file)
}

fn groups(store: &Store, table: Table, entry: &Entry) -> Result<Groups, Error> {
    let path = &entry.path;
    let bytes = read_bounded(store, entry)?.ok_or_else(|| Error::Changed { path: path.clone() })?;
    Groups::of(table, bytes).map_err(|source| Error::table(path, source))
}

fn samples(file: &Groups) -> parquet::errors::Result<Vec<SampleRow>> {
    let mut texts = Texts::default();
    let mut rows = Vec::new();
    for group in 0..file.len() {
        rows.extend(file.samples(group, &mut texts)?);
    }
    Ok(rows)
}

/// Where the best row of each stack is: how many names it has, and the first file that has it.
fn best_rows(store: &Store, files: &[Entry]) -> Result<FxHashMap<StackHash, (i32, usize)>, Error> {
    let mut best = FxHashMap::default();
    for (number, entry) in files.iter().enumerate() {
        each_group(store, Table::Stacks, entry, |file, group, _| {
            let rows = file.stack_ids(group)?.into_iter().zip(file.named(group)?);
            for (stack, named) in rows {
                let known = best.entry(stack).or_insert((named, number));
                if named > known.0 {
                    *known = (named, number);
                }
            }
            Ok(())
        })?;
    }
    Ok(best)
}

/// Reads the row groups of a file, one after the other.
fn each_group(
    store: &Store,
    table: Table,
    entry: &Entry,
    mut read: impl FnMut(&Groups, usize, &mut Texts) -> parquet::errors::Result<()>,
) -> Result<(), Error> {
    let file = groups(store, table, entry)?;
    let mut texts = Texts::default();
    let mut groups = 0..file.len();
    let done = groups.try_for_each(|group| read(&file, group, &mut texts));
    done.map_err(|source| Error::table(&entry.path, source))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// A run's samples, of so many rows.
    fn samples_of(run: u8, rows: usize) -> Vec<SampleRow> {
        let text: Arc<str> = "a".into();
        let row = SampleRow {
            time: 0,
            event: Arc::clone(&text),
            unit: Arc::clone(&text),
            pid: 1,
            comm: Arc::clone(&text),
            thread: Arc::clone(&text),
            stack: StackHash::of_bytes([run; 16]),
            weight: 1,
            count: 1,
            stack_end: text,
            run: RunId([run; 16]),
            labels: Arc::default(),
        };
        vec![row; rows]
    }

    struct DataSet {
        store: Store,
        partition: Partition,
    }

    impl DataSet {
        fn put(&self, name: &str, rows: &[SampleRow]) {
            let path = self.partition.file(Table::Samples, name);
            let file = samples_file(rows).expect("written");
            self.store.put_new(&path, file).expect("put");
        }

        fn files(&self) -> Vec<Entry> {
            let prefix = crate::dataset::table_prefix(Table::Samples);
            self.store.list(&prefix).expect("listed")
        }

        /// Compacts; returns how many files became how many.
        fn compact(&self) -> (usize, usize) {
            let mut complete = CompleteRuns::default();
            for run in 1..=5 {
                complete.add(RunId([run; 16]).to_string(), &self.partition);
            }
            let mut done = Compacted::default();
            let merge = done.merge(&self.store, &self.partition);
            merge.samples(&complete, self.files()).expect("merged");
            (done.before, done.after)
        }

        /// How many rows each file has.
        fn rows(&self) -> Vec<usize> {
            let rows = self.files().into_iter().map(|entry| {
                let file = groups(&self.store, Table::Samples, &entry).expect("readable");
                samples(&file).expect("readable").len()
            });
            let mut rows: Vec<usize> = rows.collect();
            rows.sort_unstable();
            rows
        }
    }

    #[test]
    fn full_files_stay_and_others_become_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let url = folder.path().to_str().expect("text");
        let data = DataSet {
            store: Store::open(url).expect("opened").expect("a store"),
            partition: Partition {
                date: "2026-11-26".into(),
                service: "a".into(),
                host: "b".into(),
            },
        };
        let full = [samples_of(1, FULL_ROWS), samples_of(2, 1)].concat();
        data.put("full", &full);
        data.put("known", &samples_of(2, 1));
        data.put("small", &samples_of(3, 2));
        data.put("other", &samples_of(4, 3));
        for merged in [(3, 1), (0, 0)] {
            assert_eq!(data.compact(), merged);
            assert_eq!(data.rows(), [2 + 3, full.len()]);
        }
        // As if another compaction had merged files of the first run as well.
        data.put(
            "too",
            &[samples_of(1, FULL_ROWS), samples_of(5, 1)].concat(),
        );
        data.compact();
        assert_eq!(data.rows().iter().sum::<usize>(), full.len() + 2 + 3 + 1);
    }
}
