//! How the recording is written.

use std::time::Duration;

use clap::{ArgGroup, Args};
use prof_recorder::When;

use super::quantity::{parse_bytes, parse_count, parse_duration, parse_within};

/// Compression, limits and rotation.
#[derive(Debug, Default, Args)]
#[command(group = ArgGroup::new("rotation").args(["switch_output", "snapshot"]))]
pub(crate) struct StorageFlags {
    /// Compress the recording with zstd: LEVEL is 1 (fast, the default) to 22 (small)
    #[arg(short = 'z', long = "compression-level", value_name = "LEVEL", num_args = 0..=1, require_equals = true, default_missing_value = "1", value_parser = |text: &str| parse_within::<i32>(text, 1..=22))]
    pub compression: Option<i32>,

    /// Stop when the recording has SIZE bytes (with K, M or G)
    #[arg(long, value_name = "SIZE", value_parser = parse_size, conflicts_with = "rotation")]
    pub max_size: Option<u64>,

    /// Continue in a new file, without a gap: on SIGUSR2 (`signal`, the default), and also after
    /// SIZE bytes (with B, K, M or G) or after TIME (with ms, s, m, h or d). Complete files are
    /// named FILE.TIMESTAMP
    #[arg(long, value_name = "signal|SIZE|TIME", num_args = 0..=1, require_equals = true, default_missing_value = "signal", value_parser = parse_rotation)]
    pub switch_output: Option<When>,

    /// With --switch-output or --snapshot: keep only the last N files
    #[arg(long, value_name = "N", requires = "rotation", value_parser = parse_count::<u32>)]
    pub switch_max_files: Option<u32>,

    /// Keep only the last TIME, or the last SIZE bytes (with K, M or G), in memory, and write it to
    /// FILE.TIMESTAMP on SIGUSR2 and at the end [default: 30s, at most 64M]
    #[arg(long, value_name = "TIME|SIZE", num_args = 0..=1, require_equals = true, default_missing_value = "30s", value_parser = parse_snapshot)]
    pub snapshot: Option<When>,
}

impl StorageFlags {
    /// When to start another file, if requested.
    pub(crate) fn when(&self) -> Option<When> {
        self.switch_output.or(self.snapshot)
    }
}

fn parse_size(text: &str) -> Result<u64, String> {
    match parse_bytes(text)? {
        0 => Err("the size must be more than zero".into()),
        bytes => Ok(bytes),
    }
}

/// As in perf, a size has an upper-case unit and a time a lower-case one: M is not m.
enum Extent {
    Size(u64),
    Time(Duration),
}

impl Extent {
    fn parse(text: &str) -> Result<Self, String> {
        match text.chars().next_back() {
            Some('A'..='Z') => parse_size(text).map(Self::Size),
            Some('a'..='z') => parse_duration(text).map(Self::Time),
            _ => Err("write a size with B, K, M or G, or a time with ms, s, m, h or d".into()),
        }
    }
}

fn parse_rotation(text: &str) -> Result<When, String> {
    if text == "signal" {
        return Ok(When::OnRequest);
    }
    let extent = Extent::parse(text).map_err(|error| format!("{error}; or write signal"))?;
    Ok(match extent {
        Extent::Size(bytes) => When::Size(bytes),
        Extent::Time(time) => When::Every(time),
    })
}

fn parse_snapshot(text: &str) -> Result<When, String> {
    const USUAL_BYTES: u64 = 64 << 20;
    Ok(match Extent::parse(text)? {
        Extent::Size(bytes) => When::Snapshot {
            time: Duration::MAX,
            bytes,
        },
        Extent::Time(time) => When::Snapshot {
            time,
            bytes: USUAL_BYTES,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_rotate_by_size_time_and_signal() {
        let seconds = |seconds| Some(When::Every(Duration::from_secs(seconds)));
        let cases = [
            ("signal", Some(When::OnRequest)),
            ("10M", Some(When::Size(10 << 20))),
            ("500B", Some(When::Size(500))),
            ("10m", seconds(600)),
            ("30s", seconds(30)),
            ("1d", seconds(86_400)),
            ("10", None),
            ("0M", None),
            ("0s", None),
            ("signals", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_rotation(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn snapshots_are_bounded() {
        let snapshot = |time, bytes| Some(When::Snapshot { time, bytes });
        let cases = [
            ("30s", snapshot(Duration::from_secs(30), 64 << 20)),
            ("2G", snapshot(Duration::MAX, 2 << 30)),
            ("signal", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_snapshot(text).ok(), expected, "{text}");
        }
    }
}
