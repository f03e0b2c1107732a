//! Files of runs.

use bytes::Bytes;
use parquet::data_type::{ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::Result;

use super::column::{GROUP_ROWS, NewFile};
use super::groups::{Groups, MOST_VALUES, Texts};
use super::rows::RunRow;
use super::schema::Table;

/// A file of these rows.
pub(crate) fn runs_file(rows: &[RunRow]) -> Result<Bytes> {
    let mut file = NewFile::new(Table::Runs)?;
    let labels = rows.iter().map(|row| row.labels.len()).max().unwrap_or(0);
    for rows in rows.chunks(GROUP_ROWS.min(MOST_VALUES / labels.max(1)).max(1)) {
        file.group(|columns| {
            columns.flat(rows.iter().map(|row| row.run.0))?;
            columns.flat(rows.iter().map(|row| row.start))?;
            columns.flat(rows.iter().map(|row| row.end))?;
            columns.flat(rows.iter().map(|row| row.samples))?;
            columns.flat(rows.iter().map(|row| row.lost))?;
            columns.optional(rows.iter().map(|row| row.coverage.map(f64::to_bits)))?;
            columns.flat(rows.iter().map(|row| &*row.verdict))?;
            columns.flat(rows.iter().map(|row| &*row.reasons))?;
            columns.optional(rows.iter().map(|row| row.kernel.as_deref()))?;
            columns.optional(rows.iter().map(|row| row.arch.as_deref()))?;
            columns.flat(rows.iter().map(|row| &*row.command))?;
            columns.optional(rows.iter().map(|row| row.rate))?;
            columns.flat(rows.iter().map(|row| &*row.version))?;
            columns.lists(rows.iter().map(|row| row.labels.keys().map(|key| &**key)))?;
            columns.lists(rows.iter().map(|row| row.labels.values().map(|it| &**it)))
        })?;
    }
    file.finish()
}

impl Groups {
    /// The runs of a group.
    pub(crate) fn runs(&self, group: usize, texts: &mut Texts) -> Result<Vec<RunRow>> {
        let ids = self.run_ids(group)?;
        let starts = self.flat::<Int64Type>(group, "start")?;
        let ends = self.flat::<Int64Type>(group, "end")?;
        let samples = self.run_samples(group)?;
        let lost = self.flat::<Int64Type>(group, "lost")?;
        let coverage = self.optional::<DoubleType>(group, "coverage")?;
        let rates = self.optional::<Int64Type>(group, "rate")?;
        let labels = self.labels(group, texts)?;
        let mut text = |column| self.texts(group, column, texts);
        let verdicts = text("verdict")?;
        let reasons = text("reasons")?;
        let commands = text("command")?;
        let versions = text("version")?;
        let optional_text = |column| -> Result<Vec<Option<String>>> {
            let texts = self.optional::<ByteArrayType>(group, column)?.into_iter();
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            Ok(texts
                .map(|value| value.map(|value| text(value.data())))
                .collect())
        };
        let kernels = optional_text("kernel")?;
        let archs = optional_text("arch")?;
        let rows = labels.iter().enumerate();
        let rows = rows.map(|(row, labels)| RunRow {
            run: ids[row],
            start: starts[row],
            end: ends[row],
            samples: samples[row],
            lost: lost[row],
            coverage: coverage[row],
            verdict: verdicts[row].to_string(),
            reasons: reasons[row].to_string(),
            kernel: kernels[row].clone(),
            arch: archs[row].clone(),
            command: commands[row].to_string(),
            rate: rates[row],
            version: versions[row].to_string(),
            labels: (**labels).clone(),
        });
        Ok(rows.take(self.rows(group)).collect())
    }

    /// How many samples each run of a group has.
    pub(crate) fn run_samples(&self, group: usize) -> Result<Vec<i64>> {
        self.flat::<Int64Type>(group, "samples")
    }

    /// The values of an optional column, one for each row.
    fn optional<T: DataType>(&self, group: usize, column: &str) -> Result<Vec<Option<T::T>>> {
        let column = self.nested::<T>(group, column)?;
        let mut values = column.values.into_iter();
        let value = |level: &i16| (*level > 0).then(|| values.next()).flatten();
        let mut rows: Vec<_> = column.definition.iter().map(value).collect();
        rows.resize(self.rows(group), None);
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{Labels, RunId};

    #[test]
    fn runs_come_back() {
        let row = |number: u8| RunRow {
            run: RunId([number; 16]),
            start: i64::from(number) - 9,
            end: i64::from(number) * 7,
            samples: i64::MAX,
            lost: i64::from(number % 2),
            coverage: (!number.is_multiple_of(3)).then_some(f64::from(number) / 8.0),
            verdict: "good".into(),
            reasons: format!("line\nof {}", number % 5),
            kernel: (!number.is_multiple_of(4)).then(|| "6.18".into()),
            arch: (!number.is_multiple_of(5)).then(|| "x86_64".into()),
            command: "prof collect".into(),
            rate: (!number.is_multiple_of(2)).then_some(19),
            version: "0.1.0".into(),
            labels: (0..number % 3)
                .map(|label| (format!("n{label}"), "v".into()))
                .collect::<Labels>(),
        };
        let rows: Vec<RunRow> = (0..100).map(row).collect();
        let file = Groups::of(Table::Runs, runs_file(&rows).expect("written")).expect("read");
        assert_eq!(file.len(), 1);
        assert_eq!(file.runs(0, &mut Texts::default()).expect("read"), rows);
    }
}
