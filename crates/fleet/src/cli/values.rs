//! Values of flags: times, labels, parts of a data set.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Result, ensure};

use crate::query::Selection;
use crate::run::Labels;

/// Parses `NAME=VALUE`.
pub(super) fn label(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = parts.ok_or("write NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// The labels of all `--label`.
///
/// # Errors
/// A name is given twice.
pub(super) fn labels(stated: &[(String, String)]) -> Result<Labels> {
    let mut labels = Labels::new();
    for (name, value) in stated {
        let known = labels.insert(name.clone(), value.clone());
        ensure!(known.is_none(), "--label {name} is given twice");
    }
    Ok(labels)
}

/// Parses the name of a service or of a machine, which is a folder of a data set.
pub(super) fn name(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("write a name, such as web".to_owned()),
        _ => Ok(text.to_owned()),
    }
}

/// Parses the number of a process.
pub(super) fn pid(text: &str) -> Result<i32, String> {
    let number = text.parse().ok().filter(|&pid| pid > 0);
    number.ok_or_else(|| "write the number of a process, such as 1234".to_owned())
}

/// Parses a number of rows.
pub(super) fn rows(text: &str) -> Result<usize, String> {
    text.parse()
        .map_err(|_| "write a number from 0 on, such as 20".to_owned())
}

/// Parses samples per second, few enough for a recording without an end.
pub(super) fn hertz(text: &str) -> Result<u64, String> {
    let hertz = text.parse().ok().filter(|hertz| (1..=999).contains(hertz));
    hertz.ok_or_else(|| "write samples per second, from 1 to 999, such as 19".to_owned())
}

/// Parses the size of a spool in MiB.
pub(super) fn mebibytes(text: &str) -> Result<u64, String> {
    let size = text.parse().ok();
    let size = size.filter(|size| (1..1 << 30).contains(size));
    size.ok_or_else(|| "write a number of MiB, such as 256".to_owned())
}

/// Parses a length of time.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|_| "write a time such as 30s, 5m or 1h".to_owned())
}

/// Parses how often something is done.
pub(super) fn period(text: &str) -> Result<Duration, String> {
    let period = duration(text)?;
    match period.is_zero() {
        true => Err("write a time over zero, such as 30s, 5m or 1h".to_owned()),
        false => Ok(period),
    }
}

/// Parses a time of day or a date, or how long ago it was, to µs since 1970.
pub(super) fn time(text: &str) -> Result<i64, String> {
    let midnight = format!("{text}T00:00:00Z");
    let time = humantime::parse_rfc3339_weak(text)
        .or_else(|_| humantime::parse_rfc3339(&midnight))
        .ok()
        .or_else(|| {
            let ago: Duration = humantime::parse_duration(text).ok()?;
            SystemTime::now().checked_sub(ago)
        });
    let since = time.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let micros = since.and_then(|since| i64::try_from(since.as_micros()).ok());
    micros.ok_or_else(|| "write 2026-11-24T13:00:00Z, 2026-11-24 or 6h".to_owned())
}

/// Two parts of a data set.
#[derive(Clone, Debug)]
pub(super) struct Sides {
    pub(super) before: Side,
    pub(super) after: Side,
}

/// A part of a data set.
#[derive(Clone, Debug)]
pub(super) struct Side {
    /// The name as typed.
    pub(super) name: String,
    part: Part,
}

#[derive(Clone, Debug)]
enum Part {
    Times(i64, i64),
    Host(String),
    Service(String),
    Label(String, String),
}

impl Sides {
    /// Parses `A,B`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (before, after) = text.split_once(',').ok_or("write two parts: A,B")?;
        Ok(Self {
            before: Side::parse(before)?,
            after: Side::parse(after)?,
        })
    }
}

impl Side {
    fn parse(text: &str) -> Result<Self, String> {
        let part = if let Some((since, until)) = text.split_once("..") {
            Part::Times(time(since)?, time(until)?)
        } else {
            match label(text).map_err(|_| "write each part as SINCE..UNTIL or NAME=VALUE")? {
                (name, host) if name == "host" => Part::Host(host),
                (name, service) if name == "service" => Part::Service(service),
                (name, value) => Part::Label(name, value),
            }
        };
        Ok(Self {
            name: text.to_owned(),
            part,
        })
    }

    /// Restricts a selection to this part.
    pub(super) fn of(&self, mut selection: Selection) -> Selection {
        match &self.part {
            Part::Times(since, until) => {
                (selection.since, selection.until) = (Some(*since), Some(*until));
            }
            Part::Host(host) => selection.hosts = vec![host.clone()],
            Part::Service(service) => selection.services = vec![service.clone()],
            Part::Label(name, value) => {
                selection.labels.insert(name.clone(), value.clone());
            }
        }
        selection
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_dates_or_moments_or_ages() {
        assert_eq!(time("2026-11-24"), Ok(1_795_478_400_000_000));
        assert_eq!(time("2026-11-24T00:00:01Z"), Ok(1_795_478_401_000_000));
        assert!(time("1h").unwrap() > time("2h").unwrap());
        assert!(time("yesterday").is_err());
    }

    #[test]
    fn a_label_has_one_value() {
        let of = |stated: &[&str]| {
            let stated = stated.iter().map(|text| label(text).unwrap());
            labels(&stated.collect::<Vec<_>>())
        };
        assert_eq!(of(&["zone=a", "rack=a"]).unwrap().len(), 2);
        let twice = of(&["zone=a", "zone=b"]).unwrap_err();
        assert_eq!(twice.to_string(), "--label zone is given twice");
    }

    #[test]
    fn periods_are_not_zero() {
        assert_eq!(period("1m"), Ok(Duration::from_secs(60)));
        assert!(period("0s").is_err() && period("often").is_err());
    }

    #[test]
    fn names_are_not_empty() {
        assert_eq!(name("a b"), Ok("a b".to_owned()));
        assert!(name("").is_err() && name(" ").is_err());
    }

    #[test]
    fn parts_narrow_a_selection() {
        let sides = Sides::parse("version=1,host=b").unwrap();
        let of = |side: &Side| side.of(Selection::default());
        assert_eq!(of(&sides.before).labels["version"], "1");
        assert_eq!(of(&sides.after).hosts, ["b"]);
        let sides = Sides::parse("2026-11-23..2026-11-24,2026-11-24..2026-11-25").unwrap();
        assert_eq!(of(&sides.before).until, of(&sides.after).since);
        assert!(Sides::parse("host=a").is_err());
    }
}
