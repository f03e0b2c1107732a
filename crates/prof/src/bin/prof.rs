//! The `prof` command.

fn main() -> std::process::ExitCode {
    prof_cli::prof()
}
