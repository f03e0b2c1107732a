//! The standard output and the standard error output, if there are any.
//!
//! Rust's runtime opens /dev/null for each standard stream that is closed when it starts, so that
//! `main` sees an open one, and all output to it is lost without an error. A /dev/null that our
//! parent has opened looks the same. So we check before the runtime: the loader calls the functions
//! that `.init_array` holds before `main`.

use std::io::{self, Stderr, Stdout};
use std::sync::atomic::{AtomicBool, Ordering};

static STDOUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);
static STDERR_WAS_CLOSED: AtomicBool = AtomicBool::new(false);

// SAFETY: the loader calls what this section holds once, with arguments that C functions may
// ignore. `look` needs nothing of Rust's runtime, which is not there yet: system calls and atomic
// stores.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: F_GETFD reads a descriptor's flags and changes nothing; it fails if there is none.
    let is_closed = |fd| unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0;
    STDOUT_WAS_CLOSED.store(is_closed(libc::STDOUT_FILENO), Ordering::Relaxed);
    STDERR_WAS_CLOSED.store(is_closed(libc::STDERR_FILENO), Ordering::Relaxed);
}

/// The standard output.
///
/// # Errors
///
/// When it was closed (`>&-`) as the program started.
pub fn stdout() -> io::Result<Stdout> {
    match STDOUT_WAS_CLOSED.load(Ordering::Relaxed) {
        true => Err(io::Error::other("the standard output is closed")),
        false => Ok(io::stdout()),
    }
}

/// The standard error output.
///
/// # Errors
///
/// When it was closed (`2>&-`) as the program started.
pub fn stderr() -> io::Result<Stderr> {
    match STDERR_WAS_CLOSED.load(Ordering::Relaxed) {
        true => Err(io::Error::other("the standard error output is closed")),
        false => Ok(io::stderr()),
    }
}
