//! The target directory of cargo, and the `prof` in it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The binary under test, built with the profile that this test was built with.
///
/// `PROF=path/to/prof` in the environment tests another one.
///
/// # Panics
/// If it does not build.
pub fn prof() -> &'static Path {
    static PROF: OnceLock<PathBuf> = OnceLock::new();
    PROF.get_or_init(|| match std::env::var_os("PROF") {
        Some(path) => std::path::absolute(path).unwrap(),
        None => build(),
    })
}

/// cargo gives integration tests the binaries of their own package only, so build it; that is
/// quick when it is up to date.
fn build() -> PathBuf {
    let directory = profile_directory();
    let profile = match directory.file_name() {
        Some(name) if name == "debug" => "test".into(),
        Some(name) => name.to_string_lossy(),
        None => "test".into(),
    };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--locked", "--workspace", "--bins"]);
    command.arg("--profile").arg(&*profile);
    command.arg("--target-dir").arg(directory.parent().unwrap());
    command
        .arg("--manifest-path")
        .arg(checkout().join("Cargo.toml"));
    let status = command.status().expect("cargo can be started");
    assert!(status.success(), "prof does not build: {status}");
    directory.join("prof")
}

/// `target/debug` or the like: where the binaries of the profile in use are.
fn profile_directory() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().and_then(Path::parent).unwrap().to_path_buf()
}

/// The folder in which the tests keep their programs for later runs.
pub(crate) fn cache() -> PathBuf {
    let directory = profile_directory().parent().unwrap().join("test-programs");
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

/// The top of the checkout.
pub(crate) fn checkout() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}
