//! `cargo xtask release-checks`: checks before a release that take too long, or need too much of
//! the network, for each change.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::{process, steps, workspace};

#[derive(Args)]
pub(crate) struct Options {
    /// The revision that public items are compared with [default: the last tag, v0.1.0 or such].
    #[arg(long, value_name = "REV")]
    baseline: Option<String>,
    /// Leaves out the check that needs the database of advisories, which is on GitHub.
    #[arg(long)]
    no_advisories: bool,
    /// Runs these only, of: deny, msrv, musl, semver, publish.
    #[arg(value_name = "CHECK")]
    only: Vec<String>,
}

const CHECKS: [steps::Step<Options>; 5] = [
    steps::Step {
        name: "deny",
        run: deny,
    },
    steps::Step {
        name: "msrv",
        run: |_| msrv(),
    },
    steps::Step {
        name: "musl",
        run: |_| musl(),
    },
    steps::Step {
        name: "semver",
        run: semver,
    },
    steps::Step {
        name: "publish",
        run: |_| publish(),
    },
];

/// Runs all checks, the later ones too if one fails.
pub(crate) fn run(options: &Options) -> Result<()> {
    for name in &options.only {
        ensure!(
            CHECKS.iter().any(|check| check.name == name),
            "there is no check '{name}'; there are: {}",
            CHECKS.map(|check| check.name).join(", ")
        );
    }
    let wanted = |name: &str| options.only.is_empty() || options.only.iter().any(|n| n == name);
    let checks = CHECKS.iter().filter(|check| wanted(check.name));
    steps::run(checks, options)
}

fn cargo() -> Command {
    let mut command = process::cargo();
    command.current_dir(workspace::root());
    command
}

/// Checks licences, sources, banned crates and known vulnerabilities (deny.toml).
fn deny(options: &Options) -> Result<()> {
    let mut command = cargo();
    command.args(["deny", "--locked", "check", "bans", "licenses", "sources"]);
    command.args((!options.no_advisories).then_some("advisories"));
    process::run(&mut command).context("`cargo install --locked cargo-deny`")
}

/// Checks that the oldest compiler that Cargo.toml promises builds everything.
fn msrv() -> Result<()> {
    let version = env!("CARGO_PKG_RUST_VERSION");
    let mut command = Command::new("rustup");
    command.current_dir(workspace::root());
    command.args(["run", version, "cargo", "check", "--workspace", "--locked"]);
    command.args(["--all-targets", "--target-dir"]);
    command.arg(workspace::target_directory()?.join("msrv"));
    // We run under another toolchain's cargo, whose variables would choose its compiler.
    for variable in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN"] {
        command.env_remove(variable);
    }
    process::run(&mut command).with_context(|| format!("`rustup toolchain install {version}`"))
}

/// Checks that the target of the static archives compiles, with all its C code.
fn musl() -> Result<()> {
    const TARGET: &str = "x86_64-unknown-linux-musl";
    let mut command = cargo();
    command.args([
        "check",
        "--locked",
        "--package",
        "prof",
        "--package",
        "prof-fleet",
    ]);
    command.args(["--target", TARGET]);
    command.env("CC_x86_64_unknown_linux_musl", "musl-gcc");
    process::run(&mut command)
        .with_context(|| format!("`rustup target add {TARGET}`, `apt-get install musl-tools`"))
}

/// Checks that compatible versions have compatible APIs.
fn semver(options: &Options) -> Result<()> {
    let Some(baseline) = options.baseline.clone().or_else(last_tag) else {
        println!("nothing to compare with: there is no release yet (a tag such as v0.1.0)");
        return Ok(());
    };
    let mut command = cargo();
    command.args(["semver-checks", "--workspace", "--baseline-rev", &baseline]);
    process::run(&mut command).context("`cargo install --locked cargo-semver-checks`")
}

fn last_tag() -> Option<String> {
    let mut git = Command::new("git");
    git.current_dir(workspace::root());
    git.args(["describe", "--tags", "--abbrev=0", "--match", "v[0-9]*"]);
    let tag = git.output().ok()?;
    let name = String::from_utf8(tag.stdout).ok()?.trim().to_owned();
    (tag.status.success() && !name.is_empty()).then_some(name)
}

/// Checks that each crate can be published, and builds from its package alone.
fn publish() -> Result<()> {
    let mut command = cargo();
    command.args(["publish", "--workspace", "--dry-run", "--locked"]);
    process::run(&mut command)
}
