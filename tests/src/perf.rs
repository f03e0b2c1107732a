//! perf's view of recordings.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::session::Outcome;

/// A sample as `perf script` prints it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PerfSample {
    /// The thread.
    pub tid: u64,
    /// When, in nanoseconds.
    pub time: u64,
    /// Its weight, in nanoseconds for the clocks.
    pub period: u64,
    /// The names of the functions, innermost first; `[unknown]` where perf knows none.
    pub frames: Vec<String>,
}

/// `perf record OPTIONS -o FILE -- COMMAND`, which must go well.
///
/// If another program samples all CPUs and requests build ids, as prof does, the kernel delivers
/// them to everybody, and perf 6.1 aborts unless it has requested them, too.
///
/// # Panics
/// If it does not.
pub fn perf_record(options: &[&str], file: &Path, command: &[&Path]) {
    let mut perf = Command::new("perf");
    perf.args(["record", "--quiet", "--buildid-mmap", "-e", "cpu-clock:u"]);
    perf.args(options)
        .arg("-o")
        .arg(file)
        .arg("--")
        .args(command);
    Outcome::of(perf).assert_code(0);
}

/// All samples of a recording as perf reads them, without inlined functions.
///
/// # Panics
/// If perf refuses the file.
pub fn perf_script(file: &Path) -> Vec<PerfSample> {
    let mut perf = Command::new("perf");
    perf.args(["script", "--no-inline", "--max-stack", "30000", "--ns"]);
    perf.args(["-F", "tid,time,period,ip,sym", "-i"]).arg(file);
    // perf keeps copies of files by build id below its home.
    perf.env("HOME", empty_home());
    let outcome = Outcome::of(perf);
    outcome.assert_code(0);
    parse(&outcome.stdout)
}

fn empty_home() -> PathBuf {
    PathBuf::from("/nonexistent")
}

/// A line `tid seconds.nanoseconds: period`, then a line `address function` for each frame, then an
/// empty one.
fn parse(text: &str) -> Vec<PerfSample> {
    let mut samples = Vec::new();
    for block in text.split("\n\n").filter(|block| !block.trim().is_empty()) {
        let mut lines = block.lines().filter(|line| !line.trim().is_empty());
        let mut head = lines.next().unwrap_or_default().split_whitespace();
        let tid = head
            .next()
            .and_then(|tid| tid.parse().ok())
            .unwrap_or_else(|| panic!("{block:?}"));
        let time = head
            .next()
            .unwrap_or_default()
            .trim_end_matches(':')
            .replace('.', "");
        let period = head.next().and_then(|period| period.parse().ok());
        let frames = lines.map(|line| {
            let (_, name) = line
                .trim()
                .split_once(' ')
                .unwrap_or_else(|| panic!("{block:?}"));
            name.trim().to_owned()
        });
        samples.push(PerfSample {
            tid,
            time: time.parse().unwrap_or_else(|_| panic!("{block:?}")),
            period: period.unwrap_or_else(|| panic!("{block:?}")),
            frames: frames.collect(),
        });
    }
    samples
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_read() {
        let text = "  12   3.000000004:     77 \n\t    7f main\n\t    80 f(int, char)\n\n  13  4.5:  1 \n\t 1 [unknown]\n\n";
        let sample = |tid, time, period, frames: &[&str]| PerfSample {
            tid,
            time,
            period,
            frames: frames.iter().map(|&frame| frame.to_owned()).collect(),
        };
        let expected = [
            sample(12, 3_000_000_004, 77, &["main", "f(int, char)"]),
            sample(13, 45, 1, &["[unknown]"]),
        ];
        assert_eq!(parse(text), expected);
    }
}
