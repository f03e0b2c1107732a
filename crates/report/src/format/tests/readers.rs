//! Other people's readers, and where to find them.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use super::{Stacks, parse_folded};

/// Exactly these: the driver of speedscope's importer looks into its bundle.
const PACKAGES: [&str; 2] = ["speedscope@1.25.0", "@firefox-devtools/profiler-cli@0.10.0"];

const SPEEDSCOPE_DRIVER: &str = include_str!("speedscope.cjs");

/// Whether there is such a program. If not, says so where everybody sees it, and fails under
/// `CI=true`.
pub(super) fn has(program: &str, argument: &str) -> bool {
    let mut command = Command::new(program);
    command.arg(argument).stdin(Stdio::null());
    if command.output().is_ok_and(|output| output.status.success()) {
        return true;
    }
    missing(program);
    false
}

fn missing(what: &str) {
    let in_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(!in_ci, "this machine lacks {what}");
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    // Not eprintln!, which libtest keeps to itself when a test passes.
    let message = format!("\n!!! {test} NOT RUN: this machine lacks {what}\n");
    let _ = std::io::stderr().write_all(message.as_bytes());
}

/// The directory of the npm packages, which the first call installs.
pub(super) fn npm_packages() -> Option<&'static Path> {
    static PACKAGES: OnceLock<Option<PathBuf>> = OnceLock::new();
    if !has("node", "--version") || !has("npm", "--version") {
        return None;
    }
    let directory = PACKAGES.get_or_init(install).as_deref();
    if directory.is_none() {
        missing("the npm packages of readers.rs, or the network to get them");
    }
    directory
}

fn install() -> Option<PathBuf> {
    // target/debug/deps/test-program
    let target = std::env::current_exe().ok()?.ancestors().nth(3)?.to_owned();
    let versions = PACKAGES.join("+").replace(['@', '/'], "-");
    let home = target.join(format!("readers-{versions}"));
    let modules = home.join("node_modules");
    if modules.is_dir() {
        return Some(modules);
    }
    let half = tempfile::tempdir_in(&target).ok()?;
    let flags = [
        "install",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--silent",
        "--prefix",
    ];
    let status = Command::new("npm")
        .args(flags)
        .arg(half.path())
        .args(PACKAGES)
        .stdin(Stdio::null())
        .status();
    if !status.ok()?.success() {
        return None;
    }
    // Fails if another process was faster, which is as good.
    let _ = fs::rename(half.path(), &home);
    modules.is_dir().then_some(modules)
}

/// The output of a program. Panics with its error output if it fails.
pub(super) fn output(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// The stacks that speedscope's importer finds in each of these files, all profiles of a file
/// together. It detects formats by the extension.
pub(super) fn speedscope(suffix: &str, files: &[Vec<u8>]) -> Option<Vec<Stacks>> {
    let packages = npm_packages()?;
    let directory = tempfile::tempdir().unwrap();
    let driver = directory.path().join("driver.cjs");
    fs::write(&driver, SPEEDSCOPE_DRIVER).unwrap();
    let mut command = Command::new("node");
    command
        .arg(driver)
        .arg(packages.join("speedscope/dist/release"));
    for (index, bytes) in files.iter().enumerate() {
        let path = directory.path().join(format!("{index}{suffix}"));
        fs::write(&path, bytes).unwrap();
        command.arg(path);
    }
    let printed = output(&mut command);
    let read: Vec<_> = printed.split_terminator("\n\n").map(parse_folded).collect();
    assert_eq!(read.len(), files.len());
    Some(read)
}
