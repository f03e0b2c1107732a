//! A CPU's ring for a watching thread on that CPU, which each sample there wakes.
//!
//! ```text
//!   CPU 0:  sample ── signal ──> watching thread: reads the sample ── target runs on
//!   CPU 1:  sample ── signal ──> watching thread: reads the sample ── target runs on
//!   later:  the sampler drains both rings
//! ```

use prof_model::Tid;

use crate::kernel::ring::Ring;
use crate::process::signals::ThreadSignal;

/// The ring of a CPU.
#[derive(Debug)]
pub struct CpuRing {
    cpu: u32,
    ring: Ring,
    /// From so many bytes on, it is to be drained.
    watermark: u64,
}

/// The ring of a CPU, for the thread that watches it, to which its samples send signals.
#[derive(Debug)]
pub struct RingWatch {
    ring: Ring,
    watermark: u64,
    /// The position up to which it was read.
    seen: u64,
}

impl CpuRing {
    pub(crate) fn new(cpu: u32, ring: &Ring, watermark: u64) -> Self {
        Self {
            cpu,
            ring: ring.view(),
            watermark,
        }
    }

    /// The CPU whose samples it has.
    pub fn cpu(&self) -> u32 {
        self.cpu
    }

    /// Prepares the calling thread for the signals of its samples.
    pub fn watch(self) -> RingWatch {
        ThreadSignal::block_here();
        RingWatch {
            ring: self.ring,
            watermark: self.watermark,
            seen: 0,
        }
    }
}

impl RingWatch {
    /// The thread that watches, for [`Sampler::signal_watches`](crate::Sampler::signal_watches).
    pub fn this_thread() -> Tid {
        ThreadSignal::this_thread()
    }

    /// Waits for a sample, or for [`wake`](Self::wake). Only the thread that watches may call this.
    pub fn wait(&self) {
        ThreadSignal::wait();
    }

    /// Drops the signals that have come meanwhile: of samples that the next [look](Self::look)
    /// finds. Only the thread that watches may call this.
    pub fn clear(&self) {
        ThreadSignal::forget();
    }

    /// Ends the wait of a thread that watches, or its next one.
    pub fn wake(thread: Tid) {
        ThreadSignal::send(thread);
    }

    /// Hands out the records that have come since it was last called, unless they were drained.
    /// Returns whether the ring has filled to the mark at which the kernel wakes its reader.
    pub fn look(&mut self, each: impl FnMut(&[u8])) -> bool {
        self.ring.peek(&mut self.seen, each);
        self.ring.filled() >= self.watermark
    }
}
