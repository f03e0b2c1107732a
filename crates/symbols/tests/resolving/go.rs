//! Go programs by the tables of Go's runtime: the same functions, lines and inlined calls as by
//! DWARF.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::fs;
use std::path::Path;

use object::{Object, ObjectSymbol, SymbolKind};
use prof_model::Module;
use prof_symbols::{Demangle, Detail, Resolved, SymbolFrame, SymbolOptions};

use crate::common::{have, module, offset_of, resolve, run};

/// Calls that are inlined into each other, in several files and packages.
const PROGRAM: &str = "
package main

import (
	\"fmt\"
	\"os\"
	\"sort\"
	\"strings\"
)

type pair struct{ name string; value int }

func double(n int) int { return 2 * n }
func next(n int) int { return double(n) + 1 }

func main() {
	var pairs []pair
	for i := range os.Args[0] {
		pairs = append(pairs, pair{strings.Repeat(\"a\", i), next(i)})
	}
	sort.Slice(pairs, func(i, j int) bool { return pairs[i].value < pairs[j].value })
	fmt.Println(len(pairs), next(len(os.Args)))
}
";

fn build(folder: &Path, name: &str, options: &[&str]) -> Module {
    fs::write(folder.join("main.go"), PROGRAM).unwrap();
    let cache = format!(
        "GOCACHE={}",
        std::env::temp_dir().join("prof-tests-go").display()
    );
    let path = format!("GOPATH={}", folder.join("go").display());
    let mut words = vec![&*cache, &*path, "GO111MODULE=off", "go", "build"];
    words.extend(options);
    words.extend(["-o", name, "main.go"]);
    run("env", &words, folder);
    module(&folder.join(name))
}

/// Offsets all over the functions of a program that has symbols.
fn offsets(program: &Path) -> Vec<u64> {
    const STEP: usize = 13;
    let bytes = fs::read(program).unwrap();
    let object = object::File::parse(&*bytes).unwrap();
    let functions = object
        .symbols()
        .filter(|it| it.kind() == SymbolKind::Text && it.size() > 0);
    let ranges = functions.map(|it| it.address()..it.address() + it.size());
    let mut all: Vec<u64> = ranges.flat_map(|range| range.step_by(STEP)).collect();
    all.sort_unstable();
    all.dedup();
    let places = all
        .iter()
        .filter_map(|&address| offset_of(&object, address));
    places.step_by(7).collect()
}

fn names(module: &Module, offsets: &[u64]) -> Resolved {
    let options = SymbolOptions {
        demangle: Demangle::None,
        ..SymbolOptions::default()
    };
    resolve(options, module, offsets)
}

/// The linker's names of assembly say by which convention it is called.
fn equal((ours, theirs): (&SymbolFrame, &SymbolFrame)) -> bool {
    let name = theirs.function.trim_end_matches(".abi0");
    // DWARF makes all paths absolute, also those that are none.
    let place = |frame: &SymbolFrame| {
        let file = frame
            .file
            .as_deref()
            .map(|file| file.trim_start_matches("./").to_owned());
        (file, frame.line, frame.inlined)
    };
    *ours.function == *name && place(ours) == place(theirs)
}

#[test]
fn a_stripped_program_has_the_names_of_its_debug_info() {
    if !have("go", "golang-go") || !have("gcc", "gcc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // A linker of C puts the tables among other data, and leaves relocations in place of pointers.
    let by_c = ["-buildmode=pie", "-ldflags=-linkmode=external"];
    for (kind, options) in [
        ("exe", &[][..]),
        ("pie", &["-buildmode=pie"]),
        ("external", &by_c),
    ] {
        let whole = build(folder.path(), kind, options);
        let program = folder.path().join(kind);
        let mut offsets = offsets(&program);
        let by_dwarf = names(&whole, &offsets);
        let is_c = |index| {
            let frames: &[SymbolFrame] = by_dwarf.frames(index);
            let files = frames.iter().filter_map(|frame| frame.file.as_deref());
            files
                .into_iter()
                .any(|file| file.ends_with(['c', 'S', 'h']))
        };
        let mut indices = 0..;
        offsets.retain(|_| !indices.next().is_some_and(is_c));
        let by_dwarf = names(&whole, &offsets);
        let stripped = folder.path().join(format!("{kind}-stripped"));
        let words = [kind, "-o", stripped.to_str().unwrap()];
        run("strip", &words, folder.path());
        let mut without_headers = fs::read(&stripped).unwrap();
        // `e_shoff`, `e_shnum` and `e_shstrndx`: no section headers.
        without_headers[0x28..0x30].fill(0);
        without_headers[0x3c..0x40].fill(0);
        let bare = folder.path().join(format!("{kind}-bare"));
        fs::write(&bare, without_headers).unwrap();
        for file in [&stripped, &bare] {
            let by_go = names(&Module::from_path(file), &offsets);
            assert_eq!(by_go.detail(), Detail::Inlines);
            assert!(offsets.len() > 5_000, "{}", offsets.len());
            let is_same = |index: &usize| {
                let (ours, theirs) = (by_go.frames(*index), by_dwarf.frames(*index));
                ours.len() == theirs.len() && ours.iter().zip(theirs).all(equal)
            };
            let same = (0..offsets.len()).filter(is_same).count();
            let differs = (0..offsets.len()).find(|index| !is_same(index));
            let shown = differs.map(|index| (by_go.frames(index), by_dwarf.frames(index)));
            println!("{}: {same} of {}", file.display(), offsets.len());
            assert!(
                same * 1000 > offsets.len() * 995,
                "{same} of {}: {shown:#?}",
                offsets.len()
            );
            let inlined = (0..offsets.len()).filter(|&index| by_go.frames(index).len() > 1);
            assert!(inlined.count() * 20 > offsets.len());
        }
    }
}
