//! The flame chart: an SVG of calls in the order of time, thread beside thread.

use std::io::{self, Write};

use inferno::flamegraph::color::PaletteMap;

use crate::symbolized::FunctionKind;
use crate::view::chart::{Call, Chart, Run, Thread};

use super::flamegraph::{FlameOptions, Marks, described};
use super::folded;
use super::number::grouped;
use super::palette::{Manner, Palette};

/// Draws `chart`. Below each thread's calls is the thread itself, as wide as all of the time;
/// where there is nothing above it, it was not sampled.
///
/// # Errors
/// Those of `out`.
pub fn write(chart: &Chart<'_>, options: &FlameOptions, out: impl Write) -> io::Result<()> {
    let mut names = Names::new(chart, options);
    let mut lines: Vec<String> = Vec::new();
    for thread in &chart.threads {
        thread_lines(thread, chart.duration, &mut names, &mut lines);
    }
    let mut drawing = options.drawing();
    drawing.palette_map = Some(&mut names.colors);
    drawing.flame_chart = true;
    // Weights are nanoseconds.
    drawing.factor = 1e-3;
    drawing.count_name = "µs".into();
    let legend = names.marks.legend(options.palette);
    let counted = format!(
        "{} samples of {} over {:.3} s, in the order of time",
        grouped(chart.samples as u64),
        chart.event.name,
        chart.duration as f64 / 1e9
    );
    let length = options.subtitle_length();
    let subtitle = || described(chart.symbolized(), &counted, &legend, length);
    drawing.subtitle = Some(options.subtitle.clone().unwrap_or_else(subtitle));
    // inferno expects the last first.
    let lines = lines.iter().rev().map(String::as_str);
    inferno::flamegraph::from_lines(&mut drawing, lines, out)
}

/// What calls are called, and in which colours they are drawn.
struct Names<'c, 'p> {
    chart: &'c Chart<'p>,
    palette: Palette<'p>,
    colors: PaletteMap,
    marks: Marks,
}

impl<'c, 'p> Names<'c, 'p> {
    fn new(chart: &'c Chart<'p>, options: &FlameOptions) -> Self {
        let mut colors = PaletteMap::default();
        colors.insert("", Palette::part());
        Self {
            chart,
            palette: Palette::new(chart.symbolized(), options.palette),
            colors,
            marks: Marks::default(),
        }
    }

    fn of_thread(&mut self, thread: &Thread) -> String {
        let name = folded::plain(&thread.name, true).into_owned();
        self.colors.insert(name.clone(), Palette::part());
        name
    }

    fn of_call(&mut self, (function, inlined): Call) -> String {
        let kind = self.chart.symbolized()[function].kind;
        self.marks.add(kind, inlined);
        let mark = match kind {
            FunctionKind::Kernel => "_[k]",
            FunctionKind::Jit => "_[j]",
            _ if inlined => "_[i]",
            _ => "",
        };
        let name = folded::plain(&self.chart.symbolized()[function].name, true);
        let name = format!("{name}{mark}");
        let manner = Manner {
            inlined,
            read_back: false,
        };
        let color = self.palette.function(function, manner);
        self.colors.insert(name.clone(), color);
        name
    }
}

/// The thread's time as folded lines, without a gap.
fn thread_lines(
    thread: &Thread,
    duration: u64,
    names: &mut Names<'_, '_>,
    lines: &mut Vec<String>,
) {
    let mut stack = names.of_thread(thread);
    // The runs that go on, and how long the line is without each.
    let mut open: Vec<(Run, usize)> = Vec::new();
    let mut now = 0;
    let mut line = |stack: &str, until: u64, now: &mut u64| {
        if until > *now {
            lines.push(format!("{stack} {}", until - *now));
            *now = until;
        }
    };
    for run in &thread.runs {
        while let Some((ended, length)) = open.pop_if(|(run_before, _)| ended_by(run_before, run)) {
            line(&stack, ended.end, &mut now);
            stack.truncate(length);
        }
        line(&stack, run.start, &mut now);
        open.push((*run, stack.len()));
        stack.push(';');
        stack.push_str(&names.of_call(run.call));
    }
    while let Some((ended, length)) = open.pop() {
        line(&stack, ended.end, &mut now);
        stack.truncate(length);
    }
    line(&stack, duration, &mut now);
}

/// Whether a run is over when the next begins: it is if that has no more callers.
fn ended_by(run: &Run, next: &Run) -> bool {
    next.depth <= run.depth
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calltree::Split;
    use crate::testing::{TestProfile, everything};

    #[test]
    fn lines_fill_the_time() {
        let symbolized = TestProfile::of(&["z m 1", "t m;a 1", "t m;k:b 1", "u n 1", "t m;a 1"]);
        let chart = Chart::new(&symbolized, &everything(), Split::Name, 0.0).unwrap();
        let mut names = Names::new(&chart, &FlameOptions::default());
        let mut lines = Vec::new();
        thread_lines(&chart.threads[1], chart.duration, &mut names, &mut lines);
        let expected = [
            "t;m;a 1000000",
            "t;m;b_[k] 1000000",
            "t 1000000",
            "t;m;a 1000000",
        ];
        assert_eq!(lines, expected);
        let mut svg = Vec::new();
        write(&chart, &FlameOptions::default(), &mut svg).unwrap();
        let svg = String::from_utf8(svg).unwrap();
        for text in ["in the order of time", "orange: kernel", "m (2,000 µs"] {
            assert!(svg.contains(text), "{text}");
        }
    }
}
