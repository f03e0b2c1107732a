//! What this process may do on this machine: told by /proc, and tried.

mod standing;
mod trial;

pub use standing::{Capability, Seccomp, Standing};
pub use trial::Trial;
