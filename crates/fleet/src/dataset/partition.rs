//! Where files are: Hive's partitions, `date=2026-11-24/service=web/host=a`.

use std::time::{Duration, UNIX_EPOCH};

use sha2::{Digest, Sha256};

use crate::table::Table;

/// How the name begins of a file with the rows of several runs. The row of a run that was just
/// pushed is in a file with the run's name.
const MERGED: &str = "merged-";

/// A day of a service on a machine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Partition {
    /// `2026-11-24`, in UTC.
    pub(crate) date: String,
    /// The service.
    pub(crate) service: String,
    /// The machine; empty for stacks, which are the same on all.
    pub(crate) host: String,
}

impl Partition {
    /// The path of a file of it, without its ending.
    pub(crate) fn file(&self, table: Table, name: &str) -> String {
        format!("{}{name}.parquet", self.folder(table))
    }

    /// The path of a file that has the rows of several.
    pub(crate) fn merged_file(&self, table: Table, bytes: &[u8]) -> String {
        let name = content_name(bytes);
        match table {
            Table::Runs => self.file(table, &format!("{MERGED}{name}")),
            _ => self.file(table, &name),
        }
    }

    /// The folder of its files.
    pub(crate) fn folder(&self, table: Table) -> String {
        let service = escaped(&self.service);
        let host = match table {
            Table::Stacks => String::new(),
            _ => format!("host={}/", escaped(&self.host)),
        };
        let (table, date) = (table.name(), &self.date);
        format!("{table}/date={date}/service={service}/{host}")
    }

    /// The partition of a file; `None` if it is none of a table's. A partition is one folder:
    /// another way to write its names is none.
    pub(crate) fn of(path: &str) -> Option<Self> {
        let mut partition = Self {
            date: String::new(),
            service: String::new(),
            host: String::new(),
        };
        let (folders, name) = path.rsplit_once('/')?;
        if !name.ends_with(".parquet") {
            return None;
        }
        let mut folders = folders.split('/');
        let table = folders.next()?;
        for folder in folders {
            let (key, value) = folder.split_once('=')?;
            let value = unescaped(value);
            match key {
                "date" => partition.date = value,
                "service" => partition.service = value,
                "host" => partition.host = value,
                _ => return None,
            }
        }
        let tables = [Table::Runs, Table::Samples, Table::Stacks];
        let table = tables.into_iter().find(|it| it.name() == table)?;
        let is_own = path.strip_suffix(name) == Some(&*partition.folder(table));
        (is_own && !partition.date.is_empty()).then_some(partition)
    }
}

/// The run that a file of runs is of, as text; `None` if it is of several.
pub(crate) fn run_of(path: &str) -> Option<&str> {
    let (_, name) = path.rsplit_once('/')?;
    let name = name.strip_suffix(".parquet")?;
    (!name.starts_with(MERGED)).then_some(name)
}

/// A file's name by what is in it.
pub(crate) fn content_name(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    let hash = hash.iter().take(16);
    hash.map(|byte| format!("{byte:02x}")).collect()
}

/// The folder that holds a table.
pub(crate) fn table_prefix(table: Table) -> String {
    format!("{}/", table.name())
}

/// The last time of a year of four digits, in µs since 1970.
const LAST_TIME: u64 = 253_402_300_799_999_999;

/// The day of a time in µs since 1970: the first or the last that has a name if it is beyond.
pub(crate) fn date_of(micros: i64) -> String {
    let micros = u64::try_from(micros).unwrap_or(0).min(LAST_TIME);
    let time = UNIX_EPOCH + Duration::from_micros(micros);
    let mut text = humantime::format_rfc3339_seconds(time).to_string();
    text.truncate("2026-11-24".len());
    text
}

/// Names may hold anything; Hive writes what folders must not hold as `%2F`.
fn escaped(name: &str) -> String {
    let mut escaped = String::new();
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
                escaped.push(char::from(byte));
            }
            _ => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

fn unescaped(name: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = name.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| first == b'%');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_their_partition() {
        let check = |service: &str, host: &str, expected: &str| {
            let partition = Partition {
                date: "2026-11-24".into(),
                service: service.into(),
                host: host.into(),
            };
            let path = partition.file(Table::Samples, "x");
            assert_eq!(path, expected);
            assert_eq!(Partition::of(&path), Some(partition));
        };
        check(
            "web",
            "a-1.b",
            "samples/date=2026-11-24/service=web/host=a-1.b/x.parquet",
        );
        check(
            "a/b =%",
            "ü",
            "samples/date=2026-11-24/service=a%2Fb%20%3D%25/host=%C3%BC/x.parquet",
        );
        for other in [
            "samples/x.parquet",
            "samples/date=1/x.parquet#1",
            "samples/date=1/y/x.parquet",
            "samples/date=1/service=a/x.parquet",
            "stacks/date=1/service=a/host=b/x.parquet",
            "samples/date=1/service=a/host=b/host=c/x.parquet",
            "samples/date=1/service=%61/host=b/x.parquet",
            "other/date=1/service=a/host=b/x.parquet",
        ] {
            assert_eq!(Partition::of(other), None, "{other}");
        }
    }

    #[test]
    fn days_are_those_of_utc() {
        assert_eq!(date_of(1_795_478_399_999_999), "2026-11-23");
        assert_eq!(date_of(1_795_478_400_000_000), "2026-11-24");
        assert_eq!(date_of(-1), "1970-01-01");
        assert_eq!(date_of(253_402_300_800_000_000), "9999-12-31");
        assert_eq!(date_of(i64::MAX), "9999-12-31");
    }
}
