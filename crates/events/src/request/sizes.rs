//! How large rings and stack dumps are: chosen together, because each dump takes its full size
//! in the ring, however little of the stack there was to copy.

use std::ops::RangeInclusive;

use prof_model::RecordingSettings;

use crate::rate::MAX_STACK_DUMP;

/// Sizes of a CPU's ring and of a sample's stack dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Bytes of each CPU's ring: a power of two, and at least one page.
    pub ring: u64,
    /// Bytes of stack copied with each sample; `None` if stacks are not copied.
    pub dump: Option<u32>,
    /// Bytes in the ring at which the reader is woken.
    pub wakeup: u32,
}

impl Sizes {
    /// How many samples a ring holds; `None` if no stacks are copied, so that it holds very many.
    pub(crate) fn samples_held(&self) -> Option<u64> {
        let dump = u64::from(self.dump?);
        Some(self.ring / (dump + BufferRequest::SAMPLE_REST))
    }
}

/// The input for choosing sizes.
#[derive(Clone, Copy, Debug)]
pub struct BufferRequest {
    /// Requested bytes of ring per CPU.
    pub ring: Option<u64>,
    /// Whether stacks are copied, and the requested size.
    pub dump: Option<Option<u32>>,
    /// Samples per second of a busy CPU, as far as that is known.
    pub rate: u64,
    /// Number of rings.
    pub cpus: usize,
    /// Bytes of the machine's memory.
    pub memory: u64,
    /// Bytes of a page.
    pub page: u64,
}

impl BufferRequest {
    /// The smallest is enough for 127 of the largest dumps, so that the reader may sleep for long.
    /// The largest leaves space in the CPU's caches: reading from memory costs more than reading
    /// the tail from the live target.
    const RING_WITH_DUMPS: RangeInclusive<u64> = 8 << 20..=16 << 20;
    const RING_WITHOUT: u64 = 512 << 10;
    /// Most stacks are no deeper: rings are larger at high rates, to hold this much of each.
    const USUAL_STACK: u64 = 32 << 10;
    /// The part of memory that all rings together may take, for machines with very many CPUs.
    const PART_OF_MEMORY: u64 = 64;
    const ALL_RINGS: RangeInclusive<u64> = 16 << 20..=512 << 20;
    const SMALLEST_RING: u64 = 64 << 10;
    const LARGEST_RING: u64 = 1 << 30;
    /// For how long samples must still fit after it was woken.
    const READER_COPIES_MS: u64 = 45;
    const SMALLEST_CHOSEN_DUMP: u64 = 4096;
    /// Registers, kernel chain and the fixed fields of a sample take about this much.
    const SAMPLE_REST: u64 = 512;

    /// The sizes to begin with.
    pub fn sizes(&self) -> Sizes {
        let wanted = match self.dump {
            Some(requested) => {
                let stack = requested.map_or(Self::USUAL_STACK, u64::from);
                let ring = (self.samples_to_hold() * stack).next_power_of_two();
                within(ring, Self::RING_WITH_DUMPS)
            }
            None => Self::RING_WITHOUT,
        };
        let all = within(self.memory / Self::PART_OF_MEMORY, Self::ALL_RINGS);
        let affordable =
            prev_power_of_two(all / (self.cpus.max(1) as u64)).max(Self::SMALLEST_RING);
        let ring = match self.ring {
            Some(requested) => requested
                .clamp(self.page, Self::LARGEST_RING)
                .next_power_of_two(),
            None => wanted.min(affordable),
        };
        self.with_ring(ring)
    }

    /// The sizes for the next smaller ring; `None` when that is too small to be of use.
    pub fn smaller(&self, sizes: Sizes) -> Option<Sizes> {
        let ring = sizes.ring / 2;
        (ring >= self.page).then(|| self.with_ring(ring))
    }

    fn with_ring(&self, ring: u64) -> Sizes {
        let dump = self.dump.map(|requested| {
            let most = match requested {
                // Two samples must fit, or every other one is lost.
                Some(requested) => (ring / 2)
                    .saturating_sub(Self::SAMPLE_REST)
                    .min(requested.into()),
                None => {
                    (ring / self.samples_to_hold()).max(Self::SMALLEST_CHOSEN_DUMP.min(ring / 4))
                }
            };
            (most.min(MAX_STACK_DUMP.into()) as u32 & !7).max(8)
        });
        Sizes {
            ring,
            dump,
            wakeup: self.wakeup(ring, dump) as u32,
        }
    }

    /// The rest of the ring is for the time that the reader takes to wake and to copy, for which it
    /// may have to wait for memory.
    fn wakeup(&self, ring: u64, dump: Option<u32>) -> u64 {
        let sample = u64::from(dump.unwrap_or(0)) + Self::SAMPLE_REST;
        let coming = self.rate * Self::READER_COPIES_MS / 1000 * sample;
        ring.saturating_sub(coming).clamp(ring / 4, ring / 2)
    }

    fn samples_to_hold(&self) -> u64 {
        RecordingSettings::samples_to_hold(self.rate)
    }
}

fn within(number: u64, range: RangeInclusive<u64>) -> u64 {
    number.clamp(*range.start(), *range.end())
}

fn prev_power_of_two(number: u64) -> u64 {
    (number / 2 + 1).next_power_of_two()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer_request(
        ring: Option<u64>,
        dump: Option<Option<u32>>,
        rate: u64,
        cpus: usize,
    ) -> BufferRequest {
        BufferRequest {
            ring,
            dump,
            rate,
            cpus,
            memory: 16 << 30,
            page: 4096,
        }
    }

    fn check(buffer_request: BufferRequest, ring: u64, dump: Option<u32>) {
        let sizes = buffer_request.sizes();
        assert_eq!((sizes.ring, sizes.dump), (ring, dump), "{buffer_request:?}");
        assert!(
            u64::from(sizes.wakeup) < ring && sizes.wakeup > 0,
            "{sizes:?}"
        );
    }

    #[test]
    fn dumps_are_as_large_as_the_ring_allows_at_the_rate() {
        let chosen = Some(None);
        check(buffer_request(None, chosen, 999, 2), 8 << 20, Some(65_528));
        check(buffer_request(None, chosen, 4999, 2), 8 << 20, Some(56_296));
        check(
            buffer_request(None, chosen, 20_000, 2),
            16 << 20,
            Some(27_960),
        );
        check(
            buffer_request(None, chosen, 100_000, 2),
            16 << 20,
            Some(5592),
        );
        check(buffer_request(None, chosen, 999, 64), 4 << 20, Some(65_528));
        check(
            buffer_request(None, chosen, 20_000, 64),
            4 << 20,
            Some(6984),
        );
        check(
            buffer_request(None, chosen, 999, 4096),
            64 << 10,
            Some(4096),
        );
        let memory = |memory, cpus| BufferRequest {
            memory,
            ..buffer_request(None, chosen, 999, cpus)
        };
        check(memory(512 << 20, 2), 8 << 20, Some(65_528));
        check(memory(512 << 20, 16), 1 << 20, Some(36_152));
        check(memory(1 << 40, 256), 2 << 20, Some(65_528));
        check(buffer_request(Some(4096), chosen, 999, 2), 4096, Some(1024));
    }

    #[test]
    fn requested_sizes_are_kept_if_they_fit() {
        check(buffer_request(Some(100_000), None, 999, 2), 128 << 10, None);
        check(
            buffer_request(None, Some(Some(8192)), 100_000, 2),
            16 << 20,
            Some(8192),
        );
        check(
            buffer_request(None, Some(Some(4096)), 20_000, 2),
            8 << 20,
            Some(4096),
        );
        check(
            buffer_request(Some(65_536), Some(Some(65_528)), 999, 2),
            65_536,
            Some(32_256),
        );
        check(buffer_request(None, None, 999, 2), 512 << 10, None);
    }

    #[test]
    fn a_woken_reader_has_time() {
        let check = |ring, rate, expected: u32| {
            let sizes = buffer_request(ring, Some(None), rate, 2).sizes();
            assert_eq!(sizes.wakeup, expected, "{sizes:?}");
        };
        check(None, 99, 4 << 20);
        check(None, 999, 4 << 20);
        // Of 56 dumps, this many come in 45 ms.
        check(Some(4 << 20), 999, (4 << 20) - 44 * (65_528 + 512));
        check(None, 4999, 2 << 20);
    }

    #[test]
    fn smaller_rings_end_at_a_page() {
        let buffer_request = buffer_request(Some(8192), Some(None), 999, 2);
        let page = buffer_request.smaller(buffer_request.sizes());
        assert_eq!(page.map(|sizes| sizes.ring), Some(4096));
        assert_eq!(page.and_then(|sizes| buffer_request.smaller(sizes)), None);
    }

    #[test]
    fn powers_of_two() {
        let cases = [(1, 1), (2, 2), (3, 2), (4, 4), (7, 4), (8, 8), (9, 8)];
        for (number, power) in cases {
            assert_eq!(prev_power_of_two(number), power, "{number}");
        }
    }
}
