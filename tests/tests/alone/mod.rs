//! Files of tests most of which need the machine to themselves. They are in one folder because
//! tests run in the order of their names: each such test among others would block those until all
//! running ones have ended.

mod all_that_runs;
mod busy_threads;
mod ci;
mod cpusets;
mod deep_stacks;
mod interpreters;
mod memory;
mod python;
mod robust;
mod shares;
mod short_threads;
