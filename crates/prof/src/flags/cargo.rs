//! The flags of `cargo prof`, named as cargo names them.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::record::SamplingFlags;

/// `cargo prof [OPTIONS] [-- ARGS...]`
#[derive(Debug, Args)]
pub(crate) struct CargoFlags {
    /// Which target to build
    #[command(flatten)]
    pub target: TargetFlags,

    /// How to record it
    #[command(flatten)]
    pub sampling: SamplingFlags,

    /// Write the flamegraph to FILE [default: flamegraph.svg, or the file of -o if it ends in .svg]
    #[arg(long, value_name = "FILE")]
    pub flamegraph: Option<PathBuf>,

    /// Arguments for the program
    #[arg(last = true)]
    pub args: Vec<OsString>,
}

/// Which Cargo target to build, and how.
#[derive(Debug, Default, Args)]
pub(crate) struct TargetFlags {
    /// Record this binary
    #[arg(long, value_name = "NAME", group = "kind")]
    pub bin: Option<String>,

    /// Record this example
    #[arg(long, value_name = "NAME", group = "kind")]
    pub example: Option<String>,

    /// Record this integration test
    #[arg(long, value_name = "NAME", group = "kind")]
    pub test: Option<String>,

    /// Record this benchmark
    #[arg(long, value_name = "NAME", group = "kind")]
    pub bench: Option<String>,

    /// The package that has the target
    #[arg(short, long, value_name = "SPEC")]
    pub package: Option<String>,

    /// Features to enable, separated by spaces or commas
    #[arg(long, value_name = "FEATURES")]
    pub features: Vec<String>,

    /// Enable all features
    #[arg(long)]
    pub all_features: bool,

    /// Do not enable the `default` feature
    #[arg(long)]
    pub no_default_features: bool,

    /// The profile to build with [default: release, for benchmarks: bench]
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,

    /// Build for release, which is the default
    #[arg(long, short, hide = true, conflicts_with = "profile")]
    pub release: bool,

    /// Path to Cargo.toml
    #[arg(long, value_name = "PATH")]
    pub manifest_path: Option<PathBuf>,

    /// Directory for all that Cargo builds
    #[arg(long, value_name = "DIR")]
    pub target_dir: Option<PathBuf>,

    /// Fail if Cargo.lock would change
    #[arg(long)]
    pub locked: bool,

    /// Do not use the network
    #[arg(long)]
    pub offline: bool,
}
