//! The cost of reading: `cargo run --release -p prof-counters --example cost`
//!
//! Prints the median of many batches, in nanoseconds a read.

use std::error::Error;
use std::time::Instant;

use prof_counters::{Counter, Group, Target, event};

const BATCHES: usize = 101;
const READS: u32 = 200;

fn main() -> Result<(), Box<dyn Error>> {
    for name in ["instructions:u", "task-clock:u"] {
        let event = event(name)?;
        let counter = match Counter::new(&event, Target::ThisThread) {
            Ok(counter) => counter,
            Err(error) => {
                show(&format!("{name}: {error}"), None);
                continue;
            }
        };
        counter.enable()?;
        show(
            &format!("{name}: Counter::read"),
            Some(median(|| counter.read().is_ok())),
        );
        let reader = counter.reader()?;
        match reader.direct() {
            Some(_) => show(
                &format!("{name}: Reader::direct"),
                Some(median(|| reader.direct().is_some())),
            ),
            None => show(&format!("{name}: Reader::direct is not possible"), None),
        }
        let way = if reader.is_direct() {
            "directly if possible"
        } else {
            "by a system call, which is faster here"
        };
        show(
            &format!("{name}: Reader::read, {way}"),
            Some(median(|| reader.read().is_ok())),
        );
        for members in [1, 4] {
            let mut group = Group::new(Target::ThisThread)?;
            let counters: Vec<Counter> = (0..members)
                .map(|_| group.add(&event))
                .collect::<Result<_, _>>()?;
            group.enable()?;
            let mut snapshot = group.read()?;
            let cost = median(|| group.read_into(&mut snapshot).is_ok());
            show(
                &format!("{name}: Group::read_into of {}", counters.len()),
                Some(cost),
            );
        }
    }
    Ok(())
}

fn median(mut read: impl FnMut() -> bool) -> f64 {
    let mut batches: Vec<f64> = (0..BATCHES)
        .map(|_| {
            let start = Instant::now();
            let good = (0..READS).filter(|_| read()).count();
            let nanoseconds = start.elapsed().as_nanos() as f64 / f64::from(READS);
            if good == READS as usize {
                nanoseconds
            } else {
                f64::INFINITY
            }
        })
        .collect();
    batches.sort_by(f64::total_cmp);
    batches.get(BATCHES / 2).copied().unwrap_or(f64::INFINITY)
}

#[expect(clippy::print_stdout, reason = "that is what it is for")]
fn show(what: &str, nanoseconds: Option<f64>) {
    match nanoseconds {
        Some(nanoseconds) => println!("{nanoseconds:>8.0} ns  {what}"),
        None => println!("{:>8}     {what}", "-"),
    }
}
