//! Small real programs, and their expected symbols.
#![allow(dead_code, reason = "each test program uses some of it")]
#![allow(clippy::unwrap_used, clippy::print_stderr, unreachable_pub)]

use std::path::{Path, PathBuf};
use std::process::Command;

use object::{Object, ObjectSegment, ObjectSymbol};
use prof_model::{BuildId, Module};
use prof_symbols::{Query, Resolved, Source, SymbolFrame, SymbolOptions, Symbolizer};

/// `outer` calls `middle`, `middle` has `inner` inlined into it. Line numbers matter.
pub const PROGRAM: &str = "\
#include <stdio.h>
volatile int sink;
static inline __attribute__((always_inline)) void inner(int n) {
    for (int i = 0; i < n; i++)
        sink += i * n;
}
__attribute__((noinline)) void middle(int n) {
    sink++;
    inner(n);
    sink++;
}
__attribute__((noinline)) void outer(int n) {
    middle(n);
    sink++;
}
int main(int argc, char **argv) {
    outer(argc);
    printf(\"%d\\n\", sink);
    return 0;
}
";

/// Whether a tool that a test needs is there. On CI it has to be; elsewhere the test says that it
/// could not run.
#[track_caller]
pub fn have(tool: &str, package: &str) -> bool {
    let found = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .any(|directory| directory.join(tool).exists());
    or_say(
        found,
        &format!("{tool} is missing: apt-get install {package}"),
    )
}

/// Whether this user can run rustc, which another user's rustup may have installed.
#[track_caller]
pub fn have_rustc() -> bool {
    let output = Command::new("rustc").arg("--version").output();
    let works = output.is_ok_and(|output| output.status.success());
    or_say(works, "this user can't run rustc")
}

#[track_caller]
fn or_say(met: bool, lack: &str) -> bool {
    let in_ci = std::env::var_os("CI").is_some();
    assert!(met || !in_ci, "{lack}");
    if !met {
        eprintln!("NOT TESTED: {lack}");
    }
    met
}

/// Runs a command and insists on its success.
#[track_caller]
pub fn run(program: &str, arguments: &[&str], directory: &Path) -> String {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A directory with `program` in it, compiled from [`PROGRAM`] with these flags.
pub fn build(compiler: &str, flags: &[&str]) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("program.c"), PROGRAM).unwrap();
    let mut arguments = vec!["-O1", "-Wl,--build-id", "program.c", "-o", "program"];
    arguments.extend(flags);
    run(compiler, &arguments, directory.path());
    let program = directory.path().join("program");
    (directory, program)
}

/// The module that a recording has for this file: path and build id.
pub fn module(path: &Path) -> Module {
    let bytes = std::fs::read(path).unwrap();
    let object = object::File::parse(&*bytes).unwrap();
    let id = object.build_id().unwrap().and_then(BuildId::new);
    Module {
        build_id: id,
        ..Module::from_path(path)
    }
}

/// The file offsets of all bytes of a function; `path` must have a symbol table.
pub fn offsets_of(path: &Path, function: &str) -> Vec<u64> {
    let bytes = std::fs::read(path).unwrap();
    let object = object::File::parse(&*bytes).unwrap();
    let symbol = object
        .symbols()
        .find(|symbol| symbol.name() == Ok(function))
        .unwrap_or_else(|| panic!("{function} not found"));
    (symbol.address()..symbol.address() + symbol.size())
        .map(|address| offset_of(&object, address).unwrap())
        .collect()
}

/// The linker's name of the function whose name contains `part`.
pub fn symbol_like(path: &Path, part: &str) -> String {
    let bytes = std::fs::read(path).unwrap();
    let object = object::File::parse(&*bytes).unwrap();
    let mut names = object.symbols().filter_map(|symbol| symbol.name().ok());
    let name = names.find(|name| name.contains(part));
    name.unwrap_or_else(|| panic!("{part} not found"))
        .to_owned()
}

/// The file offset of an address as the file's tables state it.
pub fn offset_of(object: &object::File<'_>, address: u64) -> Option<u64> {
    object.segments().find_map(|segment| {
        let distance = address.checked_sub(segment.address())?;
        (distance < segment.size()).then(|| segment.file_range().0 + distance)
    })
}

/// Options that look for debug files in this directory only.
pub fn options(debug_dir: &Path) -> SymbolOptions {
    SymbolOptions {
        debug_dirs: vec![debug_dir.into()],
        ..SymbolOptions::default()
    }
}

/// Names these offsets of one module.
pub fn resolve(options: SymbolOptions, module: &Module, offsets: &[u64]) -> Resolved {
    let query = Query {
        source: Source::File(module),
        addresses: offsets,
    };
    let mut answers = Symbolizer::new(options).resolve(&[query]);
    assert_eq!(answers.len(), 1);
    answers.remove(0)
}

/// `inner:5 middle:9`, innermost first; the lines are left out where there are none.
pub fn chain(frames: &[SymbolFrame]) -> String {
    let frame = |frame: &SymbolFrame| match frame.line {
        Some(line) => format!("{}:{line}", frame.function),
        None => frame.function.to_string(),
    };
    frames.iter().map(frame).collect::<Vec<_>>().join(" ")
}

/// Every distinct chain of a function's addresses.
pub fn chains(resolved: &Resolved) -> Vec<String> {
    let mut chains: Vec<_> = (0..resolved.len())
        .map(|index| chain(resolved.frames(index)))
        .collect();
    chains.sort();
    chains.dedup();
    chains
}
