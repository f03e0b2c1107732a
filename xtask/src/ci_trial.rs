//! `cargo xtask ci-trial`: how often `prof ci` raises a false alarm, and how often it finds a
//! planted slowdown. Writes docs/results/ci.md.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::bench::{self, Stopwatch};
use crate::{process, workspace};

#[derive(Args)]
pub(crate) struct Options {
    /// Pairs of a program with itself, run by run.
    #[arg(long, default_value_t = 100)]
    same: usize,
    /// Pairs of a program with one that does 3 % more, in one function, run by run.
    #[arg(long, default_value_t = 100)]
    planted: usize,
    /// Pairs of a program with its own stored baseline.
    #[arg(long, default_value_t = 100)]
    stored: usize,
    /// Runs on each side.
    #[arg(long, default_value_t = 10)]
    repeat: u32,
    /// The prof to try [default: that of target/release].
    #[arg(long)]
    prof: Option<PathBuf>,
    /// Goes on with the pairs that an interrupted trial has tried.
    #[arg(long)]
    resume: bool,
}

/// The program in which something is planted.
const STEPS: &[&str] = &["./steps"];

/// Real programs that run for a quarter of a second.
const PROGRAMS: [&[&str]; 4] = [
    &[
        "python3",
        "-c",
        "import json; [json.loads(json.dumps(list(range(500)))) for _ in range(1800)]",
    ],
    &[
        "sqlite3",
        ":memory:",
        "create table t(a, b); with recursive n(i) as (select 1 union all select i+1 from n where \
         i < 200000) insert into t select i, hex(i*7919) from n; select count(*) from t where b \
         like '%31%'; create index x on t(b); select sum(a) from t group by b limit 1",
    ],
    &["sort", "-n", "--parallel=1", "numbers"],
    STEPS,
];

/// How two programs are compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Same,
    Planted,
    Stored,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Same, Self::Planted, Self::Stored];

    fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Planted => "planted",
            Self::Stored => "stored",
        }
    }

    fn programs(self) -> &'static [&'static [&'static str]] {
        match self {
            Self::Same | Self::Stored => &PROGRAMS,
            Self::Planted => &[STEPS],
        }
    }
}

/// Makes all pairs, prints the result of each, and writes the summary.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut trial = Trial::new(options)?;
    let wanted = [options.same, options.planted, options.stored];
    for (kind, wanted) in Kind::ALL.into_iter().zip(wanted) {
        trial.make(kind, wanted)?;
    }
    let path = workspace::root().join("docs/results/ci.md");
    fs::write(&path, trial.text(options))
        .with_context(|| format!("cannot write {}", path.display()))?;
    println!("in {}", path.display());
    Ok(())
}

/// The result of `prof ci` for a pair.
struct Pair {
    kind: Kind,
    program: String,
    /// The function that `prof ci` reports to have grown, if any.
    said: Option<String>,
}

impl Pair {
    fn line(&self) -> String {
        let said = self.said.as_deref().unwrap_or("-");
        format!("{}\t{}\t{said}\n", self.kind.name(), self.program)
    }

    fn parse(line: &str) -> Option<Self> {
        let mut words = line.splitn(3, '\t');
        let (name, program, said) = (words.next()?, words.next()?, words.next()?);
        Some(Self {
            kind: Kind::ALL.into_iter().find(|kind| kind.name() == name)?,
            program: program.to_owned(),
            said: (said != "-").then(|| said.to_owned()),
        })
    }

    /// Each run costs more, too.
    fn names_checksum(&self) -> bool {
        let first = self.said.as_ref().and_then(|said| said.split(';').next());
        first == Some("checksum grew")
    }
}

struct Trial {
    prof: PathBuf,
    directory: PathBuf,
    repeat: String,
    pairs: Vec<Pair>,
    /// Each pair as a line.
    log: File,
}

impl Trial {
    fn new(options: &Options) -> Result<Self> {
        let target = workspace::target_directory()?;
        let prof = match &options.prof {
            Some(prof) => std::path::absolute(prof)?,
            None => target.join("release/prof"),
        };
        let directory = target.join("ci-trial");
        fs::create_dir_all(&directory)?;
        let numbers = (0..500_000_u64).map(|i| format!("{}\n", i * 2_654_435_761 % 1_000_003));
        fs::write(directory.join("numbers"), numbers.collect::<String>())?;
        let log = directory.join("pairs.tsv");
        if !options.resume {
            fs::write(&log, "")?;
            plant(&directory)?;
        }
        let tried = fs::read_to_string(&log).context("there is nothing to resume")?;
        Ok(Self {
            prof,
            directory,
            repeat: options.repeat.to_string(),
            pairs: tried.lines().filter_map(Pair::parse).collect(),
            log: File::options().append(true).open(&log)?,
        })
    }

    fn of(&self, kind: Kind) -> impl Iterator<Item = &Pair> {
        self.pairs.iter().filter(move |pair| pair.kind == kind)
    }

    /// Makes pairs of a kind until there are this many.
    fn make(&mut self, kind: Kind, wanted: usize) -> Result<()> {
        let programs = kind.programs();
        for number in self.of(kind).count()..wanted {
            let program = programs[number % programs.len()];
            let pair = Pair {
                kind,
                program: program[0].to_owned(),
                said: self.compare(kind, program)?,
            };
            print!("{number}\t{}", pair.line());
            self.log.write_all(pair.line().as_bytes())?;
            self.pairs.push(pair);
        }
        Ok(())
    }

    /// Runs `prof ci`; returns the function that it reports to have grown, if any.
    fn compare(&self, kind: Kind, program: &[&str]) -> Result<Option<String>> {
        let (code, printed) = match kind {
            Kind::Same => self.ci(&["--versus", program[0]], program)?,
            Kind::Planted => self.ci(&["--versus", program[0]], &["./steps-more"])?,
            Kind::Stored => {
                let saved = self.ci(&["--save-baseline"], program)?.0;
                ensure!(saved == 0, "prof ci --save-baseline ended with {saved}");
                self.ci(&[], program)?
            }
        };
        ensure!([0, 3].contains(&code), "prof ci ended with {code}");
        let headline = printed.lines().next().unwrap_or_default();
        let headline = headline.trim_start_matches("## prof ci: ").to_owned();
        Ok((code == 3).then_some(headline))
    }

    fn ci(&self, options: &[&str], program: &[&str]) -> Result<(i32, String)> {
        let mut command = Command::new(&self.prof);
        command.current_dir(&self.directory);
        command.args(["ci", "--repeat", &self.repeat, "-F", "4999"]);
        command.args(options).arg("--").args(program);
        let output = command
            .stderr(Stdio::null())
            .output()
            .context("cannot start prof")?;
        let code = output.status.code().context("prof was killed")?;
        Ok((code, String::from_utf8_lossy(&output.stdout).into_owned()))
    }

    fn text(&self, options: &Options) -> String {
        let mut text = format!(
            "# Accuracy of `prof ci`\n\n\
             Written by `cargo xtask ci-trial`: {}. {}; load at the end: {}.\n\
             Measured build: {}.\n\
             Each pair is {} runs of a quarter of a second on either side, at 4,999 Hz, in turn \
             (`--versus`) or\none group after the other (`--save-baseline`). An alarm is \
             exit status 3 at the default limits.\n\n\
             | program | change | runs | pairs | alarms |\n| --- | --- | --- | ---: | --- |\n",
            bench::date(),
            bench::description(),
            load(),
            bench::measured_build(options.prof.as_deref()),
            options.repeat,
        );
        for (kind, runs) in [(Kind::Same, "in turn"), (Kind::Stored, "grouped")] {
            for program in PROGRAMS.map(|program| program[0]) {
                let pairs = || self.of(kind).filter(|pair| pair.program == program);
                let said: Vec<&str> = pairs().filter_map(|pair| pair.said.as_deref()).collect();
                let alarms = match said.as_slice() {
                    [] => "none".to_owned(),
                    said => format!("{}: {}", said.len(), said.join("; ")),
                };
                let pairs = pairs().count();
                if pairs == 0 {
                    continue;
                }
                // Writing to a `String` cannot fail.
                let _ = writeln!(text, "| {program} | none | {runs} | {pairs} | {alarms} |");
            }
        }
        let planted = || self.of(Kind::Planted);
        let found = planted().filter(|pair| pair.names_checksum()).count();
        let said = planted().filter(|pair| pair.said.is_some()).count();
        let _ = writeln!(
            text,
            "| steps | 3 % more in `checksum` | in turn | {} | {found} name `checksum`, {} only \
             something else |",
            planted().count(),
            said - found,
        );
        text
    }
}

/// The load average of the last fifteen minutes.
fn load() -> String {
    let averages = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let last = averages.split_whitespace().nth(2);
    last.unwrap_or("unknown").to_owned()
}

/// Builds `steps`, and `steps-more`, which takes 3 % longer.
fn plant(directory: &Path) -> Result<()> {
    const MANY: u32 = 1000;
    let stopwatch = Stopwatch::build(directory)?;
    // The time of a program without disturbance: the minimum.
    let least = |program: &Path| -> Result<f64> {
        let mut least = f64::MAX;
        for _ in 0..15 {
            let usage = stopwatch.measure(directory, [program])?.0;
            least = least.min(usage.cpu.as_secs_f64());
        }
        Ok(least)
    };
    let steps = least(&build_steps(directory, "steps", 0)?)?;
    let longer = least(&build_steps(directory, "steps-more", MANY)?)?;
    let rounds = 0.03 * steps / (longer - steps) * f64::from(MANY);
    ensure!(
        (1.0..=f64::from(MANY)).contains(&rounds),
        "{rounds:.0} rounds would be 3 % of {steps:.3} s"
    );
    println!("planted: {rounds:.0} rounds");
    build_steps(directory, "steps-more", rounds as u32)?;
    Ok(())
}

/// Builds `steps` with this many extra rounds.
fn build_steps(directory: &Path, name: &str, more: u32) -> Result<PathBuf> {
    let program = directory.join(name);
    let mut compile = Command::new("gcc");
    compile.args(["-O2", "-g", &format!("-DMORE={more}"), "-o"]);
    compile.arg(&program);
    process::run(compile.arg(workspace::root().join("xtask/bench/steps.c")))?;
    Ok(program)
}
