//! The values, ratios and spreads of one moment, for any format.

use std::time::Duration;

use prof_counters::Count;
use prof_events::counting::Usage;

use super::ratios::{Metric, metrics};
use super::row::{Counts, Origin, Row};

/// One run of a command, or one reading of running targets.
#[derive(Clone, Debug)]
pub(super) struct Measurement {
    pub(super) counts: Counts,
    /// Real time.
    pub(super) wall: Duration,
    /// The command's resource usage, when it has ended.
    pub(super) usage: Option<Usage>,
}

/// The results to print.
pub(super) struct Report {
    pub(super) lines: Vec<EventLine>,
    pub(super) wall: Estimate,
    /// Times in user and kernel code, in seconds.
    pub(super) cpu: Option<(Estimate, Estimate)>,
    pub(super) runs: usize,
}

/// The results of one event.
pub(super) struct EventLine {
    pub(super) name: String,
    pub(super) value: Value,
    /// The unit to print after the value.
    pub(super) unit: String,
    /// Nanoseconds for which it counted.
    pub(super) running: u64,
    /// The share of the time for which it counted, 0 to 1.
    pub(super) share: f64,
    pub(super) metrics: Vec<Metric>,
}

/// The value of an event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    /// A count.
    Whole(Estimate),
    /// A quantity.
    Real(Estimate),
    /// It was enabled, but never on the hardware.
    NotCounted,
}

/// A mean and its error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Estimate {
    pub(super) mean: f64,
    /// The standard error of the mean; `None` for a single value.
    pub(super) error: Option<f64>,
}

impl Estimate {
    pub(super) fn of(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count.max(1.0);
        let error = (values.len() > 1).then(|| {
            let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
            (squares / (count - 1.0) / count).sqrt()
        });
        Self { mean, error }
    }

    /// The standard error as a share of the mean.
    pub(super) fn relative_error(&self) -> Option<f64> {
        let error = self.error?;
        Some(if self.mean == 0.0 {
            0.0
        } else {
            error / self.mean
        })
    }
}

impl Report {
    pub(super) fn new(rows: &[Row], runs: &[Measurement]) -> Self {
        let cells: Vec<Cell> = (0..rows.len())
            .map(|index| Cell::new(rows, runs, index))
            .collect();
        let means: Vec<Option<f64>> = cells.iter().map(|cell| Some(cell.estimate?.mean)).collect();
        let wall: Vec<f64> = runs.iter().map(|run| run.wall.as_secs_f64()).collect();
        let wall = Estimate::of(&wall);
        let lines = rows.iter().zip(cells).enumerate();
        let lines = lines
            .map(|(index, (row, cell))| cell.line(row, metrics(index, rows, &means, wall.mean)));
        Self {
            lines: lines.collect(),
            wall,
            cpu: cpu_times(runs),
            runs: runs.len(),
        }
    }
}

fn cpu_times(runs: &[Measurement]) -> Option<(Estimate, Estimate)> {
    let usages: Vec<Usage> = runs.iter().filter_map(|run| run.usage).collect();
    let seconds = |time: fn(&Usage) -> Duration| -> Vec<f64> {
        usages
            .iter()
            .map(|usage| time(usage).as_secs_f64())
            .collect()
    };
    let complete = !usages.is_empty() && usages.len() == runs.len();
    complete.then(|| {
        (
            Estimate::of(&seconds(|usage| usage.user)),
            Estimate::of(&seconds(|usage| usage.system)),
        )
    })
}

/// The results of all runs for one event.
struct Cell {
    /// Scaled, in the kernel's unit; `None` if some run did not count it.
    estimate: Option<Estimate>,
    total: Count,
}

impl Cell {
    fn new(rows: &[Row], runs: &[Measurement], index: usize) -> Self {
        let is_usage = rows
            .get(index)
            .is_some_and(|row| row.origin == Origin::Usage);
        let count = |run: &Measurement| match is_usage {
            // getrusage always covers the whole time.
            true => Some(Count {
                value: run.usage?.context_switches,
                ..Count::default()
            }),
            false => run.counts.get(index).copied().flatten(),
        };
        let counts: Option<Vec<Count>> = runs.iter().map(count).collect();
        let counts = counts.unwrap_or_default();
        let values: Option<Vec<f64>> = counts
            .iter()
            .map(|count| Some(count.scaled()? as f64))
            .collect();
        let values = values.filter(|values| !values.is_empty());
        Self {
            estimate: values.map(|values| Estimate::of(&values)),
            total: counts
                .iter()
                .fold(Count::default(), |sum, count| sum.plus(*count)),
        }
    }

    fn line(self, row: &Row, metrics: Vec<Metric>) -> EventLine {
        let scaled = |factor: f64| {
            let estimate = self.estimate?;
            let error = estimate.error.map(|error| error * factor);
            Some(Estimate {
                mean: estimate.mean * factor,
                error,
            })
        };
        let (value, unit) = match &row.event.scale {
            Some((factor, unit)) => (scaled(*factor).map(Value::Real), unit.clone()),
            None if row.event.is_clock() => (scaled(1e-6).map(Value::Real), "msec".to_owned()),
            None => (scaled(1.0).map(Value::Whole), String::new()),
        };
        EventLine {
            name: row.name.clone(),
            value: value.unwrap_or(Value::NotCounted),
            unit,
            running: self.total.running,
            share: self.total.share().unwrap_or(1.0),
            metrics,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates() {
        let check = |values: &[f64], mean: f64, error: Option<f64>| {
            let estimate = Estimate::of(values);
            assert!(
                (estimate.mean - mean).abs() < 1e-9,
                "{values:?} {estimate:?}"
            );
            match (estimate.error, error) {
                (Some(found), Some(error)) => {
                    assert!((found - error).abs() < 1e-9, "{values:?} {estimate:?}")
                }
                (found, error) => assert_eq!(found, error),
            }
        };
        check(&[5.0], 5.0, None);
        check(&[1.0, 1.0, 1.0], 1.0, Some(0.0));
        // The standard deviation is 2; divided by the root of 4.
        check(
            &[1.0, 3.0, 5.0, 7.0 - 4.0],
            3.0,
            Some((8.0_f64 / 3.0 / 4.0).sqrt()),
        );
        check(&[], 0.0, None);
        assert_eq!(Estimate::of(&[0.0, 0.0]).relative_error(), Some(0.0));
    }
}
