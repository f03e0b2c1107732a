//! The end of a child, as something to poll.

use std::io::{self, PipeReader, PipeWriter, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions};

/// Readable from the end of a child on.
#[derive(Debug)]
pub(crate) struct Ending {
    child: Pid,
    means: Means,
}

#[derive(Debug)]
enum Means {
    Pidfd(OwnedFd),
    /// A thread waits and writes to it: Linux before 5.3 has no pidfds, and seccomp filters of some
    /// containers refuse what they do not know.
    Thread(PipeReader),
}

impl Ending {
    /// Watches a child of this process, which nobody has waited for.
    ///
    /// # Errors
    ///
    /// When no more descriptors or threads can be created.
    pub(crate) fn of_child(child: Pid) -> io::Result<Self> {
        let means = match rustix::process::pidfd_open(child, PidfdFlags::empty()) {
            Ok(pidfd) => Means::Pidfd(pidfd),
            Err(errno @ (Errno::MFILE | Errno::NFILE)) => return Err(errno.into()),
            Err(_) => Means::Thread(watch(child)?),
        };
        Ok(Self { child, means })
    }

    /// Whether the child has ended. Its status is still to be waited for.
    ///
    /// # Errors
    ///
    /// When the system refuses to say, which does not happen.
    pub(crate) fn has_come(&self) -> io::Result<bool> {
        let mut polled = [PollFd::new(self, PollFlags::IN)];
        match rustix::event::poll(&mut polled, Some(&Timespec::default())) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Sends a signal to the child; nothing happens if it has ended.
    pub(crate) fn signal(&self, signal: Signal) {
        let _ = match &self.means {
            Means::Pidfd(pidfd) => rustix::process::pidfd_send_signal(pidfd, signal),
            // The number is the child's until it is waited for, which comes after its end.
            Means::Thread(_) if self.has_come().is_ok_and(|has_come| has_come) => Ok(()),
            Means::Thread(_) => rustix::process::kill_process(self.child, signal),
        };
    }
}

impl AsFd for Ending {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.means {
            Means::Pidfd(pidfd) => pidfd.as_fd(),
            Means::Thread(pipe) => pipe.as_fd(),
        }
    }
}

/// Readable when the child has ended.
fn watch(child: Pid) -> io::Result<PipeReader> {
    let (ended, report) = io::pipe()?;
    let thread = std::thread::Builder::new().name("command's end".into());
    thread.spawn(move || wait(child, report))?;
    Ok(ended)
}

/// Waits until the child ends, and leaves it to be waited for.
fn wait(child: Pid, mut report: PipeWriter) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    let mut waited = rustix::process::waitid(WaitId::Pid(child), options);
    while matches!(waited, Err(Errno::INTR)) {
        waited = rustix::process::waitid(WaitId::Pid(child), options);
    }
    let _ = report.write_all(&[0]);
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::process::poll::wait_readable;

    #[test]
    fn the_end_is_readable_and_the_status_is_left() {
        for has_pidfds in [true, false] {
            let mut child = Command::new("cat")
                .stdin(std::process::Stdio::piped())
                .spawn()
                .expect("cat");
            let pid = Pid::from_child(&child);
            let ending = match has_pidfds {
                true => Ending::of_child(pid).expect("watched"),
                false => Ending {
                    child: pid,
                    means: Means::Thread(watch(pid).expect("a thread")),
                },
            };
            assert!(!ending.has_come().expect("an answer"));
            ending.signal(Signal::TERM);
            wait_readable(&[ending.as_fd()], None).expect("it ends");
            assert!(ending.has_come().expect("an answer"));
            ending.signal(Signal::TERM);
            let status = child.wait().expect("its status");
            assert_eq!(
                std::os::unix::process::ExitStatusExt::signal(&status),
                Some(Signal::TERM.as_raw())
            );
        }
    }
}
