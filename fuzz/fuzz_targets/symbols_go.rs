#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| prof_fuzz_targets::symbols_go(bytes));
