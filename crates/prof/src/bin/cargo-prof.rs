//! The `cargo prof` command: runs the `prof` beside it under its own name.
//!
//! All the code is in one binary, so that it is built and optimized once.
#![forbid(unsafe_code)]

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let own = std::env::current_exe();
    let beside = own.map(|own| own.with_file_name("prof"));
    let prof = beside.ok().filter(|prof| prof.is_file());
    let mut command = Command::new(prof.unwrap_or("prof".into()));
    let error = command
        .arg0("cargo-prof")
        .args(std::env::args_os().skip(1))
        .exec();
    // If the message cannot be written, nothing else can be done.
    let _ = writeln!(
        std::io::stderr(),
        "prof: error: cannot run {}: {error}: install prof and cargo-prof together",
        command.get_program().display()
    );
    ExitCode::FAILURE
}
