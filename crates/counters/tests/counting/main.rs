//! Counters, groups and snapshots on this machine's kernel. The tests use software events, so that
//! they run everywhere; tests that need hardware counters or root are skipped without them, and say
//! so.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::print_stderr, reason = "what is skipped is said")]

mod groups;
mod hardware;
mod refused;
mod snapshots;
mod targets;

use prof_counters::{Count, Counter, Target, event};

const PAGES: u64 = 128;

/// Makes this many page faults, and few others.
#[inline(never)]
fn touch_pages() {
    let mut memory = memmap2::MmapMut::map_anon(PAGES as usize * 4096).unwrap();
    memory.advise(memmap2::Advice::NoHugePage).unwrap();
    for page in memory.chunks_mut(4096) {
        page[0] = 1;
    }
}

fn check_faults(count: u64, times: u64) {
    let expected = PAGES * times;
    assert!(
        (expected..=expected + 40 * times).contains(&count),
        "{count} faults for {expected} pages"
    );
}

fn faults(target: Target) -> Counter {
    Counter::new(&event("page-faults:u").unwrap(), target).unwrap()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn has_hardware() -> bool {
    let has = Counter::new(&event("cycles:u").unwrap(), Target::ThisThread).is_ok();
    if !has {
        eprintln!("skipped: no hardware counters here");
    }
    has
}

#[test]
fn a_counter_counts_while_it_is_enabled() {
    let counter = faults(Target::ThisThread);
    touch_pages();
    assert_eq!(counter.read(), Ok(Count::default()));
    counter.enable().unwrap();
    touch_pages();
    counter.disable().unwrap();
    let count = counter.read().unwrap();
    check_faults(count.value, 1);
    touch_pages();
    assert_eq!(counter.read(), Ok(count));
    counter.reset().unwrap();
    assert_eq!(counter.read(), Ok(Count::default()));
    counter.enable().unwrap();
    touch_pages();
    check_faults(counter.read().unwrap().value, 1);
}
