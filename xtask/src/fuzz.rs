//! `cargo xtask fuzz`: runs each fuzz target for a while.

use std::fs;

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::{process, workspace};

#[derive(Args)]
pub(crate) struct Options {
    /// Only these targets (folders of fuzz/seeds).
    targets: Vec<String>,
    /// For how many seconds each.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
}

/// Runs all targets one after the other, even if one finds something. Findings go to fuzz/corpus
/// and fuzz/artifacts, which are not in the tree.
pub(crate) fn run(options: &Options) -> Result<()> {
    let root = workspace::root();
    let targets = match options.targets.is_empty() {
        true => all()?,
        false => options.targets.clone(),
    };
    let mut failed = Vec::new();
    for target in targets {
        println!("== {target}");
        let corpus = root.join("fuzz/corpus").join(&target);
        fs::create_dir_all(&corpus).context("fuzz/corpus")?;
        let mut fuzz = process::cargo();
        // Sanitizers are not stable, but there is no need of another toolchain.
        fuzz.current_dir(root).env("RUSTC_BOOTSTRAP", "1");
        fuzz.args(["fuzz", "run", &target]);
        fuzz.arg(corpus).arg(root.join("fuzz/seeds").join(&target));
        let time = format!("-max_total_time={}", options.seconds);
        fuzz.args(["--", &time, "-timeout=10"]);
        fuzz.args(["-rss_limit_mb=2048", "-max_len=65536"]);
        // The threads of downloads that were given up end later.
        fuzz.arg("-detect_leaks=0");
        if let Err(error) = process::run(&mut fuzz) {
            println!("{error:#} (cargo install cargo-fuzz)");
            failed.push(target);
        }
    }
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}

fn all() -> Result<Vec<String>> {
    let seeds = workspace::root().join("fuzz/seeds");
    let mut names = Vec::new();
    for entry in fs::read_dir(seeds).context("fuzz/seeds")? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}
