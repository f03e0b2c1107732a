//! The time between the end of sampling and that of the recording.

use std::time::{Duration, Instant};

use prof_events::Signals;

use crate::backlog::Backlog;

/// Waits until the session is done with the backlog. If that takes long, `tell` is told once how many
/// records are left. A signal has the session go on without unwinding, so that it is done soon.
pub(crate) fn see_out(backlog: &Backlog, signals: &Signals, mut tell: Option<fn(usize)>) {
    const LONG: Duration = Duration::from_secs(1);
    const GLANCE: Duration = Duration::from_millis(50);
    let begin = Instant::now();
    while let Some(left) = backlog.left(GLANCE) {
        if begin.elapsed() >= LONG
            && let Some(tell) = tell.take()
        {
            tell(left);
        }
        while let Some(interrupt) = signals.next() {
            if !interrupt.is_switch() {
                backlog.stop_unwinding();
            }
        }
    }
}
