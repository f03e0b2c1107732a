//! The standard output, if there is one.
//!
//! Rust's runtime opens /dev/null for each standard stream that is closed when it starts, so that `main` sees an
//! open one, and all that is written there is lost without an error. /dev/null that others have opened looks the
//! same. So we look before the runtime: the loader calls the functions that `.init_array` holds before `main`.

use std::io::{self, Stdout};
use std::sync::atomic::{AtomicBool, Ordering};

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

// SAFETY: the loader calls what this section holds once, with arguments that C functions may ignore.
// `look` needs nothing of Rust's runtime, which is not there yet: a system call and an atomic store.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: F_GETFD asks for a descriptor's flags and changes nothing; it fails if there is none.
    let is_closed = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } < 0;
    WAS_CLOSED.store(is_closed, Ordering::Relaxed);
}

/// The standard output.
///
/// # Errors
///
/// When it was closed (`>&-`) as the program started.
pub fn stdout() -> io::Result<Stdout> {
    match WAS_CLOSED.load(Ordering::Relaxed) {
        true => Err(io::Error::other("the standard output is closed")),
        false => Ok(io::stdout()),
    }
}
