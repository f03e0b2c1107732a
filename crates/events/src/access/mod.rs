//! What this process may do on this machine: told by /proc, and tried.

mod privileges;
mod trial;

pub use privileges::{Capability, Privileges, Seccomp};
pub use trial::Trial;
