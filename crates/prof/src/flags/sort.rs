//! The keys of `--sort`: the rows of a table and their order.

use std::str::FromStr;

use clap::ValueEnum;
use prof_report::Split;
use prof_report::view::groups::CodeGroups;

/// The keys of `--sort`: at most one that splits, and the kind of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sort {
    pub(crate) by: Option<ByFlag>,
    pub(crate) rows: Rows,
    /// Whether rows are sorted by total.
    pub(crate) by_total: bool,
}

/// What a row of a table represents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Rows {
    #[default]
    Functions,
    Code(CodeGroups),
    /// A group of `by`.
    Parts(&'static str),
}

impl FromStr for Sort {
    type Err = String;

    fn from_str(keys: &str) -> Result<Self, String> {
        let mut by = None;
        let mut code = None;
        let mut by_total = false;
        for key in keys.split(',') {
            let split = match key {
                "comm" => (ByFlag::Comm, "Command"),
                "pid" => (ByFlag::Process, "Process"),
                "tid" => (ByFlag::Thread, "Thread"),
                "cpu" => (ByFlag::Cpu, "CPU"),
                "dso" | "module" => {
                    code.get_or_insert(Rows::Code(CodeGroups::Modules));
                    continue;
                }
                "language" => {
                    code.get_or_insert(Rows::Code(CodeGroups::Languages));
                    continue;
                }
                "total" | "children" | "overhead_children" => {
                    by_total = true;
                    continue;
                }
                "self" | "overhead" => continue,
                // A function's row names its module.
                "sym" | "symbol" | "function" => {
                    code = Some(Rows::Functions);
                    continue;
                }
                _ => {
                    return Err(format!(
                        "there is no key `{key}`; the keys are comm, pid, tid, cpu, dso, language, sym, self and total"
                    ));
                }
            };
            if by.replace(split).is_some() {
                return Err("only one of comm, pid, tid and cpu".to_owned());
            }
        }
        let parts = by.map_or(Rows::Functions, |(_, title)| Rows::Parts(title));
        Ok(Self {
            by: by.map(|(by, _)| by),
            rows: code.unwrap_or(parts),
            by_total,
        })
    }
}

/// `--by`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ByFlag {
    /// Thread names
    Comm,
    /// Threads
    Thread,
    /// Processes
    Process,
    /// CPUs
    Cpu,
}

impl From<ByFlag> for Split {
    fn from(flag: ByFlag) -> Self {
        match flag {
            ByFlag::Comm => Self::Name,
            ByFlag::Thread => Self::Thread,
            ByFlag::Process => Self::Process,
            ByFlag::Cpu => Self::Cpu,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(keys: &str, by: Option<ByFlag>, rows: Rows) {
        let by_total = keys.contains("total");
        let expected = Sort { by, rows, by_total };
        assert_eq!(keys.parse(), Ok(expected), "{keys}");
    }

    #[test]
    fn keys_of_perf() {
        check("sym", None, Rows::Functions);
        let modules = Rows::Code(CodeGroups::Modules);
        check("dso", None, modules);
        check("language", None, Rows::Code(CodeGroups::Languages));
        check("dso,sym", None, Rows::Functions);
        check("symbol,dso", None, Rows::Functions);
        check("comm,dso,sym", Some(ByFlag::Comm), Rows::Functions);
        check("pid,module", Some(ByFlag::Process), modules);
        check("total", None, Rows::Functions);
        check("overhead,comm,sym", Some(ByFlag::Comm), Rows::Functions);
        check("total,dso", None, modules);
        check("cpu", Some(ByFlag::Cpu), Rows::Parts("CPU"));
    }

    #[test]
    fn wrong_keys_are_reported() {
        let check = |keys: &str, expected: &str| {
            let error = keys.parse::<Sort>().unwrap_err();
            assert!(error.contains(expected), "{error}");
        };
        check("comm,foo", "no key `foo`; the keys are comm,");
        check("", "no key ``");
        check("comm,pid", "only one of");
    }
}
