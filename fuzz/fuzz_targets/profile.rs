//! Any bytes as a profile (perf.data, folded stacks, pprof, any of them gzipped): an error or a
//! profile that hangs together, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prof_filemap::MappedFile;
use prof_report::format::json::{self, CallView};
use prof_report::format::{csv, firefox, folded, pprof, script, speedscope};
use prof_report::view::flat::Flat;
use prof_report::{CallTree, Filter, LoadOptions, Profile, Split, SymbolizedProfile, profile_of};
use prof_symbols::{SymbolOptions, Symbolizer};

fuzz_target!(|bytes: &[u8]| {
    let mut options = LoadOptions::default();
    // Unwinding opens the files that a recording names.
    options.unwind = false;
    let Ok(profile) = profile_of(MappedFile::from(bytes.to_vec()), &options) else {
        return;
    };
    for sample in profile.samples.iter() {
        assert!(usize::from(sample.event) < profile.events.len());
        assert!(profile.stacks.frames(sample.stack).count() > 0);
    }
    write_all(&profile);
    let samples = profile.samples.len();
    let twice = Profile::merged(vec![profile.clone(), profile]);
    assert_eq!(twice.samples.len(), 2 * samples);
});

/// Writes it in every format. Not those that name files: naming their functions opens these.
fn write_all(profile: &Profile) {
    if profile.modules.len() > 0 {
        return;
    }
    let symbolizer = Symbolizer::new(SymbolOptions::default());
    let profile = SymbolizedProfile::new(profile.clone(), &symbolizer);
    let filter = Filter::default();
    let mut out = std::io::sink();
    let _ = firefox::write(&profile, &filter, &mut out);
    let _ = pprof::write(&profile, &filter, &mut out);
    let _ = script::write(&profile, &filter, &mut out);
    let _ = speedscope::write(&profile, &filter, &mut out);
    for split in [Split::Nothing, Split::Thread] {
        if let Ok(tree) = CallTree::new(&profile, &filter, split) {
            let _ = folded::write(&tree, &mut out);
            let _ = json::calls(&tree, CallView::Calls, &mut out);
            let _ = csv::write(&tree, &Flat::new(&tree.inverted()), &mut out);
        }
    }
}
