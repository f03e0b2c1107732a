//! Files of samples.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use parquet::data_type::{ByteArrayType, FixedLenByteArrayType, Int32Type, Int64Type};
use parquet::errors::Result;

use super::column::{GROUP_ROWS, NewFile, number};
use super::groups::{Groups, MOST_VALUES, Texts};
use super::nested::Nested;
use super::rows::{SampleRow, StackHash};
use super::schema::Table;
use crate::run::{Labels, RunId};

/// The keys of labels, and their values.
const KEYS: &str = "labels.key_value.key";
const VALUES: &str = "labels.key_value.value";

/// A file of these rows, which must be sorted.
pub(crate) fn samples_file<Text: AsRef<str>>(rows: &[SampleRow<Text>]) -> Result<Bytes> {
    let mut file = NewFile::new(Table::Samples)?;
    let labels = rows.iter().map(|row| row.labels.len()).max().unwrap_or(0);
    for rows in rows.chunks(GROUP_ROWS.min(MOST_VALUES / labels.max(1)).max(1)) {
        let times = rows.iter().map(|row| row.time);
        file.group(|columns| {
            columns.plain::<Int64Type>(&Nested {
                values: times.collect(),
                ..Nested::default()
            })?;
            columns.flat(rows.iter().map(|row| row.event.as_ref()))?;
            columns.flat(rows.iter().map(|row| row.unit.as_ref()))?;
            columns.flat(rows.iter().map(|row| row.pid))?;
            columns.flat(rows.iter().map(|row| row.comm.as_ref()))?;
            columns.flat(rows.iter().map(|row| row.thread.as_ref()))?;
            columns.flat(rows.iter().map(|row| row.stack))?;
            columns.flat(rows.iter().map(|row| row.weight))?;
            columns.flat(rows.iter().map(|row| row.count))?;
            columns.flat(rows.iter().map(|row| row.stack_end.as_ref()))?;
            columns.flat(rows.iter().map(|row| row.run.0))?;
            columns.lists(rows.iter().map(|row| row.labels.keys().map(|key| &**key)))?;
            columns.lists(rows.iter().map(|row| row.labels.values().map(|it| &**it)))
        })?;
    }
    file.finish()
}

/// Keys and values of labels.
type Pair = (Vec<Arc<str>>, Vec<Arc<str>>);

/// What a query reads of the samples of a group: as much as it needs.
pub(crate) struct Sums {
    pub(crate) times: Vec<i64>,
    pub(crate) events: Vec<Arc<str>>,
    pub(crate) units: Vec<Arc<str>>,
    pub(crate) stacks: Vec<StackHash>,
    pub(crate) weights: Vec<i64>,
    pub(crate) counts: Vec<i64>,
    pub(crate) ends: Vec<Arc<str>>,
    pub(crate) runs: Vec<RunId>,
}

impl Groups {
    /// When the first and the last samples of a group were taken, in µs since 1970.
    pub(crate) fn times(&self, group: usize) -> Option<(i64, i64)> {
        self.range(group, "time")
    }

    /// The columns of samples that sums are made of.
    pub(crate) fn sums(&self, group: usize, texts: &mut Texts) -> Result<Sums> {
        let numbers = |column| self.flat::<FixedLenByteArrayType>(group, column);
        Ok(Sums {
            times: self.flat::<Int64Type>(group, "time")?,
            events: self.texts(group, "event", texts)?,
            units: self.texts(group, "unit", texts)?,
            stacks: numbers("stack_id")?
                .iter()
                .map(|id| StackHash::of_bytes(number(id)))
                .collect(),
            weights: self.flat::<Int64Type>(group, "weight")?,
            counts: self.flat::<Int64Type>(group, "count")?,
            ends: self.texts(group, "stack_end", texts)?,
            runs: numbers("run_id")?
                .iter()
                .map(|id| RunId(number(id)))
                .collect(),
        })
    }

    pub(super) fn texts(
        &self,
        group: usize,
        column: &str,
        texts: &mut Texts,
    ) -> Result<Vec<Arc<str>>> {
        let values = self.flat::<ByteArrayType>(group, column)?;
        Ok(values.iter().map(|value| texts.of(value)).collect())
    }

    /// The labels of samples or runs.
    pub(crate) fn labels(&self, group: usize, texts: &mut Texts) -> Result<Vec<Arc<Labels>>> {
        let mut lists = |column| -> Result<Vec<Vec<Arc<str>>>> {
            let column = self.nested::<ByteArrayType>(group, column)?;
            let lists = column.into_lists(1).into_iter();
            Ok(lists
                .map(|list| list.iter().flatten().map(|text| texts.of(text)).collect())
                .collect())
        };
        let (keys, values) = (lists(KEYS)?, lists(VALUES)?);
        let mut last: Option<(Pair, Arc<Labels>)> = None;
        let mut labels = Vec::with_capacity(keys.len());
        for (keys, values) in keys.into_iter().zip(values) {
            // Rows that follow one another have mostly the same ones.
            let pair = (keys, values);
            if let Some((known, same)) = &last
                && *known == pair
            {
                labels.push(Arc::clone(same));
                continue;
            }
            let pairs = pair.0.iter().zip(&pair.1);
            let new: Labels = pairs.map(|(k, v)| (k.to_string(), v.to_string())).collect();
            let new = Arc::new(new);
            labels.push(Arc::clone(&new));
            last = Some((pair, new));
        }
        Ok(labels)
    }

    /// All columns of samples.
    pub(crate) fn samples(&self, group: usize, texts: &mut Texts) -> Result<Vec<SampleRow>> {
        let pids = self.flat::<Int32Type>(group, "pid")?;
        let comms = self.texts(group, "comm", texts)?;
        let threads = self.texts(group, "thread", texts)?;
        let labels = self.labels(group, texts)?;
        let sums = self.sums(group, texts)?;
        let rows = labels.into_iter().enumerate();
        let rows = rows.map(|(row, labels)| SampleRow {
            time: sums.times[row],
            event: Arc::clone(&sums.events[row]),
            unit: Arc::clone(&sums.units[row]),
            pid: pids[row],
            comm: Arc::clone(&comms[row]),
            thread: Arc::clone(&threads[row]),
            stack: sums.stacks[row],
            weight: sums.weights[row],
            count: sums.counts[row],
            stack_end: Arc::clone(&sums.ends[row]),
            run: sums.runs[row],
            labels,
        });
        Ok(rows.take(self.rows(group)).collect())
    }

    /// All runs of a file of samples or runs.
    pub(crate) fn all_run_ids(&self) -> Result<HashSet<RunId>> {
        let mut ids = HashSet::new();
        for group in 0..self.len() {
            ids.extend(self.run_ids(group)?);
        }
        Ok(ids)
    }

    /// The number of the run of each row of a file of samples or runs.
    pub(crate) fn run_ids(&self, group: usize) -> Result<Vec<RunId>> {
        let ids = self.flat::<FixedLenByteArrayType>(group, "run_id")?;
        Ok(ids.iter().map(|id| RunId(number(id))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back() {
        let text = |text: String| -> Arc<str> { text.into() };
        let labels = |row: i32| -> Labels {
            let names = (0..row % 3).map(|number| (format!("n{number}"), format!("v{row}")));
            names.collect()
        };
        // Runs of equal values and values that differ, of no whole number of groups.
        let row = |row: i32| SampleRow {
            time: i64::from(row / 1000),
            event: text("cpu-clock".into()),
            unit: text("nanoseconds".into()),
            pid: row / 9,
            comm: text(format!("c{}", row % 2)),
            thread: text(format!("t{}", row / 300)),
            stack: StackHash(!u128::from(row.unsigned_abs())),
            weight: i64::from(row).pow(2) % 257,
            count: i64::MAX - i64::from(row % 40 / 20),
            stack_end: text(String::new()),
            run: RunId([7; 16]),
            labels: Arc::new(labels(row)),
        };
        let rows: Vec<SampleRow> = (0..5001).map(row).collect();
        let file = Groups::of(Table::Samples, samples_file(&rows).expect("written"));
        let file = file.expect("read");
        let mut texts = Texts::default();
        assert_eq!(file.samples(0, &mut texts).expect("read"), rows);
        assert_eq!(file.times(0), Some((0, 5)));
    }
}
