//! The table for users, with perf's layout.

use super::prefix::Prefix;
use super::ratios::Metric;
use super::report::{Estimate, EventLine, Report, Value};

/// Widths of the columns.
const VALUE: usize = 18;
const UNIT: usize = 4;
const NAME: usize = 25;
const METRIC: usize = 37;

pub(super) fn title(subject: &str, runs: usize) -> String {
    let runs = match runs {
        0 | 1 => String::new(),
        runs => format!(" ({runs} runs)"),
    };
    format!("\n Performance counter stats for {subject}{runs}:\n\n")
}

pub(super) fn interval_header(prefix: &Prefix) -> String {
    let place = if prefix.place.is_some() {
        "thread or CPU     "
    } else {
        ""
    };
    format!("#           time {place}            counts unit events\n")
}

/// The real time, and the command's times in user and kernel code.
pub(super) fn times(report: &Report) -> String {
    let mut text = match report.wall.error {
        None => format!("\n{:>18.9} seconds time elapsed\n\n", report.wall.mean),
        Some(error) => {
            let spread = spread(&report.wall).unwrap_or_default();
            format!(
                "\n{:>18.6} +- {error:.6} seconds time elapsed{spread}\n\n",
                report.wall.mean
            )
        }
    };
    if let Some((user, system)) = &report.cpu {
        for (time, name) in [(user, "user"), (system, "sys")] {
            text += &format!("{:>18.9} seconds {name}\n", time.mean);
        }
        text.push('\n');
    }
    text
}

pub(super) fn lines(report: &Report, prefix: &Prefix) -> String {
    let longest = report
        .lines
        .iter()
        .map(|line| line.name.chars().count())
        .max();
    let name_width = longest.unwrap_or(0).max(NAME);
    let unit_width = report
        .lines
        .iter()
        .map(|line| line.unit.chars().count())
        .max()
        .unwrap_or(0)
        .max(UNIT);
    let before = before(prefix);
    let mut text = String::new();
    for line in &report.lines {
        let head = format!(
            "{before}{:>VALUE$} {:<unit_width$} {:<name_width$}",
            value(&line.value),
            line.unit,
            line.name
        );
        let mut metrics = line.metrics.iter();
        let first = metrics.next().map(metric).unwrap_or_default();
        let end = end(line);
        let padded = if end.is_empty() {
            first
        } else {
            format!("{first:<METRIC$}{end}")
        };
        text += format!("{head}{padded}").trim_end();
        text.push('\n');
        let indent = head.chars().count();
        for further in metrics {
            text += format!("{:indent$}{}", before, metric(further)).trim_end();
            text.push('\n');
        }
    }
    text
}

fn before(prefix: &Prefix) -> String {
    let time = prefix
        .time
        .map(|time| format!("{:>16.9} ", time.as_secs_f64()));
    let place = prefix.place.as_ref().map(|place| format!("{place:>24} "));
    time.unwrap_or_default() + &place.unwrap_or_default()
}

fn value(value: &Value) -> String {
    match value {
        Value::Whole(estimate) => grouped(estimate.mean),
        Value::Real(estimate) => format!("{:.2}", estimate.mean),
        Value::NotCounted => "<not counted>".to_owned(),
    }
}

/// `1,234,567`
fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::with_capacity(digits.len() * 4 / 3 + 1);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn metric(metric: &Metric) -> String {
    let unit = &metric.unit;
    match metric.percent {
        true => format!(" # {:>7.2}% {unit}", metric.value),
        false => format!(" # {:>8.3} {unit}", metric.value),
    }
}

/// The error of the value, and the share of the time for which it was counted.
fn end(line: &EventLine) -> String {
    let estimate = match &line.value {
        Value::Whole(estimate) | Value::Real(estimate) => estimate,
        Value::NotCounted => return String::new(),
    };
    let mut end = spread(estimate).unwrap_or_default();
    if line.share < 0.9995 {
        end += &format!("  ({:.2}%)", 100.0 * line.share);
    }
    end
}

fn spread(estimate: &Estimate) -> Option<String> {
    let error = 100.0 * estimate.relative_error()?;
    Some(format!("  ( +-{error:>6.2}% )"))
}
