//! What this process may do on this machine: told by /proc, and tried.

mod privileges;
mod trial;

pub use privileges::{Capability, Privileges};
pub use trial::Trial;
