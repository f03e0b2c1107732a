//! The verbs for many machines, which the program `prof-fleet` has.

use std::env;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Error, Result, anyhow};

/// The verbs of `prof-fleet`.
pub(crate) const VERBS: [&str; 4] = ["push", "collect", "query", "data"];

/// Runs `prof-fleet` instead of this program if the first argument is one of its verbs, or if a
/// shell completes a command line with one. It is searched beside this program, then on PATH.
///
/// # Errors
///
/// It cannot be run. Otherwise this returns only if the verb is another one, or if a shell requests
/// completions and there is no `prof-fleet`.
pub(crate) fn run_if_requested() -> Result<()> {
    let typed = prof_console::typed_words().map(|mut words| words.nth(1));
    let is_completing = typed.is_some();
    let verb = typed.unwrap_or_else(|| env::args_os().nth(1));
    let verb = verb.as_ref().and_then(|verb| verb.to_str());
    let Some(verb) = verb.filter(|verb| VERBS.contains(verb)) else {
        return Ok(());
    };
    let error = run(verb);
    if is_completing {
        return Ok(());
    }
    Err(error)
}

/// Runs `prof-fleet`, which has this verb, with the arguments of this program. Returns only if it
/// cannot be run.
pub(crate) fn run(verb: &str) -> Error {
    let beside = env::current_exe().ok();
    let beside = beside.map(|own| own.with_file_name("prof-fleet"));
    let program = beside.filter(|program| program.is_file());
    let error = Command::new(program.unwrap_or("prof-fleet".into()))
        // Its messages name the command that was typed.
        .arg0("prof")
        .args(env::args_os().skip(1))
        .exec();
    anyhow!(
        "cannot run prof-fleet, which does `prof {verb}`: {error}: install it beside prof (`cargo \
         install --path crates/fleet`)"
    )
}
