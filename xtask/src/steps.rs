//! Checks that run one after the other, with a summary.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

/// A check by its name.
pub(crate) struct Step<O> {
    pub(crate) name: &'static str,
    pub(crate) run: fn(&O) -> Result<()>,
}

/// Runs all steps, the later ones too if one fails, and sums up at the end.
pub(crate) fn run<O: 'static>(
    steps: impl IntoIterator<Item = &'static Step<O>>,
    options: &O,
) -> Result<()> {
    let mut summary = String::new();
    let mut failed = Vec::new();
    for step in steps {
        println!("== {}", step.name);
        let start = Instant::now();
        let done = (step.run)(options);
        summary += &summary_line(step.name, start.elapsed(), done.is_ok());
        if let Err(error) = done {
            println!("== {} failed: {error:#}", step.name);
            failed.push(step.name);
        }
    }
    print!("\n{summary}");
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    println!("all good");
    Ok(())
}

fn summary_line(name: &str, time: Duration, good: bool) -> String {
    let word = if good { "ok" } else { "FAILED" };
    format!("{name:<8} {:>7.1} s  {word}\n", time.as_secs_f64())
}
