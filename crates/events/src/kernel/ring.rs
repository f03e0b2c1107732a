//! A ring buffer that the kernel writes records into.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{io, ptr, slice};

use memmap2::{MmapOptions, MmapRaw};
use perf_event_open_sys::bindings::perf_event_mmap_page;

/// The ring buffer of an event: one page of positions, then 2^n pages of records.
///
/// ```text
///   page 0: data_tail (ours)  data_head (the kernel's)        both only ever grow
///   data:   |  free  | record | record | rec      the last one goes on at the start: |ord | free |
///                    ^ tail % size           ^ head % size
/// ```
///
/// It owns the map only. The kernel keeps the buffer alive as long as it is mapped or an event
/// writes to it, so events may be closed before or after.
///
/// One thread drains it. Another one may look at it meanwhile, through a view of its own.
#[derive(Debug)]
pub struct Ring {
    map: Arc<MmapRaw>,
    /// Held to move the tail, and while another thread looks.
    tail_lock: Arc<Mutex<()>>,
    page: usize,
    /// Bytes of the data part: a power of two.
    size: usize,
    /// A record that wraps around the end is put together here.
    scratch: Vec<u8>,
}

/// The result of [`Ring::drain`] besides records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    /// Bytes of records handed out.
    pub bytes: u64,
    /// Whether the ring held garbage: the rest up to the head was skipped.
    pub corrupt: bool,
}

const HEADER: usize = 8;

impl Ring {
    /// Maps the ring of an event, with `size` bytes of data: a power of two, and whole pages.
    ///
    /// # Errors
    ///
    /// EPERM if the limits on locked memory are exceeded, ENOMEM, EINVAL for bad sizes and events
    /// that cannot have a ring.
    pub fn map(event: BorrowedFd<'_>, size: u64) -> io::Result<Self> {
        let page = rustix::param::page_size();
        let size = usize::try_from(size).map_err(|_| io::ErrorKind::InvalidInput)?;
        if !size.is_power_of_two() || size % page != 0 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let map = MmapOptions::new().len(page + size).map_raw(&event)?;
        Ok(Self::over(map, page, size))
    }

    fn over(map: MmapRaw, page: usize, size: usize) -> Self {
        assert!(map.len() >= page + size, "the map holds page and data");
        Self {
            map: Arc::new(map),
            tail_lock: Arc::default(),
            page,
            size,
            scratch: Vec::new(),
        }
    }

    /// The same ring, for another thread to [`peek`](Self::peek) into.
    pub(crate) fn view(&self) -> Self {
        Self {
            map: Arc::clone(&self.map),
            tail_lock: Arc::clone(&self.tail_lock),
            page: self.page,
            size: self.size,
            scratch: Vec::new(),
        }
    }

    /// Passes every record that is complete at the call to `each`, whole and once, and returns its
    /// space to the kernel.
    pub fn drain(&mut self, mut each: impl FnMut(&[u8])) -> Drained {
        // Acquire: everything the kernel wrote before it moved the head is visible from here on.
        let head = self.head().load(Ordering::Acquire);
        let mut tail = self.tail().load(Ordering::Relaxed);
        let mut drained = Drained::default();
        while tail != head {
            let Some(record) = self.record(tail, head) else {
                drained.corrupt = true;
                self.move_tail(head);
                break;
            };
            let length = record.len() as u64;
            each(record);
            drained.bytes += length;
            tail = tail.wrapping_add(length);
            self.move_tail(tail);
        }
        drained
    }

    /// Returns the space up to `tail` to the kernel.
    fn move_tail(&self, tail: u64) {
        let _nobody_looks = locked(&self.tail_lock);
        // Release: we are done reading before the kernel may write here again.
        self.tail().store(tail, Ordering::Release);
    }

    /// Passes on the complete records after the position `seen`, without draining them: they are
    /// drained later, or were meanwhile.
    pub(crate) fn peek(&mut self, seen: &mut u64, mut each: impl FnMut(&[u8])) {
        let tail_lock = Arc::clone(&self.tail_lock);
        let _nothing_is_freed = locked(&tail_lock);
        let head = self.head().load(Ordering::Acquire);
        let tail = self.tail().load(Ordering::Relaxed);
        let is_there = head.wrapping_sub(*seen) <= head.wrapping_sub(tail);
        let mut at = if is_there { *seen } else { tail };
        while at != head
            && let Some(record) = self.record(at, head)
        {
            at = at.wrapping_add(record.len() as u64);
            each(record);
        }
        *seen = head;
    }

    /// Bytes that were not drained yet.
    pub(crate) fn filled(&self) -> u64 {
        let head = self.head().load(Ordering::Relaxed);
        let tail = self.tail().load(Ordering::Relaxed);
        head.wrapping_sub(tail)
    }

    /// The record at `tail`, or `None` if none can be there.
    fn record(&mut self, tail: u64, head: u64) -> Option<&[u8]> {
        let available = usize::try_from(head.wrapping_sub(tail)).ok()?;
        if available > self.size || available < HEADER {
            return None;
        }
        // Records are multiples of 8 bytes, so a header never wraps; if this one does, it is
        // none.
        let start = tail as usize & (self.size - 1);
        let header = self.data(start, HEADER)?;
        let length = usize::from(u16::from_ne_bytes([*header.get(6)?, *header.get(7)?]));
        if length < HEADER || length > available {
            return None;
        }
        let until_end = self.size - start;
        if length <= until_end {
            return self.data(start, length);
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        scratch.extend_from_slice(self.data(start, until_end)?);
        scratch.extend_from_slice(self.data(0, length - until_end)?);
        self.scratch = scratch;
        Some(&self.scratch)
    }

    /// Bytes of the data part that the kernel has written and that we have not returned.
    fn data(&self, start: usize, length: usize) -> Option<&[u8]> {
        if start.checked_add(length)? > self.size {
            return None;
        }
        // SAFETY: start + length lies within the data part, which lies within the map, which lives
        // as long as self. The callers request only bytes between tail and head, where the kernel
        // does not write until the tail is moved. Only `drain` does that: after its own slice is
        // gone, and with the lock that `peek` holds as long as its slices live.
        Some(unsafe { slice::from_raw_parts(self.map.as_ptr().add(self.page + start), length) })
    }

    fn head(&self) -> &AtomicU64 {
        // SAFETY: the map begins with a perf_event_mmap_page; the field is inside, aligned to 8,
        // and shared with the kernel, which is what atomics are for.
        unsafe { AtomicU64::from_ptr(ptr::addr_of_mut!((*self.header()).data_head)) }
    }

    fn tail(&self) -> &AtomicU64 {
        // SAFETY: as for the head.
        unsafe { AtomicU64::from_ptr(ptr::addr_of_mut!((*self.header()).data_tail)) }
    }

    fn header(&self) -> *mut perf_event_mmap_page {
        self.map.as_mut_ptr().cast()
    }
}

fn locked(lock: &Mutex<()>) -> MutexGuard<'_, ()> {
    // A panic of another thread does not affect the kernel's ring.
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: usize = 4096;
    const SIZE: usize = 4096;

    /// A ring without a kernel: the test acts as the kernel.
    struct Fake {
        ring: Ring,
        written: u64,
    }

    impl Fake {
        fn new() -> Self {
            let map = MmapOptions::new().len(PAGE + SIZE).map_anon();
            let map = MmapRaw::from(map.expect("anonymous memory"));
            Self {
                ring: Ring::over(map, PAGE, SIZE),
                written: 0,
            }
        }

        fn write(&mut self, bytes: &[u8]) {
            for &byte in bytes {
                let at = PAGE + (self.written as usize & (SIZE - 1));
                // SAFETY: inside the map, and no slice of it is alive.
                unsafe { self.ring.map.as_mut_ptr().add(at).write(byte) };
                self.written += 1;
            }
            self.ring.head().store(self.written, Ordering::Release);
        }

        fn drain(&mut self) -> (Vec<Vec<u8>>, bool) {
            let mut records = Vec::new();
            let drained = self.ring.drain(|record| records.push(record.to_vec()));
            (records, drained.corrupt)
        }
    }

    fn record(length: u16, fill: u8) -> Vec<u8> {
        let mut bytes = vec![fill; length.into()];
        bytes[6..8].copy_from_slice(&length.to_ne_bytes());
        bytes
    }

    #[test]
    fn records_that_wrap_come_out_whole() {
        let mut fake = Fake::new();
        for round in 0..1000_u64 {
            let lengths = [8, 1000 + (round % 64) as u16 * 8, 24];
            let records = lengths.map(|length| record(length, round as u8));
            for bytes in &records {
                fake.write(bytes);
            }
            assert_eq!(fake.drain(), (records.to_vec(), false), "round {round}");
        }
        assert_eq!(fake.drain(), (vec![], false));
        assert_eq!(fake.ring.tail().load(Ordering::Relaxed), fake.written);
    }

    #[test]
    fn peeked_records_stay() {
        let mut fake = Fake::new();
        let mut seen = 0;
        let mut peek = |fake: &mut Fake| {
            let mut records = Vec::new();
            (fake.ring).peek(&mut seen, |record| records.push(record.to_vec()));
            records
        };
        fake.write(&record(16, 1));
        fake.write(&record(24, 2));
        assert_eq!(peek(&mut fake), [record(16, 1), record(24, 2)]);
        fake.write(&record(16, 3));
        assert_eq!(peek(&mut fake), [record(16, 3)]);
        assert_eq!(fake.drain().0.len(), 3);
        fake.write(&record(16, 4));
        assert_eq!(fake.drain().0.len(), 1);
        fake.write(&record(16, 5));
        // Records that were drained before are not seen.
        assert_eq!(peek(&mut fake), [record(16, 5)]);
        // Garbage ends it.
        fake.write(&[0; 16]);
        assert!(peek(&mut fake).is_empty() && peek(&mut fake).is_empty());
    }

    #[test]
    fn a_full_ring_is_drained() {
        let mut fake = Fake::new();
        fake.write(&record(16, 1));
        fake.drain();
        let full = record(SIZE as u16, 2);
        fake.write(&full);
        assert_eq!(fake.drain(), (vec![full], false));
    }

    #[test]
    fn nonsense_is_skipped_and_reported() {
        for length in [0_u16, 7, 64] {
            let mut fake = Fake::new();
            fake.write(&record(16, 1));
            let mut bad = vec![0; 32];
            bad[6..8].copy_from_slice(&length.to_ne_bytes());
            fake.write(&bad);
            assert_eq!(fake.drain(), (vec![record(16, 1)], true), "{length}");
            fake.write(&record(16, 3));
            assert_eq!(fake.drain(), (vec![record(16, 3)], false), "{length}");
        }
    }
}
