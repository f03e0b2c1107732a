//! The flame chart: an SVG of calls in the order of time, a lane for each thread.

mod axis;
mod lane;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::io::{self, Write};

use crate::view::chart::Chart;

use super::flamegraph::{FlameOptions, described};
use super::page::{self, MARGIN, Page};
use super::palette::{Legend, Palette};
use crate::format::number::counted;

use lane::{Lane, LaneWriter};

/// Zooms into time, in all lanes at once.
const SCRIPT: &str = include_str!("zoom.js");

/// Draws `chart`: a time axis, and below it a lane for each thread, all on one scale. The first row
/// of a lane is the thread itself, as wide as all of the time; where there is nothing next to it,
/// the thread was not sampled.
///
/// # Errors
/// Those of `out`.
pub fn write(chart: &Chart<'_>, options: &FlameOptions, out: impl Write) -> io::Result<()> {
    let palette = Palette::new(chart.symbolized(), options.palette);
    let mut legend = Legend::new(&palette);
    let mut lanes = Vec::new();
    let mut height = axis::HEIGHT;
    for thread in &chart.threads {
        let lane = Lane::new(thread, height);
        height = lane.bottom;
        lane.add_to(&mut legend);
        lanes.push(lane);
    }
    let width = options.width.unwrap_or(page::WIDTH).max(3 * MARGIN) - 2 * MARGIN;
    let writer = LaneWriter {
        chart,
        palette: &palette,
        upwards: options.upwards,
        width: width as f64,
    };
    let frames = |top: usize| {
        // Writing to a `String` cannot fail.
        let mut drawn = axis::draw(chart.duration, (top, height), width);
        let duration = chart.duration;
        let _ = write!(
            drawn,
            "<svg id=\"frames\" x=\"{MARGIN}\" y=\"{top}\" width=\"{width}\" \
             total_samples=\"{duration}\">"
        );
        lanes.iter().for_each(|lane| writer.draw(lane, &mut drawn));
        let script = SCRIPT.replace("LENGTH", &duration.to_string());
        let _ = write!(
            drawn,
            "</svg><script type=\"text/ecmascript\"><![CDATA[{script}]]></script>"
        );
        drawn
    };
    let svg = frame_of(chart, options)?;
    let page = Page::parse(&svg, options.direction(), options.width)?;
    page.write_around(&legend.entries(), height, frames, out)
}

/// The picture around the frames: drawn by inferno, with a hidden frame.
fn frame_of(chart: &Chart<'_>, options: &FlameOptions) -> io::Result<Vec<u8>> {
    let counted = format!(
        "{} of {} in {:.3} s, in the order of time",
        counted(chart.samples as u64, "sample"),
        chart.event.name,
        chart.duration as f64 / 1e9
    );
    let subtitle = || described(chart.symbolized(), &counted, options.subtitle_length());
    let mut drawing = options.drawing();
    drawing.subtitle = Some(options.subtitle.clone().unwrap_or_else(subtitle));
    drawing.min_width = 0.0;
    let mut svg = Vec::new();
    inferno::flamegraph::from_lines(&mut drawing, ["thread 1"], &mut svg)?;
    Ok(svg)
}
