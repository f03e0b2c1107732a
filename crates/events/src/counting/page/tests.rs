use std::cell::Cell;
use std::mem::zeroed;
use std::sync::atomic::AtomicBool;

use super::*;

/// A simulated processor.
struct Fake {
    counter: Cell<u64>,
    time_stamp: u64,
    /// Runs while the counter is read.
    meanwhile: Option<Box<dyn Fn()>>,
}

impl Fake {
    fn new(counter: u64) -> Self {
        Self {
            counter: Cell::new(counter),
            time_stamp: 0,
            meanwhile: None,
        }
    }
}

impl Counters for Fake {
    unsafe fn counter(&self, _: u32) -> Option<u64> {
        if let Some(meanwhile) = &self.meanwhile {
            meanwhile();
        }
        Some(self.counter.get())
    }

    fn time_stamp(&self) -> u64 {
        self.time_stamp
    }
}

struct FakePage(Box<perf_event_mmap_page>);

impl FakePage {
    fn new(change: impl FnOnce(&mut perf_event_mmap_page)) -> Self {
        // SAFETY: the page is a C structure of integers.
        let mut page: Box<perf_event_mmap_page> = Box::new(unsafe { zeroed() });
        page.__bindgen_anon_1.capabilities = CAP_USER_RDPMC;
        page.index = 1;
        page.pmc_width = 48;
        change(&mut page);
        Self(page)
    }

    fn page(&mut self) -> Page<'_> {
        // SAFETY: the page is ours.
        unsafe { Page::new(&raw mut *self.0) }
    }
}

fn check(counter: u64, change: impl FnOnce(&mut perf_event_mmap_page), expected: Option<u64>) {
    let mut page = FakePage::new(change);
    let count = read(&page.page(), &Fake::new(counter));
    assert_eq!(count.map(|count| count.value), expected);
}

#[test]
fn the_count_is_offset_and_counter() {
    check(5, |page| page.offset = 100, Some(105));
    check(5, |page| page.index = 6, Some(5));
    // As x86 programs its counters: from minus half their range up.
    check(
        0x8000_0000_1bac,
        |page| page.offset = 0x7fff_ffff_ffff + 1,
        Some(0x1bac),
    );
    // Past the counter's width: the kernel's offset goes on where the counter wrapped.
    check(3, |page| page.offset = 1 << 48, Some((1 << 48) + 3));
    check(
        0x7fff_ffff_ffff,
        |page| page.offset = i64::MAX,
        Some(0x8000_7fff_ffff_fffe),
    );
    check(u64::MAX, |page| page.pmc_width = 64, Some(u64::MAX));
    check(7, |page| page.pmc_width = 0, Some(7));
    check(7, |page| page.pmc_width = u16::MAX, Some(7));
}

#[test]
fn without_a_counter_there_is_nothing_to_read() {
    check(5, |page| page.index = 0, None);
    check(5, |page| page.__bindgen_anon_1.capabilities = 0, None);
    check(
        5,
        |page| page.__bindgen_anon_1.capabilities = CAP_USER_TIME,
        None,
    );
}

#[test]
fn a_page_that_stays_locked_is_given_up() {
    check(5, |page| page.lock = 1, None);
}

#[test]
fn times_follow_the_time_stamp_counter() {
    let mut page = FakePage::new(|page| {
        page.__bindgen_anon_1.capabilities = CAP_USER_RDPMC | CAP_USER_TIME;
        page.time_enabled = 1_000;
        page.time_running = 500;
        page.time_shift = 10;
        page.time_mult = 512;
        page.time_offset = 0_u64.wrapping_sub(1_000);
    });
    let mut cpu = Fake::new(0);
    // 1 cycle is 512 / 1024 of a nanosecond.
    cpu.time_stamp = 4_001;
    let count = read(&page.page(), &cpu).unwrap();
    assert!(count.times_are_current);
    assert_eq!((count.enabled, count.running), (1_000 + 1_000, 500 + 1_000));
}

#[test]
fn short_time_stamps_are_completed() {
    let mut page = FakePage::new(|page| {
        page.__bindgen_anon_1.capabilities = CAP_USER_RDPMC | CAP_USER_TIME | CAP_USER_TIME_SHORT;
        page.time_shift = 0;
        page.time_mult = 1;
        page.time_cycles = 0x1_0000_fff0;
        page.time_mask = 0xffff;
        page.time_offset = 0_u64.wrapping_sub(0x1_0000_fff0);
    });
    let mut cpu = Fake::new(0);
    cpu.time_stamp = 0x0010;
    assert_eq!(read(&page.page(), &cpu).unwrap().enabled, 0x20);
}

#[test]
fn a_change_while_reading_makes_it_read_again() {
    let mut fake = FakePage::new(|page| page.offset = 100);
    let pointer = &raw mut *fake.0;
    let changed = AtomicBool::new(false);
    let mut cpu = Fake::new(5);
    cpu.meanwhile = Some(Box::new(move || {
        // The thread is moved: the kernel takes the counter away, keeps what it had counted in
        // the offset, and gives another.
        if !changed.swap(true, Ordering::Relaxed) {
            // SAFETY: the page outlives the test's closure.
            let page = unsafe { Page::new(pointer) };
            page.lock.fetch_add(1, Ordering::Relaxed);
            page.offset.store(200, Ordering::Release);
            page.lock.fetch_add(1, Ordering::Release);
        }
    }));
    // SAFETY: the page is ours.
    let count = read(&unsafe { Page::new(pointer) }, &cpu);
    assert_eq!(count.map(|count| count.value), Some(205));
}

#[test]
fn no_count_is_torn_by_a_writer_beside_us() {
    let mut fake = FakePage::new(|_| ());
    let pointer = Pointer(&raw mut *fake.0);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let pointer = &pointer;
            // SAFETY: the page outlives the scope.
            let page = unsafe { Page::new(pointer.0) };
            let mut value = 0;
            while !stop.load(Ordering::Relaxed) {
                value += 1;
                // As the kernel does (perf_event_update_userpage): odd while it writes.
                page.lock.fetch_add(1, Ordering::Relaxed);
                fence(Ordering::Release);
                page.enabled.store(value, Ordering::Relaxed);
                page.running.store(value, Ordering::Relaxed);
                page.offset.store(value as i64, Ordering::Relaxed);
                page.lock.fetch_add(1, Ordering::Release);
            }
        });
        // SAFETY: the page is ours.
        let page = unsafe { Page::new(pointer.0) };
        let cpu = Fake::new(0);
        let mut last = 0;
        for _ in 0..100_000 {
            // `None` is right if the writer never left a gap.
            if let Some(count) = read(&page, &cpu) {
                assert_eq!((count.enabled, count.running), (count.value, count.value));
                assert!(count.value >= last);
                last = count.value;
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
}

struct Pointer(*mut perf_event_mmap_page);

// SAFETY: what it points to is only accessed as atomics.
unsafe impl Sync for Pointer {}
