//! Any text as a name, and any bytes as stored symbols: never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prof_symbols::{EmbeddedSymbols, demangle, is_async_plumbing, readable, shorten};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(symbols) = EmbeddedSymbols::from_bytes(bytes) {
        let again = EmbeddedSymbols::from_bytes(&symbols.to_bytes());
        assert_eq!(again.ok(), Some(symbols));
    }
    if let Ok(name) = std::str::from_utf8(bytes) {
        shorten(&demangle(name));
        readable(name);
        is_async_plumbing(name);
    }
});
