//! Addresses in recordings that represent code without addresses of its own.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

/// The addresses in recordings of code that takes the place of other code, and of functions that
/// all run in the same code: above those of all programs.
#[derive(Debug)]
pub struct SyntheticCode;

impl SyntheticCode {
    /// Above Python's functions.
    pub const START: u64 = 1 << 57;
    /// How many there are.
    pub const LENGTH: u64 = 1 << 40;

    /// Whether an address is one of them.
    pub fn contains(address: u64) -> bool {
        address.wrapping_sub(Self::START) < Self::LENGTH
    }
}

/// Hands out [synthetic addresses](SyntheticCode), from a block of its own: runtimes that follow
/// each other in a process have different ones.
#[derive(Clone, Debug)]
pub(crate) struct SyntheticAddresses {
    block: u64,
    used: u64,
}

impl Default for SyntheticAddresses {
    fn default() -> Self {
        static BLOCKS: AtomicU64 = AtomicU64::new(0);
        Self {
            block: BLOCKS.fetch_add(1, Ordering::Relaxed) % Self::BLOCKS,
            used: 0,
        }
    }
}

impl SyntheticAddresses {
    /// So many addresses for a function.
    const FUNCTION: u64 = 16;
    /// After so many, the first one is used again.
    const BLOCKS: u64 = 1 << 10;
    const BLOCK: u64 = SyntheticCode::LENGTH / Self::BLOCKS;

    /// The start of so many addresses that nothing else has.
    pub(crate) fn reserve(&mut self, size: u64) -> u64 {
        let start = SyntheticCode::START + self.block * Self::BLOCK + self.used % Self::BLOCK;
        self.used = self.used.saturating_add(size);
        start
    }

    /// Whether any were handed out.
    pub(crate) fn are_used(&self) -> bool {
        self.used > 0
    }

    /// Reserves addresses for a function; returns one within them, so that those beside it, which
    /// some readers look up for callers, have the name, too.
    pub(crate) fn add_function(&mut self) -> u64 {
        self.reserve(Self::FUNCTION) + Self::FUNCTION / 2
    }
}

/// Recorded addresses with their name: a line of a perf map.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) start: u64,
    pub(crate) size: u64,
    pub(crate) name: String,
}

impl Line {
    /// The addresses that were reserved for a function with this one.
    pub(crate) fn of_function(address: u64, name: String) -> Self {
        Self {
            start: address - SyntheticAddresses::FUNCTION / 2,
            size: SyntheticAddresses::FUNCTION,
            name,
        }
    }

    /// Adds it to a perf map.
    pub(crate) fn write(&self, map: &mut String) {
        let Self { start, size, name } = self;
        // Writing to a string does not fail.
        let _ = writeln!(map, "{start:x} {size:x} {name}");
    }
}
