//! The time between the end of sampling and the end of the recording.

use std::time::{Duration, Instant};

use prof_events::Signals;

use crate::queue::record_queue::RecordQueue;

/// Waits until the session has emptied the queue. If that takes long, `report` is called once with
/// the number of remaining records. A signal makes the session continue without unwinding, so that
/// it ends soon; if it then makes no progress, because nobody reads its output, another signal ends
/// prof.
pub(crate) fn drain(queue: &RecordQueue, signals: &Signals, mut report: Option<fn(usize)>) {
    const LONG: Duration = Duration::from_secs(1);
    const GLANCE: Duration = Duration::from_millis(50);
    let begin = Instant::now();
    // When a signal came, and how many records remained then.
    let mut signalled: Option<(Instant, usize)> = None;
    while let Some(left) = queue.left(GLANCE) {
        if begin.elapsed() >= LONG
            && let Some(report) = report.take()
        {
            report(left);
        }
        while let Some(interrupt) = signals.next() {
            if interrupt.rotates() {
                continue;
            }
            queue.stop_unwinding();
            match signalled.filter(|&(_, before)| left == before) {
                Some((when, _)) if when.elapsed() >= LONG => interrupt.take_effect(),
                Some(_) => {}
                None => signalled = Some((Instant::now(), left)),
            }
        }
    }
}
