//! The programs that are profiled.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::Paths;
use crate::{process, workspace};

/// A program with its arguments.
pub(super) struct Workload {
    pub(super) name: &'static str,
    /// Its description.
    pub(super) about: &'static str,
    pub(super) command: Vec<PathBuf>,
}

/// All workloads whose names contain `only`; those whose programs are missing are left out with a
/// loud line.
pub(super) fn all(paths: &Paths, only: &str) -> Result<Vec<Workload>> {
    let c = |name: &str, arguments: &[&str]| program(&paths.directory, name, arguments);
    let mut workloads = vec![
        Workload {
            name: "shallow",
            about: "one thread, 5 frames",
            command: c("shares", &["3000"])?,
        },
        Workload {
            name: "threads",
            about: "two busy threads, 40 KB of stack each",
            command: c("threads", &["2000"])?,
        },
        Workload {
            name: "deep",
            about: "recursion of 5,000 frames, 160 KB of stack",
            command: c("deep", &["5000", "2000"])?,
        },
        Workload {
            name: "rust",
            about: "prof itself making a report: Rust, much inlined, full debug info",
            command: prof_report(paths)?,
        },
    ];
    match process::find("python3") {
        Some(python) => workloads.push(Workload {
            name: "python3",
            about: "an interpreter",
            command: vec![python, workspace::root().join("xtask/demo/queens.py")],
        }),
        None => println!("!!! no python3: that workload is left out"),
    }
    match process::find("g++") {
        Some(compiler) => workloads.push(Workload {
            name: "g++",
            about: "short-lived processes, one of them large",
            command: compilation(compiler),
        }),
        None => println!("!!! no g++: that workload is left out"),
    }
    workloads.retain(|workload| workload.name.contains(only));
    Ok(workloads)
}

/// A program of tests/programs with its arguments, built in `directory` without frame pointers.
pub(super) fn program(directory: &Path, name: &str, arguments: &[&str]) -> Result<Vec<PathBuf>> {
    let source = workspace::root()
        .join("tests/programs")
        .join(format!("{name}.c"));
    let binary = directory.join(name);
    let mut compile = Command::new("gcc");
    compile.args(["-O2", "-g", "-fomit-frame-pointer", "-pthread", "-o"]);
    process::run(compile.arg(&binary).arg(source))?;
    let arguments = arguments.iter().map(PathBuf::from);
    Ok([binary].into_iter().chain(arguments).collect())
}

pub(super) fn compilation(compiler: PathBuf) -> Vec<PathBuf> {
    let source = workspace::root().join("tests/programs/inlining.cpp");
    let words = [
        compiler,
        "-O2".into(),
        "-std=gnu++17".into(),
        "-c".into(),
        source,
    ];
    words
        .into_iter()
        .chain(["-o", "/dev/null"].map(PathBuf::from))
        .collect()
}

/// A report, repeated, on a new recording of prof.
fn prof_report(paths: &Paths) -> Result<Vec<PathBuf>> {
    let threads = program(&paths.directory, "threads", &["500"])?;
    let input = paths.directory.join("input.data");
    record_at(paths, &input, "4999", &threads)?;
    let mid = paths.directory.join("middle.data");
    let once = report(&paths.prof, &input);
    record_at(paths, &mid, "4999", &once)?;
    let script = "for i in 1 2 3 4 5 6; do \"$0\" report -i \"$1\" --folded /dev/null; done";
    let words = ["sh", "-c", script].map(PathBuf::from);
    Ok(words.into_iter().chain([paths.prof.clone(), mid]).collect())
}

fn report(prof: &Path, input: &Path) -> Vec<PathBuf> {
    let words = ["report", "-i"].map(PathBuf::from);
    let rest = ["--folded", "/dev/null"].map(PathBuf::from);
    let start = [prof.to_owned()].into_iter().chain(words);
    start.chain([input.to_owned()]).chain(rest).collect()
}

pub(super) fn record_at(
    paths: &Paths,
    file: &Path,
    hertz: &str,
    command: &[PathBuf],
) -> Result<()> {
    let mut record = Command::new(&paths.prof);
    record
        .args(["record", "--quiet", "-F", hertz, "-o"])
        .arg(file);
    process::run(record.arg("--").args(command))
}
