//! Embedded symbols: the same results once the files are gone.

#![allow(clippy::unwrap_used)]

use crate::common::{build, module, offsets_of, options};
use prof_model::{FileIdentity, Module};
use prof_symbols::{
    EmbeddedError, EmbeddedSymbols, ModuleStatus, Query, Source, SymbolOptions, Symbolizer,
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
        "/nowhere/at-all does not exist (when the recording was archived)"
    );
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

#[test]
fn a_file_that_is_two_modules_has_the_names_of_both() {
    let (directory, program) = build("gcc", &["-g"]);
    let offsets = offsets_of(&program, "middle");
    let (first, rest) = offsets.split_at(1);
    // As perf records it: mapped before the recording began, and again during it.
    let of_generation = |generation| Module {
        identity: Some(FileIdentity {
            device: (8, 1),
            inode: 1,
            generation,
        }),
        ..module(&program)
    };
    let modules = [of_generation(0), of_generation(77)];
    let query = |module, addresses| Query {
        source: Source::File(module),
        addresses,
    };
    let queries = [query(&modules[0], first), query(&modules[1], rest)];
    let answers = Symbolizer::new(options(directory.path())).resolve(&queries);
    let symbols = EmbeddedSymbols::new(&queries, &answers);
    drop(directory);
    let symbolizer = Symbolizer::new(SymbolOptions::default()).with_embedded(symbols);
    for module in &modules {
        let again = symbolizer.resolve(&[query(module, &offsets)]).remove(0);
        assert_eq!(again.named(), offsets.len());
    }
}
