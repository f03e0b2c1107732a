//! Uprobes by name: where functions are in files, against nm and readelf, and whether the kernel
//! counts their calls there.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::{Path, PathBuf};
use std::process::Command;

use prof_events::counting::{AttrOptions, Inherit, Place, RawCounter};
use prof_events::parsing::{Catalog, EventSpec, Family};
use prof_events::{HeldCommand, Program, Signals};
use prof_needs::tools;

const PROGRAM: &str = r#"
namespace shapes {
    struct Box { int side; __attribute__((noinline)) int area(int times) { asm volatile(""); return side * side * times; } };
    __attribute__((noinline)) int twice(int x) { asm volatile(""); return 2 * x; }
    __attribute__((noinline)) int twice(long x) { asm volatile(""); return (int)(2 * x); }
}
static __attribute__((noinline)) int hidden(int x) { asm volatile(""); return x + 1; }
extern "C" {
    int table = 7;
    int getppid();
    __attribute__((noinline)) int plain(int x) { asm volatile(""); return x + 3; }
    typedef int (*work)(int);
    static int one(int x) { return x; }
    static work choose() { return one; }
    __attribute__((ifunc("_ZL6choosev"))) int chosen(int);
}
int main() {
    shapes::Box box = {3};
    int sum = table;
    for (int i = 0; i < 100; i++) sum += plain(i) + hidden(i) + box.area(i) + shapes::twice(i) + shapes::twice((long)i);
    sum += getppid();
    return sum == 0;
}
"#;

/// A program built from the text, and the folder that it goes with.
struct Built {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

fn build(options: &[&str]) -> Built {
    let folder = tempfile::tempdir().unwrap();
    let (source, path) = (
        folder.path().join("program.cpp"),
        folder.path().join("program"),
    );
    // `choose` is found by its C name.
    std::fs::write(&source, PROGRAM.replace("_ZL6choosev", "choose")).unwrap();
    let mut compile = Command::new("g++");
    compile
        .args(["-O1", "-w"])
        .args(options)
        .arg("-o")
        .arg(&path)
        .arg(&source);
    assert!(compile.status().unwrap().success());
    Built {
        _folder: folder,
        path,
    }
}

fn parse(text: &str) -> Result<EventSpec, String> {
    let groups = Catalog::system()
        .parse(text)
        .map_err(|error| error.to_string())?;
    Ok(groups[0].events[0].clone())
}

fn spec(text: &str) -> EventSpec {
    parse(text).unwrap_or_else(|error| panic!("{error}"))
}

fn output(command: &str, arguments: &[&str], file: &Path) -> String {
    let output = Command::new(command)
        .args(arguments)
        .arg(file)
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// The file offset of a function by the output of nm and readelf.
fn offset_by_binutils(file: &Path, symbol: &str) -> u64 {
    let hex = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
    let table = output("nm", &[], file);
    let line = table
        .lines()
        .find(|line| line.split_whitespace().nth(2) == Some(symbol))
        .unwrap();
    let address = hex(line.split_whitespace().next().unwrap());
    let segments = output("readelf", &["-lW"], file);
    let code = segments
        .lines()
        .find(|line| line.trim().starts_with("LOAD") && line.contains("E 0x"))
        .unwrap();
    let fields: Vec<&str> = code.split_whitespace().collect();
    address - hex(fields[2]) + hex(fields[1])
}

#[test]
fn functions_are_where_binutils_says() {
    if !tools(&["g++"]) {
        return;
    }
    for options in [&[][..], &["-static"], &["-no-pie"]] {
        let program = build(options);
        let file = program.path.display();
        let check = |typed: &str, symbol: &str, offset: u64| {
            let spec = spec(&format!("uprobe:{file}:{typed}"));
            let expected = offset_by_binutils(&program.path, symbol) + offset;
            assert_eq!(spec.encoding.config2, expected, "{typed} {options:?}");
            assert_eq!(
                spec.encoding.path.unwrap().to_bytes(),
                program.path.to_str().unwrap().as_bytes()
            );
        };
        check("plain", "plain", 0);
        check("main", "main", 0);
        check("hidden", "_ZL6hiddeni", 0);
        check("hidden(int)", "_ZL6hiddeni", 0);
        check("_ZL6hiddeni", "_ZL6hiddeni", 0);
        check("shapes::Box::area", "_ZN6shapes3Box4areaEi", 0);
        check("Box::area", "_ZN6shapes3Box4areaEi", 0);
        check("shapes::twice(long)", "_ZN6shapes5twiceEl", 0);
        check("plain+0x1", "plain", 1);
        check("'plain'", "plain", 0);
    }
}

#[test]
fn an_address_is_that_of_the_symbol_table() {
    if !tools(&["g++"]) {
        return;
    }
    let program = build(&[]);
    let file = program.path.display();
    let table = output("nm", &[], &program.path);
    let line = table.lines().find(|line| line.ends_with(" plain")).unwrap();
    let address = line
        .split_whitespace()
        .next()
        .unwrap()
        .trim_start_matches('0');
    let by_name = spec(&format!("uprobe:{file}:plain"));
    let by_address = spec(&format!("uprobe:{file}:0x{address}"));
    assert_eq!(by_name.encoding, by_address.encoding);
}

#[test]
fn functions_that_cannot_be_probed_are_reported() {
    if !tools(&["g++"]) {
        return;
    }
    let program = build(&[]);
    let file = program.path.display();
    let check = |event: &str, expected: &str| {
        let error = parse(event).unwrap_err();
        assert!(error.contains(expected), "{event}: {error}");
    };
    let in_file =
        |symbol: &str, expected: &str| check(&format!("uprobe:{file}:{symbol}"), expected);
    in_file("plian", "has no function \"plian\": did you mean plain?");
    in_file(
        "shapes::twice",
        "has 2 functions \"shapes::twice\": choose one, such as shapes::twice(int) or shapes::twice(long)",
    );
    in_file("table", "table is data, not a function");
    in_file("getppid", "is not in this file, but in a library");
    in_file("is an IFUNC", "IFUNC");
    in_file("plain+0x1000", "an offset of 4096 is beyond it");
    in_file("0x3", "0x3 is outside the code");
    in_file("0xffffffffffffffff+1", "outside the code");
    in_file("", "a function's name, or an address");
    in_file("'plain", "a closing quote");
    check(&format!("uprobe:{file}"), "a colon and a function's name");
    check(&format!("uretprobe:{file}:plain+1"), "not an offset");
    check("uprobe::f", "a file to probe");
    check(
        "uprobe:/no/such/file:f",
        "there is no file \"/no/such/file\"",
    );
    check(
        "uprobe:no-such-library.so:f",
        "looked in the libraries of ld.so",
    );
    check("uprobe:/etc:f", "it is a directory");
    check("uprobe:/etc/passwd:f", "not an ELF file");
    check("uprobe:/dev/null:f", "not a regular file");
    let stripped = build(&["-s"]);
    check(
        &format!("uprobe:{}:plain", stripped.path.display()),
        "stripped",
    );
    let reported = parse(&format!("cs,uprobe:{file}:plian:u")).unwrap_err();
    let caret = reported.lines().last().unwrap();
    assert_eq!(
        caret.find('^'),
        Some(2 + format!("cs,uprobe:{file}:").len())
    );
}

#[test]
fn a_damaged_file_is_refused_or_read() {
    if !tools(&["g++"]) {
        return;
    }
    let program = build(&[]);
    let bytes = std::fs::read(&program.path).unwrap();
    let damaged = program.path.with_extension("damaged");
    for length in (0..bytes.len()).step_by(bytes.len() / 64) {
        std::fs::write(&damaged, &bytes[..length]).unwrap();
        let _ = parse(&format!("uprobe:{}:plain", damaged.display()));
    }
    for seed in 0..200_usize {
        let mut wild = bytes.clone();
        for step in 0..64 {
            let at = (seed * 7919 + step * 104_729) % if seed % 2 == 0 { 4096 } else { wild.len() };
            wild[at] ^= (seed * 31 + step * 17 + 1) as u8;
        }
        std::fs::write(&damaged, &wild).unwrap();
        let _ = parse(&format!("uprobe:{}:plain", damaged.display()));
    }
}

#[test]
fn libraries_go_by_their_names() {
    let by_name = spec("uprobe:libc.so.6:malloc");
    let short = spec("uprobe:libc:malloc");
    assert_eq!(by_name.encoding, short.encoding);
    assert_eq!(by_name.family, Family::Uprobe);
    let returning = spec("uretprobe:libc:malloc");
    assert_eq!(returning.family, Family::Uretprobe);
    assert_eq!(returning.encoding.config, 1);
    assert_eq!(returning.encoding.config2, by_name.encoding.config2);
}

/// How often the kernel counts the event while the program runs.
fn counted(event: &str, program: &Path) -> u64 {
    let signals = Signals::block().unwrap();
    let held = HeldCommand::fork(&Program::new([program]), &signals).unwrap();
    let options = AttrOptions {
        inherit: Inherit::Children,
        enable_on_exec: true,
        group_read: false,
        enabled: false,
    };
    let counter = RawCounter::open(&spec(event), Place::Thread(held.pid()), None, options).unwrap();
    held.release().unwrap().wait().unwrap();
    counter.read().unwrap().unwrap().value
}

#[test]
fn calls_are_counted_where_the_name_points() {
    if !tools(&["g++"]) {
        return;
    }
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: uprobes are for root");
        return;
    }
    let program = build(&[]);
    let file = program.path.display();
    let check = |event: String, expected: u64| {
        assert_eq!(counted(&event, &program.path), expected, "{event}")
    };
    check(format!("uprobe:{file}:plain"), 100);
    check(format!("uprobe:{file}:shapes::Box::area"), 100);
    check(format!("uretprobe:{file}:hidden"), 100);
    check(format!("uprobe:{file}:main:u"), 1);
    check("uprobe:libc.so.6:getppid".into(), 1);
}

mod shapes {
    #[inline(never)]
    pub(crate) fn probed(times: u32) -> u32 {
        std::hint::black_box(times) + 1
    }
}

#[test]
fn rust_functions_go_by_their_paths() {
    let own = std::env::current_exe().unwrap();
    let by_path = spec(&format!("uprobe:{}:uprobes::shapes::probed", own.display()));
    let by_end = spec(&format!("uprobe:{}:shapes::probed", own.display()));
    assert_eq!(by_path.encoding, by_end.encoding);
    let table = output("nm", &["--demangle"], &own);
    let line = table
        .lines()
        .find(|line| line.contains(" uprobes::shapes::probed"))
        .unwrap();
    let address = line
        .split_whitespace()
        .next()
        .unwrap()
        .trim_start_matches('0');
    let by_address = spec(&format!("uprobe:{}:0x{address}", own.display()));
    assert_eq!(by_path.encoding, by_address.encoding);
    if rustix::process::geteuid().is_root() {
        let options = AttrOptions {
            enabled: true,
            ..AttrOptions::default()
        };
        let counter = RawCounter::open(&by_path, Place::ThisThread, None, options).unwrap();
        assert_eq!((0..7).map(shapes::probed).sum::<u32>(), 28);
        assert_eq!(counter.read().unwrap().unwrap().value, 7);
    }
}
