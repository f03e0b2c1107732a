//! `cargo xtask ci-trial`: how often `prof ci` raises a false alarm, and how often it finds what
//! was planted. Writes docs/results/ci.md.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::{bench, process, workspace};

#[derive(Args)]
pub(crate) struct Options {
    /// Pairs of a program with itself.
    #[arg(long, default_value_t = 100)]
    same: u32,
    /// Pairs of a program with one that does 3 % more, in one function.
    #[arg(long, default_value_t = 100)]
    planted: u32,
    /// Runs on each side.
    #[arg(long, default_value_t = 10)]
    repeat: u32,
    /// The prof to try [default: that of target/release].
    #[arg(long)]
    prof: Option<PathBuf>,
}

/// What makes 3 % of the program's time.
const MORE_ROUNDS: &str = "175";

/// The program in which something is planted.
const STEPS: &[&str] = &["./steps"];

/// Real programs that take a third of a second.
const PROGRAMS: [&[&str]; 3] = [
    &[
        "python3",
        "-c",
        "import json; [json.loads(json.dumps(list(range(500)))) for _ in range(4000)]",
    ],
    &[
        "sqlite3",
        ":memory:",
        "create table t(a, b); with recursive n(i) as (select 1 union all select i+1 from n where \
         i < 120000) insert into t select i, hex(i*7919) from n; select count(*) from t where b \
         like '%31%'; create index x on t(b); select sum(a) from t group by b limit 1",
    ],
    &["sort", "-n", "--parallel=1", "numbers"],
];

/// Tries both, prints what came of it and writes it down.
pub(crate) fn run(options: &Options) -> Result<()> {
    let target = workspace::target_directory()?;
    let prof = match &options.prof {
        Some(prof) => std::path::absolute(prof)?,
        None => target.join("release/prof"),
    };
    let directory = target.join("ci-trial");
    fs::create_dir_all(&directory)?;
    let numbers = (0..250_000_u64).map(|i| format!("{}\n", i * 2_654_435_761 % 1_000_003));
    fs::write(directory.join("numbers"), numbers.collect::<String>())?;
    let mut compile = Command::new("gcc");
    compile
        .args(["-O2", "-g", "-o"])
        .arg(directory.join("steps"));
    process::run(compile.arg(workspace::root().join("xtask/bench/steps.c")))?;
    let trial = Trial {
        prof,
        directory,
        repeat: options.repeat.to_string(),
    };

    let mut rows = String::new();
    trial.same(options.same, &mut rows)?;
    trial.planted(options.planted, &mut rows)?;
    let path = workspace::root().join("docs/results/ci.md");
    let text = format!(
        "# What `prof ci` finds\n\n\
         Written by `cargo xtask ci-trial`: {}. {}.\n\
         Each pair is {} runs of a third of a second on either side, at 4,999 Hz.\n\n\
         | program | change | pairs | said to have grown |\n| --- | --- | ---: | --- |\n{rows}",
        bench::date(),
        bench::description(),
        options.repeat,
    );
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    println!("{rows}\nin {}", path.display());
    Ok(())
}

struct Trial {
    prof: PathBuf,
    directory: PathBuf,
    repeat: String,
}

impl Trial {
    /// Compares programs with themselves.
    fn same(&self, pairs: u32, rows: &mut String) -> Result<()> {
        let programs = PROGRAMS.iter().copied().chain([STEPS]);
        // By program: pairs, and what was said of them.
        let mut tried: BTreeMap<&str, (u32, Vec<String>)> = BTreeMap::new();
        for (number, program) in (1..=pairs).zip(programs.cycle()) {
            let (pairs, alarms) = tried.entry(program[0]).or_default();
            *pairs += 1;
            if let Some(headline) = self.compare(program, program)? {
                println!("{number}: {}: {headline}", program[0]);
                alarms.push(headline);
            }
        }
        for (program, (pairs, alarms)) in tried {
            let said = match alarms.as_slice() {
                [] => "0 times".to_owned(),
                alarms => format!("{} times: {}", alarms.len(), alarms.join("; ")),
            };
            writeln!(rows, "| {program} | none | {pairs} | {said} |")?;
        }
        Ok(())
    }

    /// Compares a program with one that does more in one function.
    fn planted(&self, pairs: u32, rows: &mut String) -> Result<()> {
        let more = [STEPS[0], MORE_ROUNDS];
        let (mut found, mut others) = (0, 0);
        for number in 1..=pairs {
            let headline = self.compare(STEPS, &more)?;
            // Each run costs more, too.
            let is_found = |said: &str| said.split(';').next() == Some("checksum grew");
            match headline {
                Some(said) if is_found(&said) => found += 1,
                Some(said) => {
                    others += 1;
                    println!("{number}: {said}");
                }
                None => println!("{number}: not found"),
            }
        }
        writeln!(
            rows,
            "| steps | 3 % more in `checksum` | {pairs} | `checksum` {found} times, only something \
             else {others} times |"
        )?;
        Ok(())
    }

    /// What `prof ci` says has grown, if it says so.
    fn compare(&self, before: &[&str], after: &[&str]) -> Result<Option<String>> {
        let saved = self.ci(&["--save-baseline"], before)?;
        ensure!(
            saved.0 == 0,
            "prof ci --save-baseline ended with {}",
            saved.0
        );
        let (code, printed) = self.ci(&[], after)?;
        let headline = printed.lines().next().unwrap_or_default();
        let headline = headline.trim_start_matches("## prof ci: ").to_owned();
        ensure!([0, 3].contains(&code), "prof ci ended with {code}");
        Ok((code == 3).then_some(headline))
    }

    fn ci(&self, options: &[&str], program: &[&str]) -> Result<(i32, String)> {
        let mut command = Command::new(&self.prof);
        command.current_dir(Path::new(&self.directory));
        command.args(["ci", "--repeat", &self.repeat, "-F", "4999"]);
        command.args(options).arg("--").args(program);
        let output = command
            .stderr(Stdio::null())
            .output()
            .context("cannot start prof")?;
        let code = output.status.code().context("prof was killed")?;
        Ok((code, String::from_utf8_lossy(&output.stdout).into_owned()))
    }
}
