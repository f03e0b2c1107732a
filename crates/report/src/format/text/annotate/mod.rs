//! Source lines and instructions as text.

mod code;
mod lines;

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

use prof_model::printable;

use crate::profile::Weight;
use crate::source::{NoSource, SourceFile, Sources};
use crate::view::annotate::{Annotation, CodeListing};

use super::table::{columns, shorten};
use crate::format::number::{Scale, counted, percent};

/// How annotated sources are laid out.
#[derive(Clone, Debug)]
pub struct AnnotateOptions {
    /// The terminal's width in columns; longer lines are cut. `None` for pipes and files.
    pub width: Option<usize>,
    /// The number of lines without samples that are shown around each with samples.
    pub context: usize,
    /// Leave out listings whose total share is below this percentage.
    pub min_percent: f64,
    /// Whether own shares are coloured: red from 5 % on, green from 0.5 % on, as perf does.
    pub colors: bool,
}

/// Writes the listings of `annotation` with the text from `sources`; instead of source lines, those
/// of `code` if it is given.
///
/// The columns, separated by two spaces: own share in percent, own weight, total share, total
/// weight, line number or address, source or instruction. Shares are of everything that was let
/// through; those of nothing are blank.
///
/// # Errors
/// Those of `out`.
pub fn write(
    annotation: &Annotation<'_>,
    code: Option<&[CodeListing]>,
    sources: &Sources,
    options: &AnnotateOptions,
    mut out: impl Write,
) -> io::Result<()> {
    let layout = ListingColumns::new(annotation, options);
    let mut files = Files::new(sources);
    writeln!(
        out,
        "{} of {}, {} {}",
        counted(annotation.total.samples, "sample"),
        annotation.event().name,
        layout.scale.number(annotation.total),
        layout.scale.unit()
    )?;
    match code {
        Some(listings) => {
            let shown = |listing: &&CodeListing| {
                listing.instructions.is_err() || layout.matters(listing.total)
            };
            for listing in listings.iter().filter(shown) {
                code::write(listing, &layout, &mut files, &mut out)?;
            }
        }
        None => {
            let listings = annotation.listings.iter();
            for listing in listings.filter(|listing| layout.matters(listing.total)) {
                lines::write(listing, annotation, &layout, &mut files, &mut out)?;
            }
        }
    }
    Ok(())
}

/// Source files, each searched once.
struct Files<'a> {
    sources: &'a Sources,
    found: HashMap<Arc<str>, Result<SourceFile, NoSource>>,
}

impl<'a> Files<'a> {
    fn new(sources: &'a Sources) -> Self {
        Self {
            sources,
            found: HashMap::new(),
        }
    }

    fn find(&mut self, file: &Arc<str>) -> &Result<SourceFile, NoSource> {
        let find = || self.sources.find(file);
        self.found.entry(Arc::clone(file)).or_insert_with(find)
    }
}

/// Colours of terminals (ECMA-48, select graphic rendition).
const RED: &str = "\u{1b}[31m";
const GREEN: &str = "\u{1b}[32m";
const RESET: &str = "\u{1b}[m";

/// The widths of the columns, and the total of the shares.
struct ListingColumns<'a> {
    scale: Scale<'a>,
    total: Weight,
    titles: [String; 4],
    weight: usize,
    options: &'a AnnotateOptions,
}

/// The cells of a row that are about code: a line number or an address, in a column of this width,
/// and the text behind it.
#[derive(Clone, Copy)]
struct CodeCells<'t> {
    label: &'t str,
    width: usize,
    text: &'t str,
}

impl<'t> CodeCells<'t> {
    fn new(label: &'t str, width: usize, text: &'t str) -> Self {
        Self { label, width, text }
    }
}

/// The heading above the lines of a listing.
struct Heading {
    title: String,
    own: Weight,
    total: Weight,
    remark: String,
}

impl<'a> ListingColumns<'a> {
    fn new(annotation: &Annotation<'a>, options: &'a AnnotateOptions) -> Self {
        let scale = Scale::new(&annotation.event().unit, annotation.total);
        let unit = scale.unit();
        let titles = [
            "Self %".into(),
            format!("Self {unit}"),
            "Total %".into(),
            format!("Total {unit}"),
        ];
        let widest = columns(&scale.number(annotation.total));
        Self {
            weight: widest.max(columns(&titles[3])),
            scale,
            total: annotation.total,
            titles,
            options,
        }
    }

    fn matters(&self, weight: Weight) -> bool {
        weight.share_of(self.total) * 100.0 >= self.options.min_percent
    }

    /// Writes the heading above the lines of a listing: its name and weights, a remark, the header.
    fn heading(
        &self,
        out: &mut impl Write,
        heading: &Heading,
        titles: CodeCells<'_>,
    ) -> io::Result<()> {
        let weight = |weight: Weight| {
            let number = self.scale.number(weight);
            let share = percent(weight.share_of(self.total));
            format!("{number} {} ({share} %)", self.scale.unit())
        };
        let (own, total) = (weight(heading.own), weight(heading.total));
        let (name, remark) = (printable(&heading.title), printable(&heading.remark));
        writeln!(out, "\n{name}: self {own}, total {total}\n{remark}\n")?;
        let cells = self.titles.each_ref().map(String::as_str);
        self.colored(out, None, cells, titles)
    }

    /// A line with numbers.
    fn line(
        &self,
        out: &mut impl Write,
        own: Weight,
        total: Weight,
        code: CodeCells<'_>,
    ) -> io::Result<()> {
        let cells = |weight: Weight| match weight.samples {
            0 => [String::new(), String::new()],
            _ => [
                percent(weight.share_of(self.total)),
                self.scale.number(weight),
            ],
        };
        let color = match own.share_of(self.total) * 100.0 {
            share if !self.options.colors || share < 0.5 => None,
            share if share < 5.0 => Some(GREEN),
            _ => Some(RED),
        };
        let ([own_share, own], [total_share, total]) = (cells(own), cells(total));
        let cells = [&*own_share, &own, &total_share, &total];
        self.colored(out, color, cells, code)
    }

    /// A line without numbers.
    fn bare(&self, out: &mut impl Write, code: CodeCells<'_>) -> io::Result<()> {
        self.colored(out, None, [""; 4], code)
    }

    /// A row whose first cells, on own weights, have this colour.
    fn colored(
        &self,
        out: &mut impl Write,
        color: Option<&str>,
        [own_share, own, total_share, total]: [&str; 4],
        code: CodeCells<'_>,
    ) -> io::Result<()> {
        let CodeCells { label, width, text } = code;
        let weight = self.weight;
        let own = format!("{own_share:>6}  {own:>weight$}");
        let line = format!("  {total_share:>7}  {total:>weight$}  {label:>width$}  ");
        let before = columns(&own) + columns(&line);
        // Names, paths, and lines of sources.
        let text = &*printable(text);
        let text = match self.options.width {
            Some(width) => cut(text, width.saturating_sub(before).max(20)),
            None => text.to_owned(),
        };
        match color {
            Some(color) => {
                let rest = format!("{line}{text}");
                writeln!(out, "{color}{own}{RESET}{}", rest.trim_end())
            }
            None => writeln!(out, "{}", format!("{own}{line}{text}").trim_end()),
        }
    }
}

/// The beginning of a text, which says most of a line of source.
fn cut(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let mut start: String = text.chars().take(width.saturating_sub(1)).collect();
    start.push('…');
    start
}

/// A source line with spaces instead of tabs.
fn plain(line: &str) -> String {
    const TAB: usize = 4;
    let mut text = String::with_capacity(line.len());
    let mut column = 0;
    for character in line.chars() {
        let (shown, times) = match character {
            '\t' => (' ', TAB - column % TAB),
            c => (c, 1),
        };
        text.extend(std::iter::repeat_n(shown, times));
        column += times;
    }
    text
}

/// Which of `count` lines are shown: those for which `matters` is true, with `context` others
/// before and after each.
fn hunks(count: usize, context: usize, matters: impl Fn(usize) -> bool) -> Vec<bool> {
    let mut shown = vec![false; count];
    // The end of the last shown range.
    let mut end = 0;
    for index in (0..count).filter(|&index| matters(index)) {
        let start = index.saturating_sub(context).max(end);
        end = index.saturating_add(context + 1).min(count);
        shown[start.min(end)..end].fill(true);
    }
    shown
}

/// The file's name without its directories.
fn short(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}

/// A function, and the module it is in if that is known.
fn in_module(function: &str, module: &str) -> String {
    match module {
        "" => name(function),
        module => format!("{} ({module})", name(function)),
    }
}

/// A name, shortened to leave space for the rest of its line.
fn name(text: &str) -> String {
    const LONGEST: usize = 80;
    shorten(text, LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{check_golden, demo, everything};
    use crate::view::annotate::Wanted;

    #[test]
    fn golden() {
        let symbolized = demo();
        let wanted = Wanted::Named("^(compute|ns::inner|write)$");
        let annotation = Annotation::new(&symbolized, &everything(), wanted).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let source: String = (1..=40).map(|line| format!("\tline {line};\n")).collect();
        std::fs::write(directory.path().join("demo.c"), source).unwrap();
        let options = AnnotateOptions {
            width: None,
            context: 1,
            min_percent: 0.0,
            colors: false,
        };
        let text = |sources: &Sources| {
            let mut text = Vec::new();
            write(&annotation, None, sources, &options, &mut text).unwrap();
            String::from_utf8(text).unwrap()
        };
        let found = text(&Sources {
            directories: vec![directory.path().into()],
            ..Sources::default()
        });
        let found = found.replace(&*directory.path().to_string_lossy(), "DIR");
        let both = format!("{found}\n{}", text(&Sources::default()));
        check_golden("annotation.txt", both.as_bytes());
    }

    #[test]
    fn colours_show_shares_and_have_no_width() {
        let symbolized = demo();
        let annotation = Annotation::new(&symbolized, &everything(), Wanted::Named("fib")).unwrap();
        let text = |colors| {
            let options = AnnotateOptions {
                width: Some(80),
                context: 1,
                min_percent: 0.0,
                colors,
            };
            let mut text = Vec::new();
            let sources = Sources::default();
            write(&annotation, None, &sources, &options, &mut text).unwrap();
            String::from_utf8(text).unwrap()
        };
        let (plain, colored) = (text(false), text(true));
        assert!(
            colored.contains(RED) && !plain.contains('\u{1b}'),
            "{colored}"
        );
        let mut stripped = colored;
        for code in [RED, GREEN, RESET] {
            stripped = stripped.replace(code, "");
        }
        assert_eq!(stripped, plain);
    }

    #[test]
    fn lines_around_those_that_matter() {
        let check = |context, matter: &[usize], expected: &str| {
            let shown = hunks(10, context, |index| matter.contains(&index));
            let text: String = shown.iter().map(|&s| if s { 'x' } else { '.' }).collect();
            assert_eq!(text, expected, "{matter:?}");
        };
        check(1, &[], "..........");
        check(0, &[0, 9], "x........x");
        check(1, &[0, 5], "xx..xxx...");
        check(2, &[3, 4], ".xxxxxx...");
        check(usize::MAX - 1, &[3], "xxxxxxxxxx");
    }

    #[test]
    fn lines_stay_lines() {
        let check = |line, expected: &str| assert_eq!(plain(line), expected);
        check("\tif (x)\t\ty;", "    if (x)      y;");
    }
}
