//! Building the target so that it can be profiled: with debug info, not stripped, only through the
//! environment. No file of the user is edited.

use std::ffi::OsString;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use cargo_metadata::{Artifact, Message};

use super::choose::{Choice, Kind, Unit};
use super::runner::runner;
use crate::flags::TargetFlags;

/// A built target, ready to run.
pub(super) struct Built {
    /// The program that runs it, if it does not run directly.
    pub(super) runner: Vec<OsString>,
    /// The program.
    pub(super) executable: PathBuf,
    /// The directory in which cargo would run it, if not the current one.
    pub(super) directory: Option<PathBuf>,
    /// The variables that cargo would add to its environment.
    pub(super) environment: Vec<(OsString, OsString)>,
}

/// Builds the chosen target. Cargo's own messages go to the standard error output as usual.
pub(super) fn build(flags: &TargetFlags, choice: &Choice) -> Result<Built> {
    let runner = runner(flags)?;
    let profile = profile(flags, choice);
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(&cargo);
    match choice.unit {
        Some(Unit::Tests) => command.args(["test", "--no-run"]),
        Some(Unit::Benchmarks) => command.args(["bench", "--no-run"]),
        None => command.arg("build"),
    };
    command.args([
        "--message-format=json-render-diagnostics",
        "--profile",
        profile,
    ]);
    command.args(["--package", &choice.package]);
    command.arg(format!("--{}", choice.kind.flag()));
    // A package has one library.
    command.args((choice.kind != Kind::Lib).then_some(&choice.name));
    add_flags(&mut command, flags);
    command
        .envs(profile_environment(profile))
        .stdout(Stdio::piped());
    let mut child = command
        .spawn()
        .with_context(|| format!("cannot start {}", Path::new(&cargo).display()))?;
    let output = child
        .stdout
        .take()
        .context("the output of cargo was not captured")?;
    let mut artifact = None;
    for message in Message::parse_stream(BufReader::new(output)) {
        match message.context("cannot read the output of cargo")? {
            Message::CompilerArtifact(built) if is_target(&built, choice) => artifact = Some(built),
            _ => {}
        }
    }
    if !child.wait()?.success() {
        bail!(
            "cargo could not build {} '{}'",
            choice.kind.flag(),
            choice.name
        );
    }
    let artifact = artifact
        .with_context(|| format!("cargo built no {} '{}'", choice.kind.flag(), choice.name))?;
    built(artifact, choice, runner)
}

fn profile<'f>(flags: &'f TargetFlags, choice: &Choice) -> &'f str {
    match &flags.profile {
        Some(profile) => profile,
        None if flags.dev => "dev",
        None if choice.is_benchmark() => "bench",
        None => "release",
    }
}

/// Cargo's environment overrides of a profile's settings.
///
/// Debug level 1 has what a profile needs: lines, inlined functions and full names. (With
/// `line-tables-only` inlined functions lose their paths; level 2 adds variables and types.)
fn profile_environment(profile: &str) -> [(String, &'static str); 3] {
    let name = profile.to_uppercase().replace('-', "_");
    [
        (format!("CARGO_PROFILE_{name}_DEBUG"), "1"),
        (format!("CARGO_PROFILE_{name}_STRIP"), "none"),
        (format!("CARGO_PROFILE_{name}_SPLIT_DEBUGINFO"), "off"),
    ]
}

fn add_flags(command: &mut Command, flags: &TargetFlags) {
    for features in &flags.features {
        command.arg("--features").arg(features);
    }
    let without_values = [
        (flags.all_features, "--all-features"),
        (flags.no_default_features, "--no-default-features"),
        (flags.locked, "--locked"),
        (flags.offline, "--offline"),
    ];
    command.args(
        without_values
            .into_iter()
            .filter(|(on, _)| *on)
            .map(|(_, name)| name),
    );
    if let Some(triple) = &flags.target {
        command.arg("--target").arg(triple);
    }
    let paths = [
        ("--manifest-path", &flags.manifest_path),
        ("--target-dir", &flags.target_dir),
    ];
    for (name, path) in paths {
        if let Some(path) = path {
            command.arg(name).arg(path);
        }
    }
}

fn is_target(artifact: &Artifact, choice: &Choice) -> bool {
    artifact.executable.is_some()
        && artifact.target.name == choice.name
        && (artifact.profile.test || choice.unit.is_none())
        && artifact.package_id.repr == choice.package
}

fn built(artifact: Artifact, choice: &Choice, runner: Vec<OsString>) -> Result<Built> {
    let executable: PathBuf = artifact
        .executable
        .context("cargo built no program")?
        .into();
    let package: PathBuf = artifact
        .manifest_path
        .parent()
        .context("the manifest has no directory")?
        .into();
    // `cargo test` and `cargo bench` run in the package's directory, `cargo run` stays put.
    let directory = choice.has_harness().then(|| package.clone());
    let environment = vec![
        ("CARGO_MANIFEST_DIR".into(), package.into_os_string()),
        ("LD_LIBRARY_PATH".into(), library_path(&executable)),
    ];
    Ok(Built {
        runner,
        executable,
        directory,
        environment,
    })
}

/// The library path that `cargo run` sets for programs that link Rust dylibs: the target's folders
/// first.
fn library_path(executable: &Path) -> OsString {
    let folder = executable.parent().unwrap_or(Path::new("."));
    let own = [folder.to_owned(), folder.join("deps")];
    let inherited = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let inherited = std::env::split_paths(&inherited).filter(|path| !path.as_os_str().is_empty());
    std::env::join_paths(own.into_iter().chain(inherited)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_named_as_cargo_names_their_variables() {
        let names = profile_environment("release-lto").map(|(name, _)| name);
        assert_eq!(names[0], "CARGO_PROFILE_RELEASE_LTO_DEBUG");
        assert_eq!(names[1], "CARGO_PROFILE_RELEASE_LTO_STRIP");
    }
}
