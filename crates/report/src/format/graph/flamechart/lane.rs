//! The lane of a thread: a row for the thread, and one for each depth of its calls.

use std::fmt::Write as _;

use inferno::flamegraph::color::Color;

use crate::profile::Unit;
use crate::view::chart::{Call, Chart, Run, ThreadChart};

use crate::format::graph::page::FRAME;
use crate::format::graph::palette::{CallStyle, Legend, Palette};
use crate::format::number::scaled;
use crate::format::text::timeline::escaped;

/// Between lanes, in pixels.
const GAP: usize = 8;

/// A thread's place in the picture, in pixels from the top of the axis.
pub(super) struct Lane<'c> {
    thread: &'c ThreadChart,
    top: usize,
    pub(super) bottom: usize,
}

impl<'c> Lane<'c> {
    pub(super) fn new(thread: &'c ThreadChart, top: usize) -> Self {
        let rows = thread.runs.iter().map(|run| run.depth + 2).max();
        Self {
            thread,
            top,
            bottom: top + rows.unwrap_or(1) * FRAME + GAP,
        }
    }

    pub(super) fn add_to(&self, legend: &mut Legend<'_, '_>) {
        for run in &self.thread.runs {
            let Call { function, inlined } = run.call;
            legend.add(function, style(inlined), run.end - run.start);
        }
    }

    /// The position of a row; the first one is the thread's.
    fn row(&self, row: usize, upwards: bool) -> usize {
        match upwards {
            true => self.bottom - GAP - (row + 1) * FRAME,
            false => self.top + row * FRAME,
        }
    }
}

/// Draws lanes.
pub(super) struct LaneWriter<'a, 'p> {
    pub(super) chart: &'a Chart<'p>,
    pub(super) palette: &'a Palette<'p>,
    pub(super) upwards: bool,
    /// The width of the frames, in pixels.
    pub(super) width: f64,
}

/// A rectangle with its name and its tooltip.
struct Frame<'n> {
    name: &'n str,
    info: String,
    /// Start and end, in nanoseconds.
    time: (u64, u64),
    y: usize,
    color: Color,
}

impl LaneWriter<'_, '_> {
    pub(super) fn draw(&self, lane: &Lane<'_>, out: &mut String) {
        let duration = self.chart.duration;
        let runs = &lane.thread.runs;
        let outermost = runs.iter().filter(|run| run.depth == 0);
        let sampled = outermost.map(|run| run.end - run.start).sum();
        let thread = Frame {
            name: &lane.thread.name,
            info: format!("sampled for {}", time(sampled)),
            time: (0, duration),
            y: lane.row(0, self.upwards),
            color: Palette::part(),
        };
        self.frame(&thread, out);
        runs.iter().for_each(|run| self.run(lane, run, out));
    }

    fn run(&self, lane: &Lane<'_>, run: &Run, out: &mut String) {
        let Call { function, inlined } = run.call;
        let frame = Frame {
            name: &self.chart.symbolized()[function].name,
            info: format!("{} from {}", time(run.end - run.start), time(run.start)),
            time: (run.start, run.end),
            y: lane.row(run.depth + 1, self.upwards),
            color: self.palette.function(function, style(inlined)),
        };
        self.frame(&frame, out);
    }

    /// Draws a frame as inferno does: its script zooms and searches in them.
    fn frame(&self, frame: &Frame<'_>, out: &mut String) {
        let percent = |time: u64| time as f64 / self.chart.duration as f64 * 100.0;
        let (start, end) = frame.time;
        let (x, width) = (percent(start), percent(end - start));
        let Color { r, g, b } = frame.color;
        let (name, y) = (escaped(frame.name), frame.y);
        let text = fitting(frame.name, width / 100.0 * self.width);
        // Writing to a `String` cannot fail.
        let _ = write!(
            out,
            "<g><title>{name} ({})</title>\
             <rect x=\"{x:.4}%\" y=\"{y}\" width=\"{width:.4}%\" height=\"{}\" \
             fill=\"rgb({r},{g},{b})\" fg:x=\"{start}\" fg:w=\"{}\"/>\
             <text x=\"{:.4}%\" y=\"{}.50\">{}</text></g>",
            frame.info,
            FRAME - 1,
            end - start,
            x + 300.0 / self.width,
            y + 10,
            escaped(&text),
        );
    }
}

fn style(inlined: bool) -> CallStyle {
    CallStyle {
        inlined,
        remote_read: false,
    }
}

fn time(nanoseconds: u64) -> String {
    scaled(nanoseconds, &Unit::Nanoseconds)
}

/// The beginning of a name that fits this many pixels; empty if too little fits.
fn fitting(name: &str, pixels: f64) -> String {
    /// inferno's font: pixels of a character.
    const CHARACTER: f64 = 12.0 * 0.59;
    let space = (pixels / CHARACTER) as usize;
    match space {
        0..3 => String::new(),
        _ if name.chars().count() < space => name.to_owned(),
        _ => name.chars().take(space - 2).chain("..".chars()).collect(),
    }
}
