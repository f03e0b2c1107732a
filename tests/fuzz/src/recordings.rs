//! perf.data files as such.

use prof_filemap::MappedFile;
use prof_model::{Modules, Processes};
use prof_perfdata::encode::{self, NewSample};
use prof_perfdata::{Record, Recording, follow, write_with_symbols};

/// Any bytes as a perf.data file: an error or records; an archive can be read again.
pub fn recording(bytes: &[u8]) {
    let mut archived = Vec::new();
    let is_archived = write_with_symbols(bytes, b"names", &mut archived).is_ok();
    let Ok(mut recording) = Recording::from_file(MappedFile::from(bytes.to_vec())) else {
        return;
    };
    if is_archived {
        let again = Recording::from_file(MappedFile::from(archived)).expect("a recording");
        assert_eq!(again.features().symbols.as_deref(), Some(&b"names"[..]));
    }
    let attrs: Vec<_> = recording
        .events()
        .iter()
        .map(|event| event.attr.clone())
        .collect();
    let mut processes = Processes::default();
    let mut modules = Modules::default();
    let mut encoded = Vec::new();
    while let Some(record) = recording.next() {
        follow(&record, &mut processes, &mut modules);
        if let Record::Sample(sample) = record {
            encoded.clear();
            let chain: Vec<u64> = sample.callchain.collect();
            let new = NewSample {
                callchain: &chain,
                raw: sample.raw.unwrap_or_default(),
                user_registers: sample.user_registers(),
                user_stack: sample.user_stack.map_or(&[], |stack| stack.bytes),
                ..NewSample::without_stack(&sample)
            };
            let _ = encode::sample(&mut encoded, &attrs[sample.event], &new);
            sample.stack_note();
        }
    }
}
