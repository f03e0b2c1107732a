// Iterators, closures, hashing, sorting, formatting, panics that are caught, threads.
use std::collections::HashMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

#[inline(never)]
fn words(seed: u64) -> Vec<String> {
    (0..3000_u64).map(|i| format!("{}", (i * 7919 + seed) % 5000)).collect()
}

#[inline(never)]
fn round_of_work(seed: u64) -> usize {
    let mut list = words(seed);
    list.sort_by(|a, b| b.cmp(a));
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for word in &list {
        *counts.entry(word).or_default() += word.bytes().filter(|b| b % 2 == 0).count();
    }
    let caught = std::panic::catch_unwind(|| if seed % 4 == 0 { std::panic::resume_unwind(Box::new(1)) });
    counts.values().sum::<usize>() + usize::from(caught.is_err())
}

fn main() {
    let start = Instant::now();
    let other = std::thread::spawn(move || {
        let mut seed = 0;
        while start.elapsed() < Duration::from_millis(500) {
            seed += 1;
            black_box(round_of_work(seed));
        }
    });
    let mut seed = 1;
    while start.elapsed() < Duration::from_millis(500) {
        seed += 2;
        black_box(round_of_work(seed));
    }
    other.join().unwrap();
}
