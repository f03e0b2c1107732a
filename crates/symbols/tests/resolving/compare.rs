//! The same chains of inlined functions, with the same lines, as `llvm-symbolizer --inlines`.
//!
//! The differences that are meant are described in docs/symbols.md; everything else fails.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{have, module, offset_of, resolve, run};
use object::{Object, ObjectSection, ObjectSymbol};
use prof_symbols::{Demangle, Resolved, SymbolOptions, demangle};

/// A function, its file and its line, as `llvm-symbolizer` prints them.
type Frame = (String, String, u32);

/// How many addresses of the program's code are compared.
const ADDRESSES: usize = 10_000;

struct Comparison {
    /// For each name, the address of its function.
    places: HashMap<String, u64>,
    /// The addresses of symbols without a size.
    labels: HashSet<u64>,
    /// How many chains were equal, or different for an accepted reason.
    counts: BTreeMap<&'static str, usize>,
}

#[track_caller]
fn check(program: &Path) {
    let bytes = fs::read(program).unwrap();
    let object = object::File::parse(&*bytes).unwrap();
    let addresses = addresses(&object);
    let offsets: Vec<u64> = addresses
        .iter()
        .map(|&address| offset_of(&object, address).unwrap())
        .collect();
    let options = SymbolOptions {
        demangle: Demangle::None,
        ..SymbolOptions::default()
    };
    let ours = resolve(options, &module(program), &offsets);
    let theirs = llvm(program, &addresses);
    assert_eq!(theirs.len(), addresses.len());
    let mut comparison = Comparison::new(&ours.file().map(fs::read).unwrap().unwrap(), &object);
    for (index, (address, theirs)) in addresses.iter().zip(&theirs).enumerate() {
        let ours = chain(&ours, index);
        let verdict = comparison.compare(&ours, theirs);
        let Some(verdict) = verdict else {
            panic!("{address:#x}\nours:   {ours:#?}\ntheirs: {theirs:#?}");
        };
        *comparison.counts.entry(verdict).or_default() += 1;
    }
    println!("{}: {:?}", program.display(), comparison.counts);
    let same = comparison.counts.get("same").copied().unwrap_or(0);
    assert!(same * 10 > addresses.len() * 7, "{:?}", comparison.counts);
}

/// Pseudo-random addresses in all code, the same each time.
fn addresses(object: &object::File<'_>) -> Vec<u64> {
    let text = object.section_by_name(".text").unwrap();
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut addresses: Vec<u64> = (0..ADDRESSES)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            text.address() + state % text.size()
        })
        .collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

fn chain(resolved: &Resolved, index: usize) -> Vec<Frame> {
    let frames = resolved.frames(index).iter();
    frames
        .map(|frame| {
            let file = frame.file.as_deref().unwrap_or("??").to_owned();
            (frame.function.to_string(), file, frame.line.unwrap_or(0))
        })
        .collect()
}

/// The result of `llvm-symbolizer` for each address.
fn llvm(program: &Path, addresses: &[u64]) -> Vec<Vec<Frame>> {
    let mut child = Command::new("llvm-symbolizer")
        .args(["--inlines", "--no-demangle", "--obj"])
        .arg(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input: String = addresses.iter().map(|a| format!("{a:#x}\n")).collect();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.trim_end().split("\n\n").map(frames).collect()
}

fn frames(block: &str) -> Vec<Frame> {
    let lines: Vec<&str> = block.lines().collect();
    lines
        .chunks_exact(2)
        .map(|pair| {
            let mut place = pair[1].rsplitn(3, ':');
            let (_column, line) = (place.next(), place.next().unwrap());
            let file = place.next().unwrap();
            (pair[0].to_owned(), undoubled(file), line.parse().unwrap())
        })
        .collect()
}

/// `./io/./io/file.c` is `./io/file.c`: a relative compilation directory is also the line table's
/// directory 0, and LLVM puts the one before the other.
fn undoubled(file: &str) -> String {
    let parts: Vec<&str> = file.splitn(5, '/').collect();
    match parts[..] {
        [".", a, ".", b, rest] if a == b => format!("./{a}/{rest}"),
        _ => file.to_owned(),
    }
}

impl Comparison {
    fn new(symbols: &[u8], program: &object::File<'_>) -> Self {
        let object = object::File::parse(symbols).unwrap();
        let mut this = Self {
            places: HashMap::new(),
            labels: HashSet::new(),
            counts: BTreeMap::new(),
        };
        for symbol in object.symbols().chain(program.dynamic_symbols()) {
            let Ok(name) = symbol.name() else { continue };
            if symbol.size() == 0 {
                this.labels.insert(symbol.address());
            }
            this.places.insert(name.to_owned(), symbol.address());
        }
        this
    }

    /// The reason why two chains count as equal; `None` if they do not.
    fn compare(&self, ours: &[Frame], theirs: &[Frame]) -> Option<&'static str> {
        if ours == theirs {
            return Some("same");
        }
        // Padding between functions has lines but belongs to none.
        if ours.is_empty() {
            return match theirs {
                [(name, ..)] if name == "??" => Some("no function"),
                // LLVM takes what has no size to go on to the next function.
                [(name, ..)] if self.is_unsized(name) => Some("beyond its code"),
                _ => None,
            };
        }
        if ours.len() != theirs.len() {
            return None;
        }
        let mut verdict = "same";
        for (ours, theirs) in ours.iter().zip(theirs) {
            if ours.2 != theirs.2 {
                return None;
            }
            // Line 0 is "no line": the file is then the unit's, which proves nothing.
            if ours.1 != theirs.1 {
                if ours.2 != 0 {
                    return None;
                }
                verdict = "line 0";
            }
        }
        let (our_outer, our_inlined) = ours.split_last()?;
        let (their_outer, their_inlined) = theirs.split_last()?;
        let names = |frames: &[Frame]| frames.iter().map(|f| f.0.clone()).collect::<Vec<_>>();
        if names(our_inlined) != names(their_inlined) {
            return None;
        }
        match (&our_outer.0, &their_outer.0) {
            (ours, theirs) if ours == theirs => Some(verdict),
            (ours, theirs) if demangle(ours) == demangle(theirs) => Some("variant"),
            (ours, theirs) if self.are_aliases(ours, theirs) => Some("alias"),
            (ours, theirs) if self.is_label(ours, theirs) => Some("label"),
            // Symbols without a type, which LLVM leaves out.
            (ours, theirs) if theirs == "??" && self.places.contains_key(ours) => Some("untyped"),
            _ => None,
        }
    }

    fn is_unsized(&self, name: &str) -> bool {
        self.places
            .get(name)
            .is_some_and(|at| self.labels.contains(at))
    }

    /// Whether `theirs` is a label within our function, as assembly has them.
    fn is_label(&self, ours: &str, theirs: &str) -> bool {
        let (ours, theirs) = (self.places.get(ours), self.places.get(theirs));
        ours < theirs && theirs.is_some_and(|theirs| self.labels.contains(theirs))
    }

    /// Whether two names are of one address: C's aliases, folded functions.
    fn are_aliases(&self, ours: &str, theirs: &str) -> bool {
        let place = |name: &str| self.places.get(name).copied();
        match (place(ours), place(theirs)) {
            (Some(ours), Some(theirs)) => ours == theirs,
            _ => false,
        }
    }
}

#[test]
fn a_large_rust_program() {
    // This one: with tests, debug info and all dependencies it has some 20 MB of DWARF.
    if have("llvm-symbolizer", "llvm") {
        check(&std::env::current_exe().unwrap());
    }
}

fn check_cpp(compiler: &str) {
    if !have("llvm-symbolizer", "llvm") || !have(compiler, compiler) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let source = include_str!("common/templates.cc");
    fs::write(directory.path().join("templates.cc"), source).unwrap();
    let flags = ["-std=c++17", "-O2", "-g", "-pthread", "templates.cc", "-o"];
    run(
        compiler,
        &[&flags[..], &["templates"]].concat(),
        directory.path(),
    );
    check(&directory.path().join("templates"));
}

#[test]
fn a_cpp_program_of_gcc() {
    check_cpp("g++");
}

#[test]
fn a_cpp_program_of_clang() {
    check_cpp("clang++");
}

#[test]
fn the_c_library() {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let libc = maps.lines().find_map(|line| {
        Some(line.split_ascii_whitespace().nth(5)?).filter(|p| p.contains("/libc.so"))
    });
    let libc = Path::new(libc.unwrap());
    if have("llvm-symbolizer", "llvm") && has_debug_file(libc) {
        check(libc);
    }
}

fn has_debug_file(program: &Path) -> bool {
    let id = module(program).build_id.unwrap().to_string();
    let path = format!("/usr/lib/debug/.build-id/{}/{}.debug", &id[..2], &id[2..]);
    crate::common::have(&path, "libc6-dbg")
}
