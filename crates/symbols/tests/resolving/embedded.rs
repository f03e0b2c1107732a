//! Embedded symbols: the same results once the files are gone.

#![allow(clippy::unwrap_used)]

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use crate::common::{build, module, offsets_of, options};
use prof_model::{FileIdentity, Module, Modules};
use prof_symbols::{
    AmbiguousPaths, EmbeddedError, EmbeddedSymbols, ModuleStatus, Query, Source, SymbolOptions,
    Symbolizer,
};

#[test]
fn the_same_results_after_the_files_are_gone() {
    let (directory, program) = build("gcc", &["-g"]);
    let module = module(&program);
    let offsets = offsets_of(&program, "middle");
    let gone = Module::from_path("/nowhere/at-all");
    let queries = [
        Query {
            source: Source::File(&module),
            addresses: &offsets,
        },
        Query {
            source: Source::File(&gone),
            addresses: &[16, 32],
        },
    ];
    let answers = Symbolizer::new(options(directory.path())).resolve(&queries);
    let bytes = EmbeddedSymbols::new(&queries, &answers).to_bytes();
    drop(directory);
    assert!(!program.exists());

    let symbols = EmbeddedSymbols::from_bytes(&bytes).unwrap();
    let symbolizer = Symbolizer::new(SymbolOptions::default()).with_embedded(symbols);
    let again = symbolizer.resolve(&queries);
    assert_eq!(again[0].status(), &ModuleStatus::Named);
    assert_eq!(again[0].detail(), answers[0].detail());
    for index in 0..offsets.len() {
        assert_eq!(again[0].frames(index), answers[0].frames(index));
    }
    assert_eq!(again[1].len(), 2);
    let message = again[1].status().reason();
    assert_eq!(
        message,
        "/nowhere/at-all does not exist (on the machine that recorded)"
    );
}

/// Stripped code is called by where its function begins, which only the file's unwind tables tell.
#[test]
fn unnamed_functions_begin_where_they_began() {
    let (directory, program) = build("gcc", &["-g"]);
    let offsets = offsets_of(&program, "middle");
    let is_stripped = Command::new("strip").arg(&program).status();
    assert!(is_stripped.unwrap().success());
    let module = module(&program);
    let query = Query {
        source: Source::File(&module),
        addresses: &offsets,
    };
    let answers = Symbolizer::new(options(directory.path())).resolve(&[query]);
    let start = *offsets.first().unwrap();
    let bytes = EmbeddedSymbols::new(&[query], &answers).to_bytes();
    drop(directory);

    let symbols = EmbeddedSymbols::from_bytes(&bytes).unwrap();
    let symbolizer = Symbolizer::new(SymbolOptions::default()).with_embedded(symbols);
    let [again] = &symbolizer.resolve(&[query])[..] else {
        panic!("not one answer");
    };
    for index in 0..offsets.len() {
        assert_eq!(answers[0].unnamed_start(index), Some(start));
        assert_eq!(again.unnamed_start(index), Some(start));
        assert_eq!(again.frames(index), []);
    }
}

#[test]
fn missing_data_of_a_recording_does_not_come_from_this_machine() {
    let symbolizer =
        Symbolizer::new(SymbolOptions::default()).with_embedded(EmbeddedSymbols::new(&[], &[]));
    let own = Module::from_path(std::env::current_exe().unwrap());
    for source in [Source::Kernel, Source::Jit { pid: 1 }, Source::File(&own)] {
        let addresses = &[0x1000];
        let answer = symbolizer.resolve(&[Query { source, addresses }]).remove(0);
        assert_eq!(answer.status(), &ModuleStatus::NotEmbedded);
    }
}

#[test]
fn damaged_bytes_are_refused_or_read_but_never_trip_it() {
    let (directory, program) = build("gcc", &["-g"]);
    let module = module(&program);
    let query = Query {
        source: Source::File(&module),
        addresses: &offsets_of(&program, "middle"),
    };
    let answers = Symbolizer::new(options(directory.path())).resolve(&[query]);
    let bytes = EmbeddedSymbols::new(&[query], &answers).to_bytes();
    for end in 0..bytes.len() {
        let cut = EmbeddedSymbols::from_bytes(&bytes[..end]);
        assert_eq!(cut.unwrap_err(), EmbeddedError::Damaged, "cut at {end}");
    }
    for place in 0..bytes.len() {
        for flip in [1, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[place] ^= flip;
            if let Ok(symbols) = EmbeddedSymbols::from_bytes(&damaged) {
                let symbolizer = Symbolizer::new(SymbolOptions::default()).with_embedded(symbols);
                assert_eq!(symbolizer.resolve(&[query])[0].len(), query.addresses.len());
            }
        }
    }
}

/// A program without a build id, with `middle` under another name, and offsets in that function.
fn build_without_id(name: &str) -> (tempfile::TempDir, Module, Vec<u64>) {
    let rename = format!("-Dmiddle={name}");
    let (directory, program) = build("gcc", &["-g", "-Wl,--build-id=none", &rename]);
    let offsets = offsets_of(&program, name);
    let inode = std::fs::metadata(&program).unwrap().ino();
    let module = with_inode(&program, inode, 0);
    (directory, module, offsets)
}

fn with_inode(path: &Path, inode: u64, generation: u64) -> Module {
    Module {
        identity: Some(FileIdentity {
            device: (8, 1),
            inode,
            generation,
        }),
        ..Module::from_path(path)
    }
}

fn ambiguous(modules: &[&Module]) -> AmbiguousPaths {
    let mut all = Modules::default();
    for module in modules {
        all.intern((*module).clone());
    }
    AmbiguousPaths::of(&all)
}

/// The outermost function at each address, or nothing.
fn functions(symbolizer: &Symbolizer, module: &Module, addresses: &[u64]) -> Vec<Option<String>> {
    let source = Source::File(module);
    let answer = symbolizer.resolve(&[Query { source, addresses }]).remove(0);
    let last = |index| answer.frames(index).last();
    let names = (0..answer.len()).map(|index| Some(last(index)?.function.to_string()));
    names.collect()
}

/// Stores the symbols of these modules, which are renamed to `path`, and reads them again.
fn stored(path: &Path, modules: &[(&Module, &[u64])]) -> EmbeddedSymbols {
    let query = |&(module, addresses)| Query {
        source: Source::File(module),
        addresses,
    };
    let queries: Vec<_> = modules.iter().map(query).collect();
    let answers = Symbolizer::new(SymbolOptions::default()).resolve(&queries);
    let renamed: Vec<Module> = modules
        .iter()
        .map(|&(module, _)| Module {
            path: path.into(),
            ..module.clone()
        })
        .collect();
    let queries: Vec<_> = queries
        .iter()
        .zip(&renamed)
        .map(|(query, module)| Query {
            source: Source::File(module),
            ..*query
        })
        .collect();
    EmbeddedSymbols::from_bytes(&EmbeddedSymbols::new(&queries, &answers).to_bytes()).unwrap()
}

fn with_stored(symbols: EmbeddedSymbols, ambiguous_paths: AmbiguousPaths) -> Symbolizer {
    let options = SymbolOptions {
        ambiguous_paths,
        ..SymbolOptions::default()
    };
    Symbolizer::new(options).with_embedded(symbols)
}

#[test]
fn two_programs_of_one_path_without_build_ids_keep_their_names() {
    let (_one, alpha, of_alpha) = build_without_id("alpha");
    let (_other, beta, of_beta) = build_without_id("beta");
    let path = Path::new("/app/program");
    let symbols = stored(path, &[(&alpha, &of_alpha), (&beta, &of_beta)]);
    let at_path = |module: &Module| Module {
        path: path.into(),
        ..module.clone()
    };
    let (alpha, beta) = (at_path(&alpha), at_path(&beta));
    let symbolizer = with_stored(symbols, ambiguous(&[&alpha, &beta]));
    let check = |module: &Module, addresses: &[u64], name: Option<&str>| {
        let expected = vec![name.map(str::to_owned); addresses.len()];
        assert_eq!(functions(&symbolizer, module, addresses), expected);
    };
    check(&alpha, &of_alpha, Some("alpha"));
    check(&beta, &of_beta, Some("beta"));
    // The kernel's records of the same file have its generation.
    let inode = beta.identity.unwrap().inode;
    check(&with_inode(path, inode, 77), &of_beta, Some("beta"));
    // A third file of this path.
    check(&with_inode(path, 1, 77), &of_beta, None);
    check(&Module::from_path(path), &of_beta, None);
}

#[test]
fn a_file_that_is_two_modules_has_the_names_of_both() {
    let (directory, program) = build("gcc", &["-g"]);
    let offsets = offsets_of(&program, "middle");
    let (first, rest) = offsets.split_at(1);
    // As perf records it: mapped before the recording began, and again during it.
    let with_generation = |generation| Module {
        build_id: module(&program).build_id,
        ..with_inode(&program, 1, generation)
    };
    let (before, during) = (with_generation(0), with_generation(77));
    let symbols = stored(&program, &[(&before, first), (&during, rest)]);
    drop(directory);
    let symbolizer = with_stored(symbols, ambiguous(&[&before, &during]));
    for module in [&before, &during] {
        let found = functions(&symbolizer, module, &offsets);
        assert!(found.iter().all(Option::is_some), "{found:?}");
    }
}

/// As if two recordings of a program were reported together, of which one carries its symbols.
#[test]
fn addresses_without_stored_symbols_are_looked_up_in_the_file() {
    let (directory, program) = build("gcc", &["-g"]);
    let module = module(&program);
    let middle = offsets_of(&program, "middle");
    let outer = offsets_of(&program, "outer");
    let symbols = stored(&program, &[(&module, &middle)]);
    let symbolizer = with_stored(symbols, AmbiguousPaths::default());
    let mut all = [&middle[..], &outer].concat();
    all.sort_unstable();
    let expected = |of_outer: Option<&str>| -> Vec<Option<String>> {
        let name = |offset| match middle.contains(offset) {
            true => Some("middle".to_owned()),
            false => of_outer.map(str::to_owned),
        };
        all.iter().map(name).collect()
    };
    assert_eq!(
        functions(&symbolizer, &module, &all),
        expected(Some("outer"))
    );
    drop(directory);
    assert_eq!(functions(&symbolizer, &module, &all), expected(None));
    for addresses in [&all, &outer] {
        let source = Source::File(&module);
        let answer = symbolizer.resolve(&[Query { source, addresses }]).remove(0);
        let path = program.clone();
        assert_eq!(answer.status(), &ModuleStatus::Missing { path });
    }
}
