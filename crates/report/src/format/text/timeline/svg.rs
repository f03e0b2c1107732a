//! Activity over time as an SVG.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

use prof_model::printable;

use crate::view::timeline::{Row, Timeline};

use super::{caption, described, length, seconds};
use crate::format::text::table::shorten;

/// How a picture of a timeline looks.
#[derive(Clone, Debug)]
pub struct SvgOptions {
    /// The headline.
    pub title: String,
    /// Width in pixels; 1200 unless given.
    pub width: Option<usize>,
    /// The maximum number of rows.
    pub rows: Option<usize>,
}

impl Default for SvgOptions {
    fn default() -> Self {
        Self {
            title: "Timeline".into(),
            width: None,
            rows: None,
        }
    }
}

/// Heights and widths in pixels.
const ROW: usize = 24;
const BAR: usize = 18;
const TOP: usize = 74;
const BOTTOM: usize = 12;
const LABEL: usize = 220;
const MARGIN: usize = 12;

/// Draws `timeline`: a row for each part, with a bar for each moment. Each bar has a tooltip.
///
/// # Errors
/// Those of `out`.
pub fn write(timeline: &Timeline<'_>, options: &SvgOptions, mut out: impl Write) -> io::Result<()> {
    let rows = timeline.rows.len().min(options.rows.unwrap_or(usize::MAX));
    let rows = &timeline.rows[..rows];
    let width = options.width.unwrap_or(1200).max(LABEL + 2 * MARGIN + 100);
    let height = TOP + rows.len() * ROW + BOTTOM;
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"monospace\" font-size=\"12\">"
    )?;
    writeln!(
        out,
        "<rect width=\"100%\" height=\"100%\" fill=\"#fbfbfb\"/>"
    )?;
    let middle = width / 2;
    let title = escaped(&options.title);
    let caption = caption(timeline);
    let caption = escaped(&caption);
    writeln!(
        out,
        "<text x=\"{middle}\" y=\"24\" font-size=\"17\" text-anchor=\"middle\">{title}</text>"
    )?;
    writeln!(
        out,
        "<text x=\"{middle}\" y=\"44\" fill=\"#666\" text-anchor=\"middle\">{caption}</text>"
    )?;
    let plot = Plot {
        timeline,
        full: timeline.full().max(1),
        width: (width - LABEL - 2 * MARGIN) as f64,
        bottom: height - BOTTOM,
    };
    plot.axis(&mut out)?;
    for (index, row) in rows.iter().enumerate() {
        plot.row(&mut out, row, TOP + index * ROW)?;
    }
    writeln!(out, "</svg>")
}

struct Plot<'a> {
    timeline: &'a Timeline<'a>,
    full: u64,
    width: f64,
    bottom: usize,
}

impl Plot<'_> {
    /// The left edge of the plot.
    const LEFT: usize = MARGIN + LABEL;

    /// Times, and lines from them through all rows.
    fn axis(&self, out: &mut impl Write) -> io::Result<()> {
        const TICKS: u64 = 5;
        for tick in 0..=TICKS {
            let x = Self::LEFT as f64 + self.width * tick as f64 / TICKS as f64;
            let passed = self.duration() / TICKS as f64 * tick as f64;
            let time = seconds(self.timeline.start.saturating_add(passed as u64));
            let anchor = match tick {
                0 => "start",
                TICKS => "end",
                _ => "middle",
            };
            writeln!(
                out,
                "<text x=\"{x:.1}\" y=\"{}\" fill=\"#666\" text-anchor=\"{anchor}\">{time}</text>\
                 <path d=\"M{x:.1} {TOP}V{}\" stroke=\"#ddd\"/>",
                TOP - 8,
                self.bottom
            )?;
        }
        Ok(())
    }

    fn duration(&self) -> f64 {
        let moments = self.timeline.rows.first().map_or(0, |row| row.values.len());
        self.timeline.step as f64 * moments as f64
    }

    fn row(&self, out: &mut impl Write, row: &Row, top: usize) -> io::Result<()> {
        const LONGEST: usize = 30;
        let label = described(row, self.timeline);
        let name = shorten(&label, LONGEST);
        let (label, name) = (escaped(&label), escaped(&name));
        let base = top + BAR + 2;
        writeln!(
            out,
            "<g><title>{label}</title><text x=\"{MARGIN}\" y=\"{}\">{name}</text></g>",
            base - 5
        )?;
        let right = Self::LEFT as f64 + self.width;
        writeln!(
            out,
            "<path d=\"M{} {base}H{right:.1}\" stroke=\"#ccc\"/>",
            Self::LEFT
        )?;
        let step = self.width / row.values.len().max(1) as f64;
        for (moment, &value) in row.values.iter().enumerate().filter(|(_, v)| **v > 0) {
            let share = (value as f64 / self.full as f64).clamp(0.0, 1.0);
            // A nonzero value is always visible.
            let height = (share * BAR as f64).max(1.0);
            let x = Self::LEFT as f64 + step * moment as f64;
            let y = base as f64 - height;
            writeln!(
                out,
                "<rect x=\"{x:.2}\" y=\"{y:.1}\" width=\"{step:.2}\" height=\"{height:.1}\" \
                 fill=\"#d9682f\"><title>{}</title></rect>",
                self.moment(moment, value)
            )?;
        }
        Ok(())
    }

    /// The tooltip of a bar.
    fn moment(&self, moment: usize, value: u64) -> String {
        let step = self.timeline.step;
        let begin = step.saturating_mul(moment as u64);
        let begin = seconds(self.timeline.start.saturating_add(begin));
        let share = value as f64 / self.full as f64 * 100.0;
        format!("{begin} + {}: {share:.0} % of full height", length(step))
    }
}

/// Text escaped for XML.
pub(in crate::format) fn escaped(text: &str) -> Cow<'_, str> {
    let text = printable(text);
    if !text.contains(['<', '>', '&']) {
        return text;
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        // Writing to a `String` cannot fail.
        let _ = match character {
            '<' => escaped.write_str("&lt;"),
            '>' => escaped.write_str("&gt;"),
            '&' => escaped.write_str("&amp;"),
            c => escaped.write_char(c),
        };
    }
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_in_xml() {
        let check = |text, expected: &str| assert_eq!(escaped(text), expected);
        check("worker 1/2", "worker 1/2");
        check("a<b> & c\u{7}", "a&lt;b&gt; &amp; c\\x07");
    }
}
