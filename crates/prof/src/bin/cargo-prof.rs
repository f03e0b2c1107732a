//! The `cargo prof` command.

fn main() -> std::process::ExitCode {
    prof_cli::cargo_prof()
}
