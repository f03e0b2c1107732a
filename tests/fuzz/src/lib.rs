//! Bytes that others wrote, given to all that reads such: it may refuse them, and must not panic.
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

/// A function that takes any bytes.
#[derive(Clone, Copy, Debug)]
pub struct FuzzTarget {
    /// As `cargo fuzz run NAME` has it, and the folder in `fuzz/seeds`.
    pub name: &'static str,
    /// Panics if the bytes make something panic, or if what comes of them does not hang together.
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
    profiles::profile,
    runtimes::python,
    recordings::recording,
    symbols::symbols_elf,
    symbols::symbols_jit,
    symbols::symbols_names,
    tables::tables,
    unwind::unwind,
    profiles::unwound,
}

/// A directory in memory, for what is read from files only.
fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .expect("a temporary directory")
}
