//! Damaged files: fewer names, never a panic, and no endless work.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use crate::common::{build, have, offsets_of, options, run};
use object::{Object, ObjectSection};
use prof_model::Module;
use prof_needs::tools;
use prof_symbols::{Query, Source, Symbolizer};

/// A xorshift generator: the same damage each time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }

    /// Overwrites a few bytes of `range`, or cuts the file off within it.
    fn damage(&mut self, bytes: &mut Vec<u8>, range: std::ops::Range<usize>) {
        for _ in 0..=self.below(8) {
            let place = range.start + self.below(range.len());
            if let Some(byte) = bytes.get_mut(place) {
                *byte = match self.below(4) {
                    0 => 0xff,
                    1 => 0,
                    2 => byte.wrapping_add(1),
                    _ => self.below(256) as u8,
                };
            }
        }
        if self.below(10) == 0 {
            bytes.truncate(range.start + self.below(range.len()));
        }
    }
}

const ROUNDS: usize = 600;

#[track_caller]
fn check(program: &Path, offsets: &[u64]) {
    let whole = fs::read(program).unwrap();
    let sections: Vec<std::ops::Range<usize>> = object::File::parse(&*whole)
        .unwrap()
        .sections()
        .filter_map(|section| section.file_range())
        .map(|(start, size)| start as usize..(start + size) as usize)
        .filter(|range| !range.is_empty())
        // Headers and all.
        .chain([0..64, 0..whole.len()])
        .collect();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let module = Module::from_path(program);
    let query = Query {
        source: Source::File(&module),
        addresses: offsets,
    };
    let symbolizer = Symbolizer::new(options(Path::new("/nowhere")));
    for round in 0..ROUNDS {
        let mut bytes = whole.clone();
        let range = sections[round % sections.len()].clone();
        random.damage(&mut bytes, range);
        // Not in place: the file may still be mapped.
        fs::remove_file(program).unwrap();
        fs::write(program, bytes).unwrap();
        let resolved = symbolizer.resolve(&[query]).remove(0);
        assert!(resolved.len() == offsets.len() || !resolved.status().is_named());
    }
}

#[test]
fn dwarf_5_and_4_of_both_compilers() {
    for compiler in ["gcc", "clang"] {
        for flag in ["-gdwarf-4", "-gdwarf-5"] {
            if have(compiler, compiler) {
                let (_directory, program) = build(compiler, &["-g", flag]);
                let offsets = offsets_of(&program, "middle");
                check(&program, &offsets);
            }
        }
    }
}

#[test]
fn compressed_sections() {
    let (directory, program) = build("gcc", &["-g"]);
    let offsets = offsets_of(&program, "middle");
    let flag = "--compress-debug-sections=zlib";
    run("objcopy", &[flag, "program"], directory.path());
    check(&program, &offsets);
}

#[test]
fn packed_symbol_tables() {
    if !tools(&["xz"]) {
        return;
    }
    let (directory, program) = build("gcc", &["-g"]);
    let offsets = offsets_of(&program, "middle");
    let directory = directory.path();
    run("objcopy", &["--strip-debug", "program", "mini"], directory);
    run("xz", &["mini"], directory);
    run("strip", &["program"], directory);
    let add = ["--add-section", ".gnu_debugdata=mini.xz", "program"];
    run("objcopy", &add, directory);
    check(&program, &offsets);
}

#[test]
fn split_units() {
    let (directory, program) = build("gcc", &["-g", "-gsplit-dwarf"]);
    let offsets = offsets_of(&program, "middle");
    let dwo = fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|name| name == "dwo"))
        .unwrap();
    let whole = fs::read(&dwo).unwrap();
    let module = Module::from_path(&program);
    let query = Query {
        source: Source::File(&module),
        addresses: &offsets,
    };
    let symbolizer = Symbolizer::new(options(directory.path()));
    let mut random = Random(7);
    for _ in 0..ROUNDS {
        let mut bytes = whole.clone();
        let all = 0..bytes.len();
        random.damage(&mut bytes, all);
        fs::remove_file(&dwo).unwrap();
        fs::write(&dwo, bytes).unwrap();
        // The program itself is whole: the function always has its name.
        let resolved = symbolizer.resolve(&[query]).remove(0);
        assert_eq!(resolved.named(), offsets.len());
    }
}
