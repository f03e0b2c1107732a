//! `cargo xtask test`: everything that must hold before a change is good.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use crate::steps::{self, Step};
use crate::{process, tidy, web, workspace};

#[derive(Args)]
pub(crate) struct Options {
    /// Runs only the tests, not the checks of form before them.
    #[arg(long)]
    only_tests: bool,
    /// Arguments for `cargo test`, such as the name of a test.
    #[arg(last = true)]
    arguments: Vec<String>,
}

const CHECKS: [Step<Options>; 6] = [
    Step {
        name: "fmt",
        run: |_| process::run(cargo().args(["fmt", "--all", "--check"])),
    },
    Step {
        name: "clippy",
        run: |_| {
            let lint = ["clippy", "--workspace", "--all-targets", "--locked"];
            process::run(cargo().args(lint).args(["--", "-D", "warnings"]))
        },
    },
    Step {
        name: "doc",
        run: |_| {
            let document = ["doc", "--workspace", "--no-deps", "--locked", "--quiet"];
            process::run(cargo().args(document).env("RUSTDOCFLAGS", "-D warnings"))
        },
    },
    Step {
        name: "tidy",
        run: |_| tidy::run(),
    },
    Step {
        name: "web",
        run: |_| web::check(),
    },
    Step {
        name: "targets",
        run: |_| check_targets(),
    },
];

const TESTS: [Step<Options>; 2] = [
    Step {
        name: "build",
        run: |_| build(),
    },
    Step {
        name: "test",
        run: test,
    },
];

/// Runs all steps, the later ones too if one fails, and sums up at the end.
pub(crate) fn run(options: &Options) -> Result<()> {
    let checks = if options.only_tests { &[] } else { &CHECKS[..] };
    steps::run(checks.iter().chain(&TESTS), options)
}

fn cargo() -> Command {
    let mut command = process::cargo();
    command.current_dir(workspace::root());
    command
}

/// Another architecture and another C library than those of the tests, in one.
const OTHER_TARGET: &str = "aarch64-unknown-linux-musl";

/// That what differs between architectures and C libraries compiles for others: all that recording
/// and counting need.
fn check_targets() -> Result<()> {
    if !is_installed(OTHER_TARGET)? {
        return Ok(());
    }
    let mut command = cargo();
    command.args(["check", "--locked", "--target", OTHER_TARGET]);
    command.args(["-p", "prof-recorder", "-p", "prof-counters"]);
    // Nothing is linked, so the C code of dependencies need not be compiled: no compiler for it is
    // asked for.
    for tool in ["CC", "AR"] {
        command.env(format!("{tool}_{}", OTHER_TARGET.replace('-', "_")), "true");
    }
    process::run(&mut command)
}

/// Whether we can compile for it; if not, says so, and fails in CI.
fn is_installed(target: &str) -> Result<bool> {
    let mut rustc = Command::new("rustc");
    rustc.args(["--print", "target-libdir", "--target", target]);
    let libraries = rustc.output().context("cannot start rustc")?.stdout;
    if Path::new(String::from_utf8_lossy(&libraries).trim()).is_dir() {
        return Ok(true);
    }
    let missing = format!("not checked: `rustup target add {target}` is missing");
    let in_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    ensure!(!in_ci, "{missing}");
    println!("{missing}");
    Ok(false)
}

/// Builds all that is tested, and the binaries besides, with the features that the tests' own
/// dependencies ask for: what is built once for all need not be built again for the tests of prof.
fn build() -> Result<()> {
    let all = ["build", "--workspace", "--locked", "--profile", "test"];
    let targets = ["--lib", "--bins", "--tests", "--examples"];
    process::run(cargo().args(all).args(targets))
}

/// `cargo test` and not another runner: it is on every machine and runs the doc tests too.
fn test(options: &Options) -> Result<()> {
    let mut command = cargo();
    command.args(["test", "--workspace", "--locked", "--no-fail-fast"]);
    command.args(&options.arguments).stdout(Stdio::piped());
    if std::env::var_os("RUST_TEST_THREADS").is_none() {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        // Tests wait for other programs and for the kernel about as long as they compute.
        command.env("RUST_TEST_THREADS", (3 * cpus).to_string());
    }
    command.env("PROF", workspace::target_directory()?.join("debug/prof"));
    let mut child = command.spawn().context("cannot start cargo test")?;
    let printed = child.stdout.take().context("cargo test has no output")?;
    let mut totals = Totals::default();
    let mut out = std::io::stdout();
    for line in BufReader::new(printed).split(b'\n') {
        let mut line = line?;
        totals.count(&String::from_utf8_lossy(&line));
        line.push(b'\n');
        out.write_all(&line)?;
    }
    let status = child.wait()?;
    println!("{totals}");
    if !status.success() {
        bail!("{totals}");
    }
    Ok(())
}

/// The sums over all of cargo test's result lines.
#[derive(Debug, Default, PartialEq, Eq)]
struct Totals {
    passed: u64,
    failed: u64,
    ignored: u64,
    binaries: u64,
}

impl Totals {
    /// Adds a line such as `test result: ok. 3 passed; 0 failed; 1 ignored; ...`.
    fn count(&mut self, line: &str) {
        let Some(result) = line.trim().strip_prefix("test result: ") else {
            return;
        };
        self.binaries += 1;
        for part in result.split([';', '.']) {
            let mut words = part.split_whitespace();
            let (Some(number), Some(what)) = (words.next(), words.next()) else {
                continue;
            };
            let number = number.parse().unwrap_or(0);
            match what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.ignored += number,
                _ => {}
            }
        }
    }
}

impl std::fmt::Display for Totals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "tests: {} passed; {} failed; {} ignored in {} test programs",
            self.passed, self.failed, self.ignored, self.binaries
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_lines_are_summed_up() {
        let mut totals = Totals::default();
        for line in [
            "running 3 tests",
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.27s",
            "test a::b ... ok",
            "test result: FAILED. 10 passed; 2 failed; 0 ignored; 0 measured; 5 filtered out; finished in 1.00s",
        ] {
            totals.count(line);
        }
        assert_eq!(
            totals.to_string(),
            "tests: 13 passed; 2 failed; 1 ignored in 2 test programs"
        );
    }
}
