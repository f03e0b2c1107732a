//! Reading an event without a system call, through its page in our memory.
//!
//! The kernel keeps in the page which hardware counter the event has at the moment, and what the
//! event had counted before it got that counter. The protocol is that of `struct
//! perf_event_mmap_page` in include/uapi/linux/perf_event.h:
//!
//! ```text
//!   lock ──> even? ──> index, offset, times ──> rdpmc(index - 1) ──> lock unchanged? ──> done
//!    ^                                                                    │ no: again
//!    └────────────────────────────────────────────────────────────────────┘
//! ```

use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicI64, AtomicU16, AtomicU32, AtomicU64, Ordering, fence};

use memmap2::{MmapOptions, MmapRaw};
use perf_event_open_sys::bindings::perf_event_mmap_page;

/// An event's page. It can only be read on the thread that the event counts, because a hardware
/// counter belongs to the event only while the thread is on the CPU: so it is not `Send`.
///
/// Two hazards that the kernel leaves: the page is not inherited by `fork`, so a child must not
/// touch it before `exec`; and reading faults if the administrator forbids `rdpmc` (the file
/// `rdpmc` of the PMU in sysfs) while the page is mapped.
#[derive(Debug)]
pub struct UserPage {
    page: MmapRaw,
    not_for_other_threads: PhantomData<*const ()>,
}

/// The count of an event, read without a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserCount {
    /// The count.
    pub value: u64,
    /// Nanoseconds that the event was enabled while its thread was on a CPU.
    pub enabled: u64,
    /// Nanoseconds that it was on the PMU, counting.
    pub running: u64,
    /// Whether the times are of now; if not, they are of when the kernel last touched the event,
    /// because the CPU's time stamps don't serve as a clock here.
    pub times_are_current: bool,
}

impl UserPage {
    pub(super) fn map(event: BorrowedFd<'_>) -> io::Result<Self> {
        let page = MmapOptions::new()
            .len(rustix::param::page_size())
            .map_raw_read_only(event.as_raw_fd())?;
        if page.len() < size_of::<perf_event_mmap_page>() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(Self {
            page,
            not_for_other_threads: PhantomData,
        })
    }

    /// The count of the event, or `None` if a system call is needed: the event is not on a hardware
    /// counter right now (or is no hardware event), or the kernel or the processor does not let us
    /// read it.
    #[inline]
    pub fn read(&self) -> Option<UserCount> {
        // SAFETY: the page is mapped as long as we are, and the kernel writes it word by word.
        let page = unsafe { Page::new(self.page.as_ptr().cast_mut().cast()) };
        read(&page, &ThisCpu)
    }
}

/// The processor.
trait Counters {
    /// The hardware counter of that number (`rdpmc`); `None` on processors without.
    ///
    /// # Safety
    ///
    /// The kernel must allow it, as it does for a mapped page with `cap_user_rdpmc`.
    unsafe fn counter(&self, index: u32) -> Option<u64>;
    /// The time stamp counter.
    fn time_stamp(&self) -> u64;
}

struct ThisCpu;

#[cfg(target_arch = "x86_64")]
impl Counters for ThisCpu {
    #[inline]
    unsafe fn counter(&self, index: u32) -> Option<u64> {
        let (low, high): (u32, u32);
        // SAFETY: rdpmc only writes the two registers. That it is allowed is the caller's promise.
        unsafe {
            std::arch::asm!("rdpmc", in("ecx") index, out("eax") low, out("edx") high, options(nostack));
        }
        Some(u64::from(high) << 32 | u64::from(low))
    }

    #[inline]
    fn time_stamp(&self) -> u64 {
        // SAFETY: every x86_64 has rdtsc, and Linux leaves it to user code.
        unsafe { std::arch::x86_64::_rdtsc() }
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl Counters for ThisCpu {
    unsafe fn counter(&self, _: u32) -> Option<u64> {
        None
    }

    fn time_stamp(&self) -> u64 {
        0
    }
}

/// The page's fields as the kernel writes them beside us.
struct Page<'a> {
    lock: &'a AtomicU32,
    index: &'a AtomicU32,
    offset: &'a AtomicI64,
    enabled: &'a AtomicU64,
    running: &'a AtomicU64,
    capabilities: &'a AtomicU64,
    width: &'a AtomicU16,
    shift: &'a AtomicU16,
    mult: &'a AtomicU32,
    time_offset: &'a AtomicU64,
    time_cycles: &'a AtomicU64,
    time_mask: &'a AtomicU64,
}

/// Bits of `capabilities`.
const CAP_USER_RDPMC: u64 = 1 << 2;
const CAP_USER_TIME: u64 = 1 << 3;
const CAP_USER_TIME_SHORT: u64 = 1 << 5;

impl<'a> Page<'a> {
    /// # Safety
    ///
    /// `page` must be mapped for `'a`, and others may only write to it as they write atomics.
    unsafe fn new(page: *mut perf_event_mmap_page) -> Self {
        // SAFETY: the caller's promise; every field lies within the page and is aligned as C
        // aligns it, which is at least its size here.
        unsafe {
            Self {
                lock: AtomicU32::from_ptr(&raw mut (*page).lock),
                index: AtomicU32::from_ptr(&raw mut (*page).index),
                offset: AtomicI64::from_ptr(&raw mut (*page).offset),
                enabled: AtomicU64::from_ptr(&raw mut (*page).time_enabled),
                running: AtomicU64::from_ptr(&raw mut (*page).time_running),
                capabilities: AtomicU64::from_ptr((&raw mut (*page).__bindgen_anon_1).cast()),
                width: AtomicU16::from_ptr(&raw mut (*page).pmc_width),
                shift: AtomicU16::from_ptr(&raw mut (*page).time_shift),
                mult: AtomicU32::from_ptr(&raw mut (*page).time_mult),
                time_offset: AtomicU64::from_ptr(&raw mut (*page).time_offset),
                time_cycles: AtomicU64::from_ptr(&raw mut (*page).time_cycles),
                time_mask: AtomicU64::from_ptr(&raw mut (*page).time_mask),
            }
        }
    }
}

/// More attempts than a working kernel needs; then a system call is used.
const ATTEMPTS: usize = 1000;

#[inline]
fn read(page: &Page<'_>, counters: &impl Counters) -> Option<UserCount> {
    for _ in 0..ATTEMPTS {
        let lock = page.lock.load(Ordering::Acquire);
        let count = read_once(page, counters);
        fence(Ordering::Acquire);
        if lock & 1 == 0 && page.lock.load(Ordering::Relaxed) == lock {
            return count;
        }
        std::hint::spin_loop();
    }
    None
}

/// One attempt; the result is invalid if the page changed meanwhile.
#[inline]
fn read_once(page: &Page<'_>, counters: &impl Counters) -> Option<UserCount> {
    let load = |field: &AtomicU64| field.load(Ordering::Relaxed);
    let capabilities = load(page.capabilities);
    let index = page.index.load(Ordering::Relaxed);
    if capabilities & CAP_USER_RDPMC == 0 {
        return None;
    }
    let number = index.checked_sub(1)?;
    let (enabled, running) = (load(page.enabled), load(page.running));
    let since = (capabilities & CAP_USER_TIME != 0)
        .then(|| nanoseconds_since(page, capabilities, counters.time_stamp()));
    let width = u32::from(page.width.load(Ordering::Relaxed));
    // SAFETY: the page is mapped and says that user code may read the counters.
    let counter = unsafe { counters.counter(number) }?;
    let offset = page.offset.load(Ordering::Relaxed);
    let elapsed = since.unwrap_or(0);
    Some(UserCount {
        value: (offset as u64).wrapping_add(sign_extended(counter, width) as u64),
        enabled: enabled.wrapping_add(elapsed),
        running: running.wrapping_add(elapsed),
        times_are_current: since.is_some(),
    })
}

/// Nanoseconds since the kernel last wrote the times.
#[inline]
fn nanoseconds_since(page: &Page<'_>, capabilities: u64, mut cycles: u64) -> u64 {
    let load = |field: &AtomicU64| field.load(Ordering::Relaxed);
    if capabilities & CAP_USER_TIME_SHORT != 0 {
        let (start, mask) = (load(page.time_cycles), load(page.time_mask));
        cycles = start.wrapping_add(cycles.wrapping_sub(start) & mask);
    }
    let shift = u32::from(page.shift.load(Ordering::Relaxed)).min(63);
    let mult = u64::from(page.mult.load(Ordering::Relaxed));
    let (whole, rest) = (cycles >> shift, cycles & ((1 << shift) - 1));
    load(page.time_offset)
        .wrapping_add(whole.wrapping_mul(mult))
        .wrapping_add(rest.wrapping_mul(mult) >> shift)
}

/// The counter's `width` bits as a signed number: that is how the kernel's offset takes them, so
/// that a counter that went past its width goes on counting in 64 bits.
#[inline]
fn sign_extended(counter: u64, width: u32) -> i64 {
    match width {
        1..=63 => (counter << (64 - width)) as i64 >> (64 - width),
        _ => counter as i64,
    }
}

#[cfg(test)]
mod tests;
