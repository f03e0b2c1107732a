//! The `prof` command.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    prof_cli::prof()
}
