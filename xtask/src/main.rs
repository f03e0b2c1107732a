//! The project's own chores: `cargo xtask demo|test|fuzz|tidy|bench|storm|web|docs|dist|...`.
#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool prints"
)]

mod bench;
mod ci_trial;
mod demo;
mod dist;
mod docs;
mod fleet_trial;
mod fuzz;
mod kernels;
mod process;
mod release;
mod steps;
mod storm;
mod test;
mod tidy;
mod web;
mod workspace;

use std::process::ExitCode;

use clap::Parser;

/// The project's own chores.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
enum Chore {
    /// Records a real program and draws its flamegraph.
    Demo(demo::Options),
    /// Runs every check there is: formatting, lints, documentation, structure, tests.
    Test(test::Options),
    /// Runs the fuzz targets (`cargo install cargo-fuzz`).
    Fuzz(fuzz::Options),
    /// Measures prof beside perf and samply and writes docs/results.
    Bench(Box<bench::Options>),
    /// Records processes, threads and libraries that come and go by the ten thousand.
    Storm(storm::Options),
    /// Bundles the page of `prof report --html` (npm).
    Web(web::Options),
    /// Boots other kernels and 64-bit ARM in qemu, and tries prof there.
    Kernels(kernels::Options),
    /// Runs the commands of docs/guide, and writes their output below them.
    Docs(docs::Options),
    /// Counts the false alarms of `prof ci`, and how often it finds a planted slowdown.
    CiTrial(ci_trial::Options),
    /// Makes a data set of many machines, and queries it with prof and other engines.
    FleetTrial(fleet_trial::Options),
    /// Builds static archives and a Debian package into target/packages.
    Dist(dist::Options),
    /// Checks licences, the oldest compiler, the static target, the API and the packages.
    ReleaseChecks(release::Options),
    /// Checks what docs/architecture.md promises about the source tree.
    Tidy,
}

fn main() -> ExitCode {
    let done = match Chore::parse() {
        Chore::Demo(options) => demo::run(&options),
        Chore::Test(options) => test::run(&options),
        Chore::Fuzz(options) => fuzz::run(&options),
        Chore::Bench(options) => bench::run(&options),
        Chore::Storm(options) => storm::run(&options),
        Chore::Web(options) => web::run(&options),
        Chore::Kernels(options) => kernels::run(&options),
        Chore::Docs(options) => docs::run(&options),
        Chore::CiTrial(options) => ci_trial::run(&options),
        Chore::FleetTrial(options) => fleet_trial::run(&options),
        Chore::Dist(options) => dist::run(&options),
        Chore::ReleaseChecks(options) => release::run(&options),
        Chore::Tidy => tidy::run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
