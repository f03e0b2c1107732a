//! One JSON object a line, with perf's keys.

use serde::Serialize;

use super::prefix::Prefix;
use super::ratios::Metric;
use super::report::{Estimate, Report, Value};

#[derive(Default, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Object<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    interval: Option<f64>,
    /// A thread or a CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    counter_value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<&'a str>,
    /// Per cent of the mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    variance: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    event_runtime: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pcnt_running: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metric_value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metric_unit: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Times {
    seconds_elapsed: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds_user: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds_sys: Option<f64>,
    runs: usize,
}

pub(super) fn lines(report: &Report, prefix: &Prefix) -> String {
    let mut text = String::new();
    for line in &report.lines {
        let (value, estimate) = match &line.value {
            Value::Whole(estimate) | Value::Real(estimate) => {
                (format!("{:.6}", estimate.mean), Some(estimate))
            }
            Value::NotCounted => ("<not counted>".to_owned(), None),
        };
        let blank = || Object {
            interval: prefix.time.map(|time| time.as_secs_f64()),
            thread: prefix.place.as_deref(),
            ..Object::default()
        };
        let mut metrics = line.metrics.iter();
        let first = Object {
            counter_value: Some(value),
            unit: Some(&line.unit),
            event: Some(&line.name),
            variance: estimate
                .and_then(Estimate::relative_error)
                .map(|error| 100.0 * error),
            event_runtime: Some(line.running),
            pcnt_running: Some(100.0 * line.share),
            ..blank()
        };
        push(&mut text, first.with(metrics.next()));
        for metric in metrics {
            push(&mut text, blank().with(Some(metric)));
        }
    }
    text
}

impl<'a> Object<'a> {
    fn with(mut self, metric: Option<&'a Metric>) -> Self {
        self.metric_value = metric.map(|metric| metric.value);
        self.metric_unit = metric.map(|metric| metric.unit.as_str());
        self
    }
}

fn push(text: &mut String, object: impl Serialize) {
    // Numbers and strings are always JSON.
    *text += &serde_json::to_string(&object).unwrap_or_default();
    text.push('\n');
}

/// The times, as a separate object.
pub(super) fn times(report: &Report) -> String {
    let times = Times {
        seconds_elapsed: report.wall.mean,
        seconds_user: report.cpu.as_ref().map(|(user, _)| user.mean),
        seconds_sys: report.cpu.as_ref().map(|(_, system)| system.mean),
        runs: report.runs,
    };
    let mut text = String::new();
    push(&mut text, times);
    text
}
