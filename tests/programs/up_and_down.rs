//! Recursion of 2,000 frames, which works on its way down and up again: up_and_down MILLISECONDS
use std::hint::black_box;
use std::time::{Duration, Instant};

const LEVELS: u32 = 2000;

#[inline(never)]
fn recurse(levels: u32) -> u64 {
    let mut room = [u64::from(levels); 8];
    black_box(&mut room);
    let below = if levels == 0 { 1 } else { recurse(levels - 1) };
    (0..20).fold(below, |x, i| black_box(x.wrapping_mul(room[0]).wrapping_add(i)))
}

fn main() {
    let milliseconds = std::env::args().nth(1).map_or(200, |text| text.parse().expect("a number"));
    let (begin, long) = (Instant::now(), Duration::from_millis(milliseconds));
    while begin.elapsed() < long {
        black_box(recurse(LEVELS));
    }
}
