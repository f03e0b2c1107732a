//! When to sample, and how often to run the command.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::quantity::parse_count;

/// When to sample.
#[derive(Debug, Default, Args)]
pub(crate) struct ScheduleFlags {
    /// Start to sample after MS milliseconds; -1 waits for `enable` from --control
    #[arg(short = 'D', long, value_name = "MS", allow_hyphen_values = true, value_parser = DelayFlag::parse)]
    pub delay: Option<DelayFlag>,

    /// Run the command N times, into one recording (as perf stat -r; perf record's -r is a
    /// priority)
    #[arg(short, long, value_name = "N", default_value = "1", conflicts_with_all = ["pids", "tids", "name"], value_parser = parse_count::<u32>)]
    pub repeat: u32,

    /// Read commands (enable, disable, ping, stop) from a FIFO or file descriptor, and write `ack`
    /// to a second one after each: fifo:COMMANDS[,ANSWERS] or fd:N[,M]
    #[arg(long, value_name = "WHERE", value_parser = ControlFlag::parse)]
    pub control: Option<ControlFlag>,
}

/// `--delay MS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DelayFlag {
    /// After this time.
    After(Duration),
    /// When --control enables sampling.
    UntilEnabled,
}

impl DelayFlag {
    fn parse(text: &str) -> Result<Self, String> {
        match text.parse::<i64>() {
            Ok(-1) => Ok(Self::UntilEnabled),
            Ok(milliseconds) => u64::try_from(milliseconds)
                .map(|milliseconds| Self::After(Duration::from_millis(milliseconds)))
                .map_err(|_| "the only negative delay is -1".into()),
            Err(_) => Err("write milliseconds, such as 500, or -1".into()),
        }
    }
}

/// `--control fifo:COMMANDS[,ANSWERS]|fd:N[,M]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ControlFlag {
    /// FIFOs by their paths.
    Fifos(PathBuf, Option<PathBuf>),
    /// Descriptors by their numbers.
    Descriptors(i32, Option<i32>),
}

impl ControlFlag {
    fn parse(text: &str) -> Result<Self, String> {
        let complaint = || "write fifo:COMMANDS[,ANSWERS] or fd:N[,M]".to_owned();
        let (kind, places) = text.split_once(':').ok_or_else(complaint)?;
        let (commands, answers) = match places.split_once(',') {
            Some((commands, answers)) => (commands, Some(answers)),
            None => (places, None),
        };
        if commands.is_empty() || answers == Some("") {
            return Err(complaint());
        }
        let number = |text: &str| match text.parse() {
            Ok(number @ 0..) => Ok(number),
            _ => Err(format!("'{text}' is not the number of a descriptor")),
        };
        match kind {
            "fifo" => Ok(Self::Fifos(commands.into(), answers.map(PathBuf::from))),
            "fd" => Ok(Self::Descriptors(
                number(commands)?,
                answers.map(number).transpose()?,
            )),
            _ => Err(complaint()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays() {
        let after = |ms| Some(DelayFlag::After(Duration::from_millis(ms)));
        let cases = [
            ("0", after(0)),
            ("250", after(250)),
            ("-1", Some(DelayFlag::UntilEnabled)),
            ("-2", None),
            ("1.5", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(DelayFlag::parse(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn controls() {
        let fifos =
            |a: &str, b: Option<&str>| Some(ControlFlag::Fifos(a.into(), b.map(PathBuf::from)));
        let cases = [
            ("fifo:a", fifos("a", None)),
            ("fifo:a,b", fifos("a", Some("b"))),
            ("fd:3", Some(ControlFlag::Descriptors(3, None))),
            ("fd:3,4", Some(ControlFlag::Descriptors(3, Some(4)))),
            ("fd:-3", None),
            ("fd:3,", None),
            ("fifo:", None),
            ("pipe:3", None),
            ("3", None),
        ];
        for (text, expected) in cases {
            assert_eq!(ControlFlag::parse(text).ok(), expected, "{text}");
        }
    }
}
