//! Which machine a target is for, and how its programs run there.

use std::env;
use std::ffi::OsString;
use std::process::Command;

use anyhow::{Result, bail};

use crate::flags::TargetFlags;

/// The words of `CARGO_TARGET_TRIPLE_RUNNER`, which cargo puts before a program of the target.
///
/// # Errors
///
/// The target is another kind of machine, and no runner for it is set.
pub(super) fn runner(flags: &TargetFlags) -> Result<Vec<OsString>> {
    let requested = flags.target.clone();
    let requested = requested.or_else(|| env::var("CARGO_BUILD_TARGET").ok());
    let triple = match &requested {
        Some(triple) => Some(triple.clone()),
        // Asking rustc takes a moment, and few users have a runner.
        None => env::vars_os()
            .any(|(name, _)| is_runner(&name))
            .then(host)
            .flatten(),
    };
    let runner = triple
        .as_deref()
        .and_then(|triple| env::var(variable(triple)).ok());
    let runner: Vec<OsString> = runner
        .iter()
        .flat_map(|words| words.split_whitespace())
        .map(OsString::from)
        .collect();
    match requested {
        Some(triple) if runner.is_empty() && !runs_here(&triple) => bail!(
            "programs for {triple} do not run on this machine ({}-linux): build and record them \
             there, or set a program that runs them in {}",
            env::consts::ARCH,
            variable(&triple)
        ),
        _ => Ok(runner),
    }
}

fn is_runner(name: &OsString) -> bool {
    let name = name.to_string_lossy();
    name.starts_with("CARGO_TARGET_") && name.ends_with("_RUNNER")
}

fn variable(triple: &str) -> String {
    let name = triple.to_uppercase().replace(['-', '.'], "_");
    format!("CARGO_TARGET_{name}_RUNNER")
}

fn runs_here(triple: &str) -> bool {
    let arch = triple.split('-').next().unwrap_or_default();
    arch == env::consts::ARCH && triple.contains("-linux")
}

fn host() -> Option<String> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("-vV").output().ok()?.stdout;
    let version = String::from_utf8(version).ok()?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_named_as_cargo_names_them() {
        assert_eq!(
            variable("thumbv8m.main-none-eabi"),
            "CARGO_TARGET_THUMBV8M_MAIN_NONE_EABI_RUNNER"
        );
        assert!(is_runner(&variable("x86_64-unknown-linux-gnu").into()));
        assert!(!is_runner(&"CARGO_TARGET_DIR".into()));
    }

    #[test]
    fn programs_of_other_machines_do_not_run() {
        let own = format!("{}-unknown-linux-musl", env::consts::ARCH);
        assert!(runs_here(&own));
        assert!(!runs_here("riscv64gc-unknown-linux-gnu"));
        assert!(!runs_here(&own.replace("linux-musl", "freebsd")));
    }
}
