//! What to do about an error of perf_event_open or of mapping its ring.

use rustix::io::Errno;

use crate::permission::Refusal;

/// What to do, as the end of a sentence that began with the error; never empty.
pub fn advice(refusal: Refusal) -> String {
    match refusal.errno {
        Errno::ACCESS | Errno::PERM => refusal.permission(),
        Errno::NOSYS => refusal.rights.no_system_call(),
        Errno::SRCH => "the process does not exist, or has ended".into(),
        Errno::MFILE | Errno::NFILE => {
            "sampling needs two file descriptors for each thread and CPU: raise the limit with \
             `ulimit -n`"
                .into()
        }
        Errno::NOENT | Errno::OPNOTSUPP | Errno::NODEV => {
            "this machine cannot count that event: use -e cpu-clock".into()
        }
        Errno::BUSY => "another program has reserved the counter: use -e cpu-clock".into(),
        Errno::TOOBIG | Errno::INVAL => {
            "the kernel does not support this event or flag: it may be too old (prof needs Linux \
             5.10 or newer)"
                .into()
        }
        Errno::NOMEM => "the kernel has no memory left".into(),
        _ => "the kernel gives no reason".into(),
    }
}

/// The same if it was the event's ring buffer that was refused.
pub(crate) fn advice_on_ring(refusal: Refusal) -> String {
    match refusal.errno {
        Errno::PERM | Errno::NOMEM | Errno::AGAIN => {
            "the limit on locked memory is too low for the ring buffers: raise it with `ulimit \
             -l` or kernel.perf_event_mlock_kb, or ask for smaller buffers (-m)"
                .into()
        }
        _ => advice(refusal),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advice_fits_the_cause() {
        let check = |errno, expected: &str| {
            let text = advice(Refusal::of_plain_user(errno));
            assert!(text.contains(expected), "{errno}: {text}");
        };
        check(Errno::ACCESS, "does not say why");
        check(Errno::MFILE, "ulimit -n");
        check(Errno::SRCH, "does not exist");
        check(Errno::NOENT, "cpu-clock");
        check(Errno::NOSYS, "gVisor");
        check(Errno::INVAL, "too old");
        check(Errno::IO, "no reason");
        assert!(advice_on_ring(Refusal::of_plain_user(Errno::PERM)).contains("ulimit -l"));
        assert!(advice_on_ring(Refusal::of_plain_user(Errno::MFILE)).contains("ulimit -n"));
    }
}
