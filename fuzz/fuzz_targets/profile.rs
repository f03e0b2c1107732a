//! Any bytes as a profile (perf.data, folded stacks, pprof, any of them gzipped): an error or a
//! profile that hangs together, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prof_filemap::MappedFile;
use prof_report::{LoadOptions, profile_of};

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
    let samples = profile.samples.len();
    let mut twice = profile.clone();
    twice.append(profile);
    assert_eq!(twice.samples.len(), 2 * samples);
});
