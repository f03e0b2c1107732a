//! How often to sample, and how much.

/// The largest `sample_stack_user`: a multiple of 8 under the 16 bits of a record's size.
pub const MAX_STACK_DUMP: u32 = 65_528;

/// How often to sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// Samples per second of each thread.
    Hertz(u64),
    /// As many samples per second as the kernel allows.
    Maximum,
    /// One sample each this many events (nanoseconds for the clocks).
    Period(u64),
}
