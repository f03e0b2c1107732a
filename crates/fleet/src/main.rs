//! The `prof-fleet` command: `prof push` and its sisters run it.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    prof_fleet::run()
}
