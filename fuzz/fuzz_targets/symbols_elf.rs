//! Any bytes as an ELF file with DWARF: fewer names, never a panic.
#![no_main]

use std::io::Write;

use libfuzzer_sys::fuzz_target;
use prof_model::Module;
use prof_symbols::{Query, Source, SymbolOptions, Symbolizer};

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut file) = tempfile::NamedTempFile::new_in("/dev/shm") else {
        return;
    };
    if file.write_all(bytes).is_err() {
        return;
    }
    let offsets: Vec<u64> = (0..bytes.len() as u64).step_by(61).take(200).collect();
    let module = Module::from_path(file.path());
    let symbolizer = Symbolizer::new(SymbolOptions {
        debug_dirs: Vec::new(),
        ..SymbolOptions::default()
    });
    symbolizer.resolve(&[Query {
        source: Source::File(&module),
        addresses: &offsets,
    }]);
});
