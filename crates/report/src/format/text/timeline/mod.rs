//! Activity over time, as text and as a picture.

mod svg;

use std::io::{self, Write};

use crate::profile::Unit;
use crate::view::timeline::{Row, Timeline};

use super::table::{columns, shorten};
use crate::format::number::{counted, grouped, percent};

pub(in crate::format) use svg::escaped;
pub use svg::{SvgOptions, write as write_svg};

/// Names are not shown wider than this, in columns.
const WIDEST: usize = 28;
/// The width besides names and moments: a column of percentages, and three gaps of two spaces.
const BESIDE: usize = 12;

/// How many moments fit into a line of `width` columns; a choice for pipes without.
pub fn moments(width: Option<usize>) -> usize {
    const FEWEST: usize = 20;
    const IN_PIPES: usize = 100;
    width.map_or(IN_PIPES, |width| {
        width.saturating_sub(WIDEST + BESIDE).max(FEWEST)
    })
}

/// Writes a caption, a header with the times of the first and the last moment, and a line for each
/// of at most `rows` parts: name, share of everything in percent, and a block for each moment, from
/// empty to full.
///
/// # Errors
/// Those of `out`.
pub fn write(timeline: &Timeline<'_>, rows: Option<usize>, mut out: impl Write) -> io::Result<()> {
    writeln!(out, "{}\n", caption(timeline))?;
    let shown = &timeline.rows[..timeline.rows.len().min(rows.unwrap_or(usize::MAX))];
    let names = shown.iter().map(|row| columns(&row.name));
    let name = names.max().unwrap_or(0).clamp("Name".len(), WIDEST);
    let moments = timeline.rows.first().map_or(0, |row| row.values.len());
    let (first, last) = (seconds(timeline.start), seconds(end(timeline)));
    let between = moments.saturating_sub(columns(&first)).max(1);
    writeln!(out, "{:name$}  {:>6}  {first}{last:>between$}", "Name", "%")?;
    let full = timeline.full();
    for row in shown {
        let blocks: String = row.values.iter().map(|&v| block(v, full)).collect();
        let share = percent(row.total.share_of(timeline.total));
        let label = shorten(&row.name, name);
        let line = format!("{label:name$}  {share:>6}  {blocks}");
        writeln!(out, "{}", line.trim_end())?;
    }
    let left = timeline.rows.len() - shown.len();
    if left > 0 {
        writeln!(out, "… {} more", grouped(left as u64))?;
    }
    Ok(())
}

/// The caption: event and total, and the meaning of a full block.
fn caption(timeline: &Timeline<'_>) -> String {
    let moment = length(timeline.step);
    let full = match timeline.event.unit {
        Unit::Nanoseconds => {
            let cpus = timeline.full() as f64 / timeline.step as f64;
            format!("{cpus:.2} CPUs")
        }
        ref unit => format!("{} {}", grouped(timeline.full()), unit.name()),
    };
    format!(
        "{} of {}; full height: {full} in a moment of {moment}",
        counted(timeline.total.samples, "sample"),
        timeline.event.name,
    )
}

/// When the last moment ends, in nanoseconds since the recording's first sample.
fn end(timeline: &Timeline<'_>) -> u64 {
    let moments = timeline.rows.first().map_or(0, |row| row.values.len());
    let duration = timeline.step.saturating_mul(moments as u64);
    timeline.start.saturating_add(duration)
}

/// A time as it may be given to `--since`.
fn seconds(nanoseconds: u64) -> String {
    format!("{:.3}s", nanoseconds as f64 / 1e9)
}

fn length(nanoseconds: u64) -> String {
    match nanoseconds {
        0..1_000_000 => format!("{:.1} µs", nanoseconds as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", nanoseconds as f64 / 1e6),
        _ => format!("{:.2} s", nanoseconds as f64 / 1e9),
    }
}

/// A block as high as the share; a nonzero share is always visible.
fn block(value: u64, full: u64) -> char {
    const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let share = value as f64 / full.max(1) as f64;
    let eighths = (share.clamp(0.0, 1.0) * 8.0).round() as usize;
    BLOCKS[if value > 0 { eighths.max(1) } else { 0 }]
}

/// A row's name and its share, for people.
fn described(row: &Row, timeline: &Timeline<'_>) -> String {
    let share = percent(row.total.share_of(timeline.total));
    format!("{} ({share} %)", row.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calltree::Split;
    use crate::testing::{TestProfile, check_golden, everything};

    fn check(split: Split, name: &str) {
        let lines = [
            "demo/1/1 m 1",
            "demo/1/1 m 1",
            "worker-1/1/2 m 1",
            "worker-2/1/3 m 1",
            "demo/1/1 m 1",
            "worker-1/1/2 m 1",
            "idle/9/9 m 0",
            "demo/1/1 m 1",
        ];
        let symbolized = TestProfile::of(&lines);
        let timeline = Timeline::new(&symbolized, &everything(), split, 14).unwrap();
        let mut text = Vec::new();
        write(&timeline, Some(3), &mut text).unwrap();
        check_golden(&format!("{name}.txt"), &text);
        let mut picture = Vec::new();
        let options = SvgOptions {
            width: Some(600),
            ..SvgOptions::default()
        };
        write_svg(&timeline, &options, &mut picture).unwrap();
        check_golden(&format!("{name}.svg"), &picture);
    }

    #[test]
    fn golden() {
        check(Split::Thread, "timeline");
    }

    #[test]
    fn blocks_grow_by_eighths() {
        let check = |value, expected| assert_eq!(block(value, 800), expected);
        check(0, ' ');
        check(1, '▁');
        check(400, '▄');
        check(800, '█');
        check(900, '█');
    }
}
