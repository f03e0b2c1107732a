//! Queries prof and other engines for the folded stacks of a whole data set.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::Paths;
use crate::bench::Usage;
use crate::workspace;

/// A weight for each function.
pub(super) type Sums = BTreeMap<String, u64>;

/// An engine to query.
pub(super) struct Engine {
    pub(super) name: &'static str,
    /// The module of Python that it is; prof itself if `None`.
    module: Option<&'static str>,
    /// How xtask/fleet/engine.py calls it.
    key: &'static str,
}

/// The result of an engine.
pub(super) struct Answer {
    pub(super) engine: &'static str,
    pub(super) usage: Usage,
    pub(super) stacks: usize,
    /// Whether the own weight of each function is that of `prof report`.
    pub(super) own_equal: bool,
    /// Whether the total weight of each function equals that in the first answer.
    pub(super) total_equal: bool,
}

impl Engine {
    pub(super) const ALL: [Self; 5] = [
        Self::new("prof query", None, ""),
        Self::new("DuckDB", Some("duckdb"), "duckdb"),
        Self::new("Polars", Some("polars"), "polars"),
        Self::new("chdb (ClickHouse)", Some("chdb"), "chdb"),
        Self::new("Spark, two workers", Some("pyspark"), "spark"),
    ];

    const fn new(name: &'static str, module: Option<&'static str>, key: &'static str) -> Self {
        Self { name, module, key }
    }

    /// Says so if it is not.
    pub(super) fn is_there(&self, python: &Path) -> bool {
        let Some(module) = self.module else {
            return true;
        };
        let mut import = Command::new(python);
        import.args(["-c", &format!("import {module}")]);
        let there = import.stderr(Stdio::null()).status();
        let there = there.is_ok_and(|status| status.success());
        if !there {
            println!("{} has no {module}", python.display());
        }
        there
    }

    /// Runs its query, and compares the result. Returns the total weights of functions.
    pub(super) fn ask(
        &self,
        paths: &Paths,
        data: &Path,
        expected: &Sums,
        first: Option<&Sums>,
    ) -> Result<(Answer, Sums)> {
        let output = paths.folder.join("folded");
        let redirected = "out=\"$0\"; exec \"$@\" >\"$out\"".as_ref();
        let mut words = vec!["sh".as_ref(), "-c".as_ref(), redirected, output.as_os_str()];
        let program = workspace::root().join("xtask/fleet/engine.py");
        match self.module {
            None => words.extend([
                paths.fleet.as_os_str(),
                "query".as_ref(),
                "--folded".as_ref(),
                "-".as_ref(),
                data.as_os_str(),
            ]),
            Some(_) => words.extend([
                paths.python.as_os_str(),
                program.as_os_str(),
                self.key.as_ref(),
                data.as_os_str(),
            ]),
        }
        let (usage, _) = paths.stopwatch.measure(&paths.folder, words)?;
        let (stacks, own, total) = sums(&output)?;
        fs::remove_file(&output)?;
        let answer = Answer {
            engine: self.name,
            usage,
            stacks,
            own_equal: own == *expected,
            total_equal: first.is_none_or(|first| total == *first),
        };
        Ok((answer, total))
    }
}

/// Adds `more` to `sums`.
pub(super) fn add(sums: &mut Sums, more: &Sums) {
    for (name, weight) in more {
        match sums.get_mut(name) {
            Some(sum) => *sum += weight,
            None => _ = sums.insert(name.clone(), *weight),
        }
    }
}

/// The number of lines of folded stacks, and the self and total weights of functions in them.
fn sums(folded: &Path) -> Result<(usize, Sums, Sums)> {
    let (mut stacks, mut own, mut total) = (0, Sums::new(), Sums::new());
    for line in BufReader::new(File::open(folded)?).lines() {
        let line = line?;
        let (stack, weight) = line
            .rsplit_once(' ')
            .context("no weight in a folded stack")?;
        let weight: u64 = weight
            .parse()
            .with_context(|| format!("{weight} is no weight"))?;
        let names: Vec<&str> = stack.split(';').collect();
        let innermost = names.last().copied().unwrap_or_default();
        *own.entry(innermost.to_owned()).or_default() += weight;
        for name in names.into_iter().collect::<BTreeSet<_>>() {
            *total.entry(name.to_owned()).or_default() += weight;
        }
        stacks += 1;
    }
    Ok((stacks, own, total))
}
