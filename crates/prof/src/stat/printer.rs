//! Where and how results are written.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use prof_filemap::output::Output;

use super::prefix::Prefix;
use super::report::Report;
use super::{csv, json, text};
use crate::flags::StatFlags;

/// Writes results in the requested format.
pub(super) struct Printer {
    format: Format,
    out: Box<dyn Write>,
    place: Option<PathBuf>,
    /// The target, for the title.
    subject: String,
    lines: usize,
}

enum Format {
    Text,
    Csv(String),
    Json,
}

impl Printer {
    pub(super) fn new(flags: &StatFlags) -> Result<Self> {
        let out: Box<dyn Write> = match &flags.output {
            None => Box::new(
                prof_events::stderr().context("cannot write to the standard error output")?,
            ),
            Some(path) => {
                let file =
                    create(path).with_context(|| format!("cannot write {}", path.display()))?;
                Box::new(io::BufWriter::new(file))
            }
        };
        let format = match (&flags.separator, flags.json) {
            (Some(separator), _) => Format::Csv(separator.clone()),
            (None, true) => Format::Json,
            (None, false) => Format::Text,
        };
        Ok(Self {
            format,
            out,
            place: flags.output.clone(),
            subject: flags.subject(),
            lines: 0,
        })
    }

    /// Prints one interval, or one of its several places.
    pub(super) fn interval(&mut self, report: &Report, prefix: &Prefix) -> Result<()> {
        /// The header is repeated after about a screen of lines.
        const HEADER_EVERY: usize = 25;
        if matches!(self.format, Format::Text) && self.lines.is_multiple_of(HEADER_EVERY) {
            let header = text::interval_header(prefix);
            self.write(header)?;
        }
        self.lines += 1;
        let lines = self.lines_of(report, prefix);
        self.write(lines)
    }

    /// Prints the results at the end, with title and times.
    pub(super) fn summary(&mut self, report: &Report, places: &[(Prefix, Report)]) -> Result<()> {
        let mut written = String::new();
        if matches!(self.format, Format::Text) {
            written += &text::title(&self.subject, report.runs);
        }
        match places {
            [] => written += &self.lines_of(report, &Prefix::default()),
            places => {
                for (prefix, report) in places {
                    written += &self.lines_of(report, prefix);
                }
            }
        }
        match self.format {
            Format::Text => written += &text::times(report),
            Format::Json => written += &json::times(report),
            Format::Csv(_) => {}
        }
        self.write(written)
    }

    fn lines_of(&self, report: &Report, prefix: &Prefix) -> String {
        match &self.format {
            Format::Text => text::lines(report, prefix),
            Format::Csv(separator) => csv::lines(report, prefix, separator),
            Format::Json => json::lines(report, prefix),
        }
    }

    fn write(&mut self, text: String) -> Result<()> {
        let written = self
            .out
            .write_all(text.as_bytes())
            .and_then(|()| self.out.flush());
        written.with_context(|| match &self.place {
            Some(path) => format!("cannot write {}", path.display()),
            None => "cannot write to the standard error output".to_owned(),
        })
    }
}

/// Creates the file under its name at once, because intervals are read while they are written.
fn create(path: &Path) -> io::Result<File> {
    match Output::create(path)? {
        Output::Direct(file) => Ok(file),
        Output::New(new) => new.finish(),
    }
}

impl StatFlags {
    /// The target, as the title names it.
    fn subject(&self) -> String {
        let list = |numbers: &[i32]| {
            numbers
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(",")
        };
        match (&self.cgroup, &self.pids[..], &self.tids[..]) {
            (Some(cgroup), ..) => format!("cgroup '{cgroup}'"),
            (_, pids @ [_, ..], _) => format!("process id '{}'", list(pids)),
            (_, _, tids @ [_, ..]) => format!("thread id '{}'", list(tids)),
            _ if self.all_cpus => "system wide".to_owned(),
            _ => {
                let words: Vec<_> = self
                    .command
                    .iter()
                    .map(|word| word.to_string_lossy())
                    .collect();
                format!("'{}'", words.join(" "))
            }
        }
    }
}
