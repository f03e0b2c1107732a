//! Fuzz targets: every parser of foreign data gets any bytes; it may refuse them, but must not
//! panic.
//!
//! `fuzz/` runs these functions for as long as one likes, `tests/short.rs` each for some seconds.
#![forbid(unsafe_code)]

mod profiles;
mod recorder;
mod recordings;
mod runtimes;
mod symbols;
mod tables;
mod unwind;

/// A fuzz target.
#[derive(Clone, Copy, Debug)]
pub struct FuzzTarget {
    /// Its name for `cargo fuzz run NAME`, and its folder in `fuzz/seeds`.
    pub name: &'static str,
    /// Panics if the tested code panics, or if its results are inconsistent.
    pub run: fn(&[u8]),
}

macro_rules! targets {
    ($($module:ident::$name:ident,)*) => {
        $(pub use $module::$name;)*

        /// All of them.
        pub const TARGETS: &[FuzzTarget] = &[
            $(FuzzTarget { name: stringify!($name), run: $module::$name },)*
        ];
    };
}

targets! {
    recorder::control,
    symbols::debuginfod,
    recorder::event_names,
    profiles::formats,
    runtimes::hotspot,
    symbols::kallsyms,
    recorder::maps,
    runtimes::php,
    profiles::profile,
    runtimes::python,
    recordings::recording,
    runtimes::ruby,
    symbols::symbols_elf,
    symbols::symbols_go,
    symbols::symbols_jit,
    symbols::symbols_names,
    tables::tables,
    unwind::unwind,
    profiles::unwound,
    runtimes::v8,
}

/// A directory in memory, for code that reads only files.
fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .expect("a temporary directory")
}
