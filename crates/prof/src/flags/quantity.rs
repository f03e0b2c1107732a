//! Parses numbers, with and without units.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

/// A size in bytes: `65528`, `64K`, `2M`, `1G` (powers of 1024, an ending `B` or `iB` is allowed).
pub(super) fn parse_bytes(text: &str) -> Result<u64, String> {
    let complaint = || format!("'{text}' is not a size: write bytes, or a number with K, M or G");
    let split = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let number: u64 = number.parse().map_err(|_| complaint())?;
    let shift = match unit.to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KB" | "KIB" => 10,
        "M" | "MB" | "MIB" => 20,
        "G" | "GB" | "GIB" => 30,
        _ => return Err(complaint()),
    };
    number
        .checked_mul(1 << shift)
        .ok_or_else(|| format!("'{text}' is too large"))
}

/// A count of at least one.
pub(super) fn parse_count<T: TryFrom<u64>>(text: &str) -> Result<T, String> {
    positive(text).ok_or_else(|| "write a number from 1 on, such as 10".into())
}

fn positive<T: TryFrom<u64>>(text: &str) -> Option<T> {
    let number = text.parse().ok().filter(|&number: &u64| number > 0);
    T::try_from(number?).ok()
}

/// A number of milliseconds, more than zero.
pub(super) fn parse_milliseconds(text: &str) -> Result<u64, String> {
    positive(text).ok_or_else(|| "write milliseconds, such as 1000".into())
}

/// The number of a process that may be recorded.
pub(super) fn parse_pid(text: &str) -> Result<i32, String> {
    positive(text).ok_or_else(|| "write the number of a process, such as 1234".into())
}

/// The number of a thread that may be recorded.
pub(super) fn parse_tid(text: &str) -> Result<i32, String> {
    positive(text).ok_or_else(|| "write the number of a thread, such as 1234".into())
}

/// The number of a process or thread in a recording: the idle threads have 0.
pub(super) fn parse_recorded(text: &str) -> Result<i32, String> {
    let number = text.parse().ok().filter(|&number: &i32| number >= 0);
    number.ok_or_else(|| "write a number, such as 1234".into())
}

/// A number between two others.
pub(super) fn parse_within<T>(text: &str, range: RangeInclusive<T>) -> Result<T, String>
where
    T: FromStr + PartialOrd + Display,
{
    let number = text.parse().ok().filter(|number| range.contains(number));
    let (least, most) = range.into_inner();
    number.ok_or_else(|| format!("write a number from {least} to {most}"))
}

/// perf's `-c`: a period, which the kernel stores in 63 bits. cargo-flamegraph's `-c` is a command
/// of perf.
pub(super) fn parse_period(text: &str) -> Result<u64, String> {
    match text.parse::<i64>() {
        Ok(period) if period > 0 => Ok(period.unsigned_abs()),
        Err(_) if text.contains(char::is_whitespace) => Err(
            "write a number of events (prof needs no perf command: -F, -e and --call-graph are \
             flags of its own)"
                .into(),
        ),
        _ => Err(format!(
            "write a number of events, such as 100000 (at most {})",
            i64::MAX
        )),
    }
}

/// A number of rows or lines, which may be zero.
pub(super) fn parse_rows(text: &str) -> Result<usize, String> {
    text.parse()
        .map_err(|_| "write a number from 0 on, such as 10".into())
}

/// A share of the total in percent.
pub(super) fn parse_percent(text: &str) -> Result<f64, String> {
    let percent = parse_points(text).ok().filter(|&percent| percent <= 100.0);
    percent.ok_or_else(|| "write a number from 0 to 100, such as 0.5".into())
}

/// A change in percentage points, which is more than 100 where totals are compared.
pub(super) fn parse_points(text: &str) -> Result<f64, String> {
    let points = text.parse().ok();
    let points = points.filter(|points: &f64| points.is_finite() && *points >= 0.0);
    points.ok_or_else(|| "write a number of percentage points, such as 0.5".into())
}

/// A list of CPUs: `0,2-3`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CpuList(pub Vec<u32>);

impl CpuList {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let cpus = prof_events::system::parse_list(text);
        cpus.map(Self)
            .ok_or_else(|| "write numbers of CPUs, such as 0 or 0,2-3".into())
    }
}

/// A duration, more than zero: the same syntax as [`parse_moment`].
pub(super) fn parse_duration(text: &str) -> Result<Duration, String> {
    match parse_moment(text)? {
        Duration::ZERO => Err("the time must be more than zero".into()),
        duration => Ok(duration),
    }
}

/// A time since the start: `10` or `1.5` seconds, `250ms`, `10s`, `2m`, `1h`, `1d`.
pub(super) fn parse_moment(text: &str) -> Result<Duration, String> {
    let complaint =
        || format!("'{text}' is not a time: write seconds, or a number with ms, s, m, h or d");
    let split = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let number: f64 = number.parse().map_err(|_| complaint())?;
    let seconds = match unit {
        "ms" => number / 1000.0,
        "" | "s" => number,
        "m" => number * 60.0,
        "h" => number * 3600.0,
        "d" => number * 86_400.0,
        _ => return Err(complaint()),
    };
    Duration::try_from_secs_f64(seconds).map_err(|_| format!("'{text}' is too long"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let cases = [
            ("0", Some(0)),
            ("65528", Some(65528)),
            ("64k", Some(65536)),
            ("2MiB", Some(2 << 20)),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_bytes(text).ok(), expected, "{text}");
        }
        for bad in ["", "K", "-1", "1.5M", "1T", "99999999999G", "1 M"] {
            assert!(parse_bytes(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn durations() {
        let milliseconds = |text| parse_duration(text).ok().map(|d| d.as_millis());
        assert_eq!(
            ["1", "0.5", "250ms", "2m", "1h"].map(milliseconds),
            [1000, 500, 250, 120_000, 3_600_000].map(Some)
        );
        for bad in [
            "",
            "0",
            "s",
            "-1",
            "1.2.3",
            "5 s",
            "1y",
            "9e99",
            "99999999999999999999999h",
        ] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
    }
}
