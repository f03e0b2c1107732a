//! How many stacks are whole, and how much of the CPU time is sampled, at each rate: of programs
//! whose stacks change before a rare reader comes, or that end before it.

use std::fmt::Write;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{Options, Paths, machine, median, workload};
use crate::{process, workspace};

const HERTZ: [u32; 4] = [99, 499, 999, 4999];

/// A program, and what it is hard for.
struct Case {
    about: &'static str,
    command: Vec<PathBuf>,
}

/// Who records: the words before prof's own.
struct User {
    name: &'static str,
    become_it: &'static [&'static str],
}

const USERS: [User; 2] = [
    User {
        name: "root",
        become_it: &[],
    },
    User {
        name: "plain user",
        become_it: &[
            "setpriv",
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
        ],
    },
];

/// Shares of 1.
struct Shares {
    whole: f64,
    /// Of the CPU time that can be sampled, before reports correct it.
    sampled: f64,
}

/// Measures, and writes the page.
pub(super) fn measure_all(paths: &Paths, options: &Options) -> Result<()> {
    let directory = open_directory(paths)?;
    let cases = cases(&directory)?;
    let mut page = format!(
        "# Rates\n\n\
         Written by `cargo xtask bench --by-rate`: {}. {}.\n\
         Measured build: {}.\n\
         `cpu-clock:u`; medians of {} runs. *whole*: stacks that reach their root; *sampled*: what \
         the samples stand for, of the kernel's count.\n\n\
         | program | user | Hz | whole | sampled |\n| --- | --- | ---: | ---: | ---: |\n",
        machine::date(),
        machine::description(),
        machine::measured_build(options.prof.as_deref()),
        options.repetitions,
    );
    for case in &cases {
        for user in &USERS {
            for hertz in HERTZ {
                println!("{}, {}, {hertz} Hz", case.about, user.name);
                let runs = (0..options.repetitions).map(|_| record(&directory, case, user, hertz));
                let runs = runs.collect::<Result<Vec<_>>>()?;
                let of = |share: fn(&Shares) -> f64| 100.0 * median(runs.iter().map(share));
                let (whole, sampled) = (of(|it| it.whole), of(|it| it.sampled));
                let (about, user) = (case.about, user.name);
                writeln!(
                    page,
                    "| {about} | {user} | {hertz} | {whole:.2} % | {sampled:.1} % |"
                )?;
            }
        }
    }
    fs::remove_dir_all(&directory)?;
    let output = workspace::root().join(&options.by_rate_output);
    fs::write(&output, &page).with_context(|| format!("cannot write {}", output.display()))?;
    println!("\n{page}\nwritten to {}", output.display());
    Ok(())
}

/// A directory where every user can run a copy of prof.
fn open_directory(paths: &Paths) -> Result<PathBuf> {
    let name = format!("prof-bench-{}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    fs::create_dir(&directory)?;
    fs::set_permissions(&directory, Permissions::from_mode(0o777))?;
    fs::copy(&paths.prof, directory.join("prof"))?;
    Ok(directory)
}

fn cases(directory: &Path) -> Result<Vec<Case>> {
    let timer = workload::program(directory, "timer", &["3000"])?;
    let recursion = directory.join("up_and_down");
    let source = workspace::root().join("tests/programs/up_and_down.rs");
    let mut rustc = Command::new("rustc");
    rustc.args(["--edition=2024", "-O", "-g", "-o"]);
    process::run(rustc.arg(&recursion).arg(source))?;
    let child = workload::program(directory, "shares", &["5"])?;
    let children = "for i in $(seq 300); do \"$0\" \"$1\"; done; true";
    let shell = ["sh", "-c", children].map(PathBuf::from);
    Ok(vec![
        Case {
            about: "timer's handlers on a signal stack",
            command: timer,
        },
        Case {
            about: "recursion of 2,000 frames, down and up",
            command: vec![recursion, "3000".into()],
        },
        Case {
            about: "children of 5 ms",
            command: shell.into_iter().chain(child).collect(),
        },
    ])
}

fn record(directory: &Path, case: &Case, user: &User, hertz: u32) -> Result<Shares> {
    let mut words = user.become_it.iter().map(PathBuf::from).collect::<Vec<_>>();
    words.push(directory.join("prof"));
    let mut prof = Command::new(&words[0]);
    prof.args(&words[1..]).current_dir(directory);
    prof.args(["record", "--quiet", "-e", "cpu-clock:u", "-F"]);
    prof.arg(hertz.to_string()).arg("--").args(&case.command);
    process::run(prof.stdout(Stdio::null()))?;
    let mut report = Command::new(directory.join("prof"));
    report
        .args(["report", "--json", "-"])
        .current_dir(directory);
    let report: Value = serde_json::from_str(&process::output(&mut report)?)?;
    fs::remove_file(directory.join("prof.data"))?;
    let quality = &report["quality"];
    let number = |value: &Value| value.as_f64().context("a number in the quality");
    let stacks = number(&quality["user_stacks"])?;
    ensure!(stacks > 0.0, "{} has no stacks", case.about);
    let coverage = quality["coverage"].as_array().context("a coverage")?;
    let sum = |field: &str| {
        coverage
            .iter()
            .map(|it| number(&it[field]))
            .sum::<Result<f64>>()
    };
    Ok(Shares {
        whole: number(&quality["whole_stacks"])? / stacks,
        sampled: sum("sampled")? / (sum("used")? - sum("unseen")?),
    })
}
