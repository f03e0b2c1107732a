//! Files of tests most of which have the machine to themselves. Tests run in the order of their
//! names: each that is among others keeps those from starting until all that run have ended.

mod all_that_runs;
mod busy_threads;
mod ci;
mod cpusets;
mod deep_stacks;
mod memory;
mod python;
mod robust;
mod shares;
mod short_threads;
