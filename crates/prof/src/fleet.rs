//! The verbs for many machines, which are another program's: `prof-fleet`.

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Result, anyhow};

/// The verbs of `prof-fleet`.
pub(crate) const VERBS: [&str; 4] = ["push", "collect", "query", "data"];

/// Runs `prof-fleet` in the place of this program if the first argument is one of its verbs: that
/// beside this program, or else that on PATH.
///
/// # Errors
///
/// When it cannot be run; otherwise this returns only if the verb is another.
pub(crate) fn run_if_asked() -> Result<()> {
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    let verb = arguments.first().and_then(|verb| verb.to_str());
    let Some(verb) = verb.filter(|verb| VERBS.contains(verb)) else {
        return Ok(());
    };
    let beside = env::current_exe().ok();
    let beside = beside.map(|own| own.with_file_name("prof-fleet"));
    let program = beside.filter(|program| program.is_file());
    let error = Command::new(program.unwrap_or("prof-fleet".into()))
        .args(&arguments)
        .exec();
    Err(anyhow!(
        "cannot run prof-fleet, which does `prof {verb}`: {error}: install it beside prof (`cargo \
         install --path crates/fleet`)"
    ))
}
