//! How far prof's unwinder and framehop agree on the stacks of the programs.

use std::fmt::Write;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::markdown::{percent, thousands};
use super::workload::Workload;
use super::{Paths, drawing};
use crate::process;

/// The largest dumps, so that stacks end for other reasons than their depth.
const RECORD: &str = "perf record -q -e cpu-clock -F \"$1\" --call-graph dwarf,65528 \
                      -o dumps.data -- \"${@:2}\"";

const ABOUT: &str = "
## A second opinion on stacks

Stack dumps of 64 KB by perf, unwound by prof and by framehop (`prof report --check-stacks`): stacks
that are the same, and stacks that are whole by each.

| program | stacks | the same | whole by prof | by framehop |
| --- | ---: | ---: | ---: | ---: |
";

/// The section of the page; empty without perf.
pub(super) fn section(paths: &Paths, workloads: &[Workload]) -> Result<String> {
    if process::find("perf").is_none() {
        println!("!!! the second opinion is left out: perf is missing");
        return Ok(String::new());
    }
    let mut section = ABOUT.to_owned();
    for workload in workloads {
        println!("unwinding {} twice", workload.name);
        drawing::run(paths, RECORD, &workload.command)?;
        let mut report = Command::new(&paths.prof);
        report.current_dir(&paths.directory);
        report.args([
            "report",
            "-i",
            "dumps.data",
            "--check-stacks",
            "--json",
            "-",
        ]);
        let found: Value = serde_json::from_str(&process::output(&mut report)?)?;
        let count = |name: &str| {
            let count = found.pointer(name).and_then(Value::as_u64);
            count.with_context(|| format!("the report has no {name}"))
        };
        let stacks = count("/stacks")?;
        let share = |name: &str| Ok::<_, anyhow::Error>(count(name)? as f64 / stacks.max(1) as f64);
        writeln!(
            section,
            "| {} | {} | {} | {} | {} |",
            workload.name,
            thousands(stacks as f64),
            percent(share("/same")?),
            percent(share("/whole/prof")?),
            percent(share("/whole/framehop")?),
        )?;
    }
    Ok(section)
}
