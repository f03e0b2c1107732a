//! `cargo xtask demo --fleet`: recordings of two machines as a data set, queried with another
//! engine.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use super::{Options, hottest, program, show};
use crate::{process, workspace};

/// How xtask/fleet/engine.py calls an engine, and its Python package.
type Engine = (&'static str, &'static str);

const SPARK: Engine = ("spark", "pyspark");
const DUCKDB: Engine = ("duckdb", "duckdb");

/// Records a program as two machines, pushes both, queries them, and draws the result.
pub(super) fn run(options: &Options, prof: &Path, directory: &Path) -> Result<()> {
    let data = directory.join("profiles");
    // Old recordings would be added to the result.
    let _ = fs::remove_dir_all(&data);
    let program = program(directory)?;
    for host in ["host-a", "host-b"] {
        let recording = directory.join(format!("{host}.data"));
        let mut record = Command::new(prof);
        record.args(["record", "--output"]).arg(&recording);
        show(record.arg("--").arg(&program))?;
        let mut push = Command::new(prof);
        push.args(["push", "--service", "demo", "--host", host]);
        show(push.arg(&recording).arg(&data))?;
    }
    let (python, engine) = engine(directory)?;
    let folded = directory.join("fleet.folded");
    let mut ask = Command::new(python);
    ask.arg(workspace::root().join("xtask/fleet/engine.py"));
    ask.arg(engine).arg(&data).stdout(File::create(&folded)?);
    show(&mut ask)?;
    let mut draw = Command::new(prof);
    draw.args(["report", "-i"]).arg(&folded);
    show(draw.arg("--flamegraph").arg(&options.output))?;
    println!("\nthe hottest stacks of both machines, by {engine}:");
    for line in hottest(&fs::read_to_string(&folded)?, 5) {
        println!("  {line}");
    }
    println!("\ndata set:   {}", data.display());
    println!(
        "flamegraph: {}",
        std::path::absolute(&options.output)?.display()
    );
    Ok(())
}

/// A Python of the demo's own with Spark, where there is Java, or else with DuckDB.
fn engine(directory: &Path) -> Result<(PathBuf, &'static str)> {
    let wanted: &[Engine] = match process::find("java") {
        Some(_) => &[SPARK, DUCKDB],
        None => &[DUCKDB],
    };
    let environment = directory.join("python");
    let python = environment.join("bin/python3");
    if !python.exists() {
        let mut create = Command::new("python3");
        show(create.args(["-m", "venv"]).arg(&environment))?;
    }
    for &(engine, package) in wanted {
        let mut install = Command::new(&python);
        install.args(["-m", "pip", "install", "--quiet", package]);
        if has(&python, package) || (show(&mut install).is_ok() && has(&python, package)) {
            return Ok((python, engine));
        }
    }
    bail!("neither Spark nor DuckDB can be installed")
}

fn has(python: &Path, package: &str) -> bool {
    let mut import = Command::new(python);
    import.args(["-c", &format!("import {package}")]);
    let status = import.stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}
