//! Files of samples, and of runs.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use parquet::data_type::{
    ByteArray, ByteArrayType, DoubleType, FixedLenByteArrayType, Int32Type, Int64Type,
};
use parquet::errors::Result;

use super::column::{GROUP_ROWS, Nested, NewFile, NewTexts, fixed, number};
use super::groups::{Groups, MOST_VALUES, Texts};
use super::rows::{RunRow, SampleRow, StackHash};
use super::schema::Table;
use crate::run::{Labels, RunId};

/// The keys of labels, and their values.
const KEYS: &str = "labels.key_value.key";
const VALUES: &str = "labels.key_value.value";

/// A file of these rows, which must be sorted.
pub(crate) fn samples_file(rows: &[SampleRow]) -> Result<Bytes> {
    let mut file = NewFile::new(Table::Samples)?;
    let mut texts = NewTexts::default();
    let labels = rows.iter().map(|row| row.labels.len()).max().unwrap_or(0);
    for rows in rows.chunks(GROUP_ROWS.min(MOST_VALUES / labels.max(1)).max(1)) {
        let (keys, values) = label_columns(rows.iter().map(|row| &*row.labels));
        file.group(|columns| {
            let mut text = |columns: &mut super::column::NewColumns<'_>,
                            of: fn(&SampleRow) -> &Arc<str>| {
                columns.flat::<ByteArrayType>(rows.iter().map(|row| texts.of(of(row))))
            };
            columns.flat::<Int64Type>(rows.iter().map(|row| row.time))?;
            text(columns, |row| &row.event)?;
            text(columns, |row| &row.unit)?;
            columns.flat::<Int32Type>(rows.iter().map(|row| row.pid))?;
            text(columns, |row| &row.comm)?;
            text(columns, |row| &row.thread)?;
            columns.flat::<FixedLenByteArrayType>(fixed(rows.iter().map(|row| row.stack.0)))?;
            columns.flat::<Int64Type>(rows.iter().map(|row| row.weight))?;
            columns.flat::<Int64Type>(rows.iter().map(|row| row.count))?;
            text(columns, |row| &row.stack_end)?;
            columns.flat::<FixedLenByteArrayType>(fixed(rows.iter().map(|row| row.run.0)))?;
            columns.nested::<ByteArrayType>(&keys)?;
            columns.nested::<ByteArrayType>(&values)
        })?;
    }
    file.finish()
}

/// A file of one run.
pub(crate) fn runs_file(rows: &[RunRow]) -> Result<Bytes> {
    let mut file = NewFile::new(Table::Runs)?;
    let (keys, values) = label_columns(rows.iter().map(|row| &row.labels));
    file.group(|columns| {
        let text = |text: &String| ByteArray::from(text.as_bytes().to_vec());
        let optional = |of: fn(&RunRow) -> &Option<String>| {
            Nested::optional(rows.iter().map(move |row| of(row).as_ref().map(text)))
        };
        columns.flat::<FixedLenByteArrayType>(fixed(rows.iter().map(|row| row.run.0)))?;
        columns.flat::<Int64Type>(rows.iter().map(|row| row.start))?;
        columns.flat::<Int64Type>(rows.iter().map(|row| row.end))?;
        columns.flat::<Int64Type>(rows.iter().map(|row| row.samples))?;
        columns.flat::<Int64Type>(rows.iter().map(|row| row.lost))?;
        columns.nested::<DoubleType>(&Nested::optional(rows.iter().map(|row| row.coverage)))?;
        columns.flat::<ByteArrayType>(rows.iter().map(|row| text(&row.verdict)))?;
        columns.flat::<ByteArrayType>(rows.iter().map(|row| text(&row.reasons)))?;
        columns.nested::<ByteArrayType>(&optional(|row| &row.kernel))?;
        columns.nested::<ByteArrayType>(&optional(|row| &row.arch))?;
        columns.flat::<ByteArrayType>(rows.iter().map(|row| text(&row.command)))?;
        columns.nested::<Int64Type>(&Nested::optional(rows.iter().map(|row| row.rate)))?;
        columns.flat::<ByteArrayType>(rows.iter().map(|row| text(&row.version)))?;
        columns.nested::<ByteArrayType>(&keys)?;
        columns.nested::<ByteArrayType>(&values)
    })?;
    file.finish()
}

fn label_columns<'a>(
    rows: impl Iterator<Item = &'a Labels>,
) -> (Nested<ByteArray>, Nested<ByteArray>) {
    let (mut keys, mut values) = (Nested::default(), Nested::default());
    let mut texts: HashMap<&str, ByteArray> = HashMap::new();
    let mut text = |text: &'a String| {
        let new = || ByteArray::from(text.as_bytes().to_vec());
        Some(texts.entry(text).or_insert_with(new).clone())
    };
    for labels in rows {
        keys.push_list(labels.keys().map(&mut text), 1);
        values.push_list(labels.values().map(&mut text), 1);
    }
    (keys, values)
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
                .map(|id| StackHash(number(id)))
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

    /// The number of the run of each row of a file of samples or runs.
    pub(crate) fn run_ids(&self, group: usize) -> Result<Vec<RunId>> {
        let ids = self.flat::<FixedLenByteArrayType>(group, "run_id")?;
        Ok(ids.iter().map(|id| RunId(number(id))).collect())
    }

    /// How many samples each row of a file of runs has.
    pub(crate) fn run_samples(&self, group: usize) -> Result<Vec<i64>> {
        self.flat::<Int64Type>(group, "samples")
    }
}
