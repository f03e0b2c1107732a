//! Any bytes as a jitdump and as a perf map: never a panic.
#![no_main]

use std::path::PathBuf;

use libfuzzer_sys::fuzz_target;
use prof_model::{Module, Pid};
use prof_symbols::{Places, Query, Source, SymbolOptions, Symbolizer};

struct Dumps(PathBuf);

impl Places for Dumps {
    fn candidates(&self, _: &Module) -> Vec<PathBuf> {
        Vec::new()
    }

    fn jitdumps(&self, _: Pid) -> Vec<PathBuf> {
        vec![self.0.clone()]
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(directory) = tempfile::tempdir_in("/dev/shm") else {
        return;
    };
    let pid = Pid::MAX;
    let dump = directory.path().join("jit.dump");
    let map = directory.path().join(format!("perf-{pid}.map"));
    if std::fs::write(&dump, bytes).is_err() || std::fs::write(&map, bytes).is_err() {
        return;
    }
    let options = SymbolOptions {
        jit_map_dir: directory.path().into(),
        ..SymbolOptions::default()
    };
    let query = Query {
        source: Source::Jit { pid },
        addresses: &[0, 1, 0x1000, 0x7fff_ffff_ffff, u64::MAX],
    };
    Symbolizer::new(options.clone()).resolve(&[query]);
    let symbolizer = Symbolizer::new(options).with_places(Dumps(dump));
    symbolizer.resolve(&[query]);
    let _ = symbolizer.jit_code(pid, query.addresses);
});
