//! The `prof` command, and `cargo prof` if it is called `cargo-prof`.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    let name = std::env::args_os().next().unwrap_or_default();
    match std::path::Path::new(&name).file_name() {
        Some(name) if name == "cargo-prof" => prof_cli::cargo_prof(),
        _ => prof_cli::prof(),
    }
}
