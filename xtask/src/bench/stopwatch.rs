//! The usage of a command with all its descendants.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::{process, workspace};

/// Time and memory that a command took, with all the processes that it waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Usage {
    pub(crate) wall: Duration,
    /// User and system time.
    pub(crate) cpu: Duration,
    /// The peak memory of the largest process, in bytes.
    pub(crate) peak_memory: u64,
    /// Context switches of all threads, forced or not.
    pub(super) switches: u64,
    /// Peak memory of the command's own process, in bytes, up to half a second before its end.
    pub(super) own_memory: u64,
}

impl Usage {
    /// Adds the usage of another command that ran afterwards.
    pub(crate) fn add(&mut self, other: &Self) {
        self.wall += other.wall;
        self.cpu += other.cpu;
        self.peak_memory = self.peak_memory.max(other.peak_memory);
        self.switches += other.switches;
        self.own_memory = self.own_memory.max(other.own_memory);
    }
}

/// A small program that runs others and measures them. It works below a profiler too, and then
/// measures only the target.
#[derive(Clone)]
pub(crate) struct Stopwatch {
    program: PathBuf,
}

impl Stopwatch {
    pub(crate) fn build(directory: &Path) -> Result<Self> {
        let program = directory.join("stopwatch");
        let source = workspace::root().join("xtask/bench/stopwatch.c");
        let mut compile = Command::new("gcc");
        process::run(compile.args(["-O2", "-o"]).arg(&program).arg(source))?;
        Ok(Self { program })
    }

    /// The words that go before a command so that it is measured into `file`.
    pub(super) fn before(&self, file: &Path) -> [PathBuf; 2] {
        [self.program.clone(), file.to_owned()]
    }

    /// Runs a command in `directory`; returns its usage and its standard error output.
    pub(crate) fn measure<W: AsRef<OsStr>>(
        &self,
        directory: &Path,
        words: impl IntoIterator<Item = W>,
    ) -> Result<(Usage, String)> {
        let file = directory.join("outer.usage");
        let mut command = Command::new(&self.program);
        command.arg(&file).args(words).current_dir(directory);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let output = command.output().context("cannot start the stopwatch")?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(
            output.status.success(),
            "{}: {}\n{said}",
            process::line(&command),
            output.status
        );
        Ok((read(&file)?, said))
    }
}

/// Reads the output of a stopwatch.
pub(super) fn read(file: &Path) -> Result<Usage> {
    let text =
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    parse(&text).with_context(|| format!("no measurement in {}: {text:?}", file.display()))
}

fn parse(text: &str) -> Option<Usage> {
    let mut numbers = text.split_whitespace().map(str::parse::<u64>);
    let mut next = || numbers.next()?.ok();
    Some(Usage {
        wall: Duration::from_nanos(next()?),
        cpu: Duration::from_micros(next()?),
        peak_memory: next()? * 1024,
        switches: next()?,
        own_memory: next()? * 1024,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measurements_are_read() {
        let usage = Usage {
            wall: Duration::from_millis(2),
            cpu: Duration::from_millis(1),
            peak_memory: 4096,
            switches: 7,
            own_memory: 2048,
        };
        assert_eq!(parse("2000000 1000 4 7 2\n"), Some(usage));
        assert_eq!(parse("2000000 1000\n"), None);
    }
}
