//! `cargo xtask demo`: records a real program and draws its flamegraph.

mod fleet;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use clap::Args;

use crate::{process, workspace};

#[derive(Args)]
pub(crate) struct Options {
    /// The file for the flamegraph.
    #[arg(short, long, default_value = "flamegraph.svg")]
    output: PathBuf,
    /// Asks a data set of two machines' recordings instead, by Spark where there is Java, or else
    /// by DuckDB: both come from Python's package index.
    #[arg(long)]
    fleet: bool,
}

/// Builds prof, compiles a program whose functions have names, records it, and draws.
pub(crate) fn run(options: &Options) -> Result<()> {
    let target = workspace::target_directory()?;
    println!(
        "building prof for release: several minutes of CPU time the first time; `cargo install \
         --locked --path crates/prof` then needs no second build"
    );
    let mut build = process::cargo();
    build.current_dir(workspace::root());
    build.args(["build", "--release", "--locked", "--package", "prof"]);
    if options.fleet {
        build.args(["--package", "prof-fleet"]);
    }
    process::run(&mut build)?;
    let prof = target.join("release/prof");
    let directory = target.join("demo");
    fs::create_dir_all(&directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    if options.fleet {
        return fleet::run(options, &prof, &directory);
    }
    let recording = directory.join("prof.data");
    let folded = directory.join("stacks.folded");

    let mut record = Command::new(&prof);
    record.args(["record", "--output"]).arg(&recording);
    show(record.arg("--").arg(program(&directory)?))?;

    for (flag, output) in [("--folded", &folded), ("--flamegraph", &options.output)] {
        let mut report = Command::new(&prof);
        report.args(["report", "-i"]).arg(&recording);
        show(report.arg(flag).arg(output))?;
    }

    println!("\nthe hottest stacks:");
    for line in hottest(&fs::read_to_string(&folded)?, 5) {
        println!("  {line}");
    }
    let svg = std::path::absolute(&options.output)?;
    let size = fs::metadata(&svg)
        .with_context(|| format!("no flamegraph at {}", svg.display()))?
        .len();
    println!("\nrecording:  {}", recording.display());
    println!(
        "flamegraph: {} ({} KiB)",
        svg.display(),
        size.div_ceil(1024)
    );
    Ok(())
}

/// Runs a command that it shows before.
fn show(command: &mut Command) -> Result<()> {
    println!("$ {}", process::line(command));
    process::run(command)
}

/// A program that computes for a few seconds, with debug info. The python3 of a distribution has no
/// names.
fn program(directory: &Path) -> Result<PathBuf> {
    let binary = directory.join("queens");
    let mut compile = Command::new("rustc");
    compile
        .args(["--edition=2024", "-O", "-g", "-o"])
        .arg(&binary);
    process::run(compile.arg(workspace::root().join("xtask/demo/queens.rs")))?;
    Ok(binary)
}

/// The folded lines (`outer;...;inner count`) with the highest counts, those first.
fn hottest(folded: &str, how_many: usize) -> Vec<String> {
    let mut stacks: Vec<(u64, &str)> = folded
        .lines()
        .filter_map(|line| {
            let (stack, count) = line.rsplit_once(' ')?;
            Some((count.parse().ok()?, stack))
        })
        .collect();
    stacks.sort_by_key(|&(count, stack)| (std::cmp::Reverse(count), stack));
    let total: u64 = stacks.iter().map(|(count, _)| count).sum();
    stacks
        .iter()
        .take(how_many)
        .map(|(count, stack)| {
            let share = *count as f64 * 100.0 / total as f64;
            format!("{share:>5.1} %  {}", shortened(stack))
        })
        .collect()
}

/// The innermost frames of a stack, as many as fit a line.
fn shortened(stack: &str) -> String {
    let frames: Vec<&str> = stack.split(';').collect();
    match frames.len().checked_sub(4) {
        None | Some(0) => frames.join(" > "),
        Some(outer) => format!("({outer} frames) > {}", frames[outer..].join(" > ")),
    }
}

#[cfg(test)]
mod tests {
    use super::hottest;

    #[test]
    fn the_hottest_stacks_come_first_and_deep_ones_are_shortened() {
        let folded = "p;main;cold 1\np;a;b;c;d;main;hot 3\nnot a stack\n";
        assert_eq!(
            hottest(folded, 9),
            [
                " 75.0 %  (3 frames) > c > d > main > hot",
                " 25.0 %  p > main > cold"
            ]
        );
        assert_eq!(hottest(folded, 1).len(), 1);
    }
}
