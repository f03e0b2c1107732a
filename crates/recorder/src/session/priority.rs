//! Raises the priority of unwinding when other threads want the CPU.
//!
//! If more threads want to run than there are CPUs, unwinding gets an equal share, and samples come
//! faster than it can process them. While the queue fills, it gets a higher priority than ordinary
//! threads, if the user may raise it: the targets among them then run slower, and are sampled less
//! often.

use prof_events::system::{self, Ahead};

use crate::queue::record_queue::RecordQueue;

/// Whether the calling thread has a raised priority.
#[derive(Debug, Default)]
pub(crate) struct PriorityBoost(bool);

impl PriorityBoost {
    /// Raises the priority when the queue is a quarter full, until it is almost empty.
    pub(crate) fn follow(&mut self, queue: &RecordQueue) {
        let percent = queue.percent_full();
        if !self.0 && percent >= 25 {
            system::raise_thread_priority(Ahead::OfOrdinary);
        } else if self.0 && percent < 5 {
            system::lower_thread_priority();
        } else {
            return;
        }
        self.0 = !self.0;
    }
}

impl Drop for PriorityBoost {
    /// Restores the priority: the thread belongs to the caller.
    fn drop(&mut self) {
        if self.0 {
            system::lower_thread_priority();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use prof_events::system::Priority;

    use super::*;
    use crate::queue::record_queue::Popped;

    /// Whether the calling thread runs in real time.
    fn is_ahead() -> bool {
        const FIFO: u32 = 1;
        let stat = prof_procfs::Task::this_thread().stat();
        stat.expect("our own").policy == FIFO
    }

    /// Whether this user may raise priorities.
    fn may_be_ahead() -> bool {
        let may = system::raise_thread_priority(Ahead::OfOrdinary) == Priority::RealTime;
        system::lower_thread_priority();
        if !may {
            eprintln!("NOT TESTED: this user may not run ahead of ordinary threads");
            assert!(std::env::var_os("CI").is_none(), "CI's user may");
        }
        may
    }

    #[test]
    fn a_thread_runs_ahead_while_its_queue_is_full() {
        // On a separate thread, whose priority ends with it.
        let checked = thread::spawn(|| {
            let may = may_be_ahead();
            let queue = RecordQueue::new(100_000);
            let mut priority_boost = PriorityBoost::default();
            let mut check = |percent: usize, expected: bool| {
                let waiting = queue.percent_full();
                for _ in waiting..percent {
                    let (mut batch, _) = queue.start();
                    batch.push(|bytes| bytes.resize(900, 0));
                    queue.push(batch, true);
                }
                for _ in percent..waiting {
                    let Popped::Batch(batch) = queue.pop(Duration::MAX) else {
                        panic!("nothing waits");
                    };
                    queue.recycle(batch);
                }
                priority_boost.follow(&queue);
                assert_eq!(is_ahead(), expected && may, "{percent} %");
            };
            for (percent, expected) in [
                (10, false),
                (20, false),
                (30, true),
                (90, true),
                (10, true),
                (2, false),
                (20, false),
                (30, true),
            ] {
                check(percent, expected);
            }
            drop(priority_boost);
            assert!(!is_ahead(), "afterwards");
        });
        checked.join().expect("as expected");
    }
}
