//! The picture around the frames: inferno's, with a legend and readable units.
//!
//! ```text
//! Reset Zoom              title                Search
//!                       subtitle
//! the frame at the pointer                    Matched     (or at the bottom: `GraphDirection`)
//! legend, one or more rows
//! ┌ frames ──────────────────────────────────────────┐
//! ```

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

use crate::profile::Unit;

use super::palette::Entry;
use crate::format::number;
use crate::format::text::table::columns;
use crate::format::text::timeline::escaped;

/// inferno's width of pictures that follow the window.
pub(in crate::format) const WIDTH: usize = 1200;
/// Left and right of the frames, in pixels.
pub(in crate::format) const MARGIN: usize = 10;
/// A row of frames, in pixels.
pub(in crate::format) const FRAME: usize = 16;

const LEGEND_ROW: usize = 18;
/// The width of a character of the legend, in pixels.
const CHARACTER: f64 = 7.3;

/// How inferno begins the frames.
const FRAMES: &str = "<svg id=\"frames\"";

/// The search is visible, and the legend ignores the pointer.
const STYLE: &str = "<style type=\"text/css\">\
    #search { opacity:1; fill:rgb(0,80,180); text-decoration:underline; } \
    #subtitle { fill:rgb(90,90,90); } \
    #legend { pointer-events:none; }\
    </style>";

/// The positions of inferno's elements that must move when the picture grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::format) enum GraphDirection {
    /// Roots at the top: the text for the frame at the pointer is above the frames.
    Downwards,
    /// Roots at the bottom: it is below them.
    Upwards,
}

impl GraphDirection {
    /// The top of the frames in a picture of inferno with a subtitle.
    fn top(self) -> usize {
        match self {
            Self::Downwards => 76,
            Self::Upwards => 60,
        }
    }

    /// The distance of inferno's lines at the bottom from the lower edge.
    fn below(self) -> usize {
        match self {
            Self::Downwards => 11,
            Self::Upwards => 17,
        }
    }
}

/// A picture that inferno drew, in parts.
pub(in crate::format) struct Page<'s> {
    /// The markup before the frames.
    head: &'s str,
    /// The frames, and the end of the picture.
    frames: &'s str,
    height: usize,
    width: Option<usize>,
    direction: GraphDirection,
}

impl<'s> Page<'s> {
    /// # Errors
    /// If it does not look like one of inferno's.
    pub(in crate::format) fn parse(
        svg: &'s [u8],
        direction: GraphDirection,
        width: Option<usize>,
    ) -> io::Result<Self> {
        let parse = || {
            let svg = std::str::from_utf8(svg).ok()?;
            let (head, frames) = svg.split_at(svg.find(FRAMES)?);
            let (_, height) = head.split_once(" height=\"")?;
            let (height, _) = height.split_once('"')?;
            Some(Self {
                head,
                frames,
                height: height.parse().ok()?,
                width,
                direction,
            })
        };
        parse().ok_or_else(|| io::Error::other("inferno drew something unexpected"))
    }

    /// Writes the picture with a legend, and with amounts of `unit` as people write them.
    pub(in crate::format) fn write_with_legend(
        &self,
        legend: &[Entry],
        unit: &Unit,
        mut out: impl Write,
    ) -> io::Result<()> {
        let (legend, shift) = self.legend(legend);
        out.write_all(self.head(self.height + shift).as_bytes())?;
        write!(out, "{STYLE}{legend}{FRAMES} y=\"{shift}\"")?;
        let frames = self.frames.strip_prefix(FRAMES).unwrap_or_default();
        out.write_all(with_units(frames, unit).as_bytes())
    }

    /// Writes the picture with a legend and `frames` instead of inferno's, in an area that is
    /// `height` pixels high.
    pub(in crate::format) fn write_around(
        &self,
        legend: &[Entry],
        height: usize,
        frames: impl FnOnce(usize) -> String,
        mut out: impl Write,
    ) -> io::Result<()> {
        let (legend, shift) = self.legend(legend);
        let top = self.direction.top() + shift;
        let bottom = 2 * self.direction.below();
        out.write_all(self.head(top + height + bottom).as_bytes())?;
        write!(out, "{STYLE}{legend}{}</svg>", frames(top))
    }

    /// The markup before the frames, for a picture of this height.
    fn head(&self, height: usize) -> String {
        let at_bottom = |height: usize| {
            let y = height.saturating_sub(self.direction.below());
            format!("y=\"{y}.00\"")
        };
        let matched = match self.direction {
            // It is usually far below the window, where it would not be seen.
            GraphDirection::Downwards => "y=\"64.00\"".to_owned(),
            GraphDirection::Upwards => at_bottom(height),
        };
        let old = self.height;
        self.head
            .replace(
                &format!("height=\"{old}\""),
                &format!("height=\"{height}\""),
            )
            .replace(&format!(" {old}\" xmlns"), &format!(" {height}\" xmlns"))
            .replace(&at_bottom(old), &matched)
    }

    /// The legend, and its height.
    fn legend(&self, entries: &[Entry]) -> (String, usize) {
        if entries.is_empty() {
            return (String::new(), 0);
        }
        let right = (self.width.unwrap_or(WIDTH) - MARGIN) as f64;
        let (mut x, mut row) = (MARGIN as f64, 0);
        let mut legend = String::from("<g id=\"legend\">");
        for entry in entries {
            let length = 16.0 + CHARACTER * (columns(&entry.text) + 2) as f64;
            if x + length > right && x > MARGIN as f64 {
                (x, row) = (MARGIN as f64, row + 1);
            }
            let y = self.direction.top() + row * LEGEND_ROW;
            let (color, text) = (entry.color, escaped(&entry.text));
            // Writing to a `String` cannot fail.
            let _ = write!(
                legend,
                "<g transform=\"translate({x:.1},{y})\">\
                 <path d=\"M0 0h11v11h-11z\" fill=\"rgb({},{},{})\"/>\
                 <text x=\"16\" y=\"10\">{text}</text></g>",
                color.r, color.g, color.b,
            );
            x += length;
        }
        legend += "</g>";
        (legend, (row + 1) * LEGEND_ROW)
    }
}

/// The frames with the amounts in their titles, `(237,237,237 ns, 5.00%)`, as people write them.
fn with_units<'f>(frames: &'f str, unit: &Unit) -> Cow<'f, str> {
    const TITLE: &str = "<title>";
    if !number::is_scaled(unit) {
        return Cow::Borrowed(frames);
    }
    let end = format!(" {}, ", unit.name());
    let mut written = String::with_capacity(frames.len());
    let mut titles = frames.split(TITLE);
    written.push_str(titles.next().unwrap_or_default());
    for title in titles {
        written.push_str(TITLE);
        let amount = || {
            let (title, _) = title.split_once("</title>")?;
            let start = title.rfind(" (")? + 2;
            let length = title[start..].find(&end)?;
            let digits = title[start..start + length].replace(',', "");
            let text = number::scaled(digits.parse().ok()?, unit);
            Some((start, text, start + length + end.len()))
        };
        match amount() {
            Some((start, text, rest)) => {
                let _ = write!(written, "{}{text}, {}", &title[..start], &title[rest..]);
            }
            None => written.push_str(title),
        }
    }
    Cow::Owned(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_have_amounts_for_people() {
        let check = |unit: &Unit, title: &str, expected: &str| {
            let frame = |title| format!("<g><title>{title}</title><rect/></g>");
            assert_eq!(with_units(&frame(title), unit), frame(expected));
        };
        let time = Unit::Nanoseconds;
        check(&time, "f (237,237,237 ns, 5.00%)", "f (237 ms, 5.00%)");
        check(
            &time,
            "f (a) (1,200 ns, 5.00%; +1.00%)",
            "f (a) (1.20 µs, 5.00%; +1.00%)",
        );
        check(&time, "all (2,000,000,000 ns, 100%)", "all (2.00 s, 100%)");
        check(&time, "odd", "odd");
        let bytes = Unit::Count("bytes".into());
        check(&bytes, "f (2,097,152 bytes, 5.00%)", "f (2.00 MiB, 5.00%)");
        let cycles = Unit::Count("cycles".into());
        check(
            &cycles,
            "f (1,200 cycles, 5.00%)",
            "f (1,200 cycles, 5.00%)",
        );
    }
}
