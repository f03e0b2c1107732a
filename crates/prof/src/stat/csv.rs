//! Fields for scripts, in perf's order:
//! `[time,][place,]value,unit,event,[spread,]running,share,metric,metric unit`.

use super::prefix::Prefix;
use super::report::{Estimate, Report, Value};

pub(super) fn lines(report: &Report, prefix: &Prefix, separator: &str) -> String {
    let mut before: Vec<String> = Vec::new();
    before.extend(prefix.time.map(|time| format!("{:.9}", time.as_secs_f64())));
    before.extend(prefix.place.as_deref().map(text));
    let mut text = String::new();
    for line in &report.lines {
        let (value, estimate) = match &line.value {
            Value::Whole(estimate) => (format!("{:.0}", estimate.mean), Some(estimate)),
            Value::Real(estimate) => (format!("{:.2}", estimate.mean), Some(estimate)),
            Value::NotCounted => ("<not counted>".to_owned(), None),
        };
        let mut fields = before.clone();
        fields.extend([value, line.unit.clone(), line.name.clone()]);
        fields.extend(spread(report, estimate));
        fields.extend([
            line.running.to_string(),
            format!("{:.2}", 100.0 * line.share),
        ]);
        let blank = vec![String::new(); fields.len() - before.len()];
        let mut metrics = line.metrics.iter().map(|metric| match metric.percent {
            true => [format!("{:.2}", metric.value), metric.unit.clone()],
            false => [format!("{:.3}", metric.value), metric.unit.clone()],
        });
        fields.extend(metrics.next().unwrap_or_default());
        push(&mut text, &fields, separator);
        for metric in metrics {
            push(
                &mut text,
                &[&before[..], &blank, &metric].concat(),
                separator,
            );
        }
    }
    text
}

/// Programs choose their names: a field that a spreadsheet would take for a formula gets an
/// apostrophe.
fn text(field: &str) -> String {
    match field.starts_with(['=', '+', '-', '@']) {
        true => format!("'{field}"),
        false => field.to_owned(),
    }
}

fn spread(report: &Report, estimate: Option<&Estimate>) -> Option<String> {
    let error = estimate.and_then(Estimate::relative_error).unwrap_or(0.0);
    (report.runs > 1).then(|| format!("{:.2}%", 100.0 * error))
}

/// Quotes fields that contain the separator, as spreadsheets do.
fn push(text: &mut String, fields: &[String], separator: &str) {
    let quoted = |field: &String| match !separator.is_empty() && field.contains(separator) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field.clone(),
    };
    *text += &fields
        .iter()
        .map(quoted)
        .collect::<Vec<_>>()
        .join(separator);
    text.push('\n');
}
