//! Generic code, closures, iterators and trait objects, most of it inlined.
use std::collections::BTreeMap;
use std::hint::black_box;

mod numbers {
    pub trait Step {
        fn step(&self, x: u64) -> u64;
    }

    pub struct Multiply<const BY: u64>;

    impl<const BY: u64> Step for Multiply<BY> {
        #[inline(never)]
        fn step(&self, x: u64) -> u64 {
            (0..2000).fold(x, |x, i| innermost(x, i, BY))
        }
    }

    #[inline(always)]
    fn innermost(x: u64, i: u64, by: u64) -> u64 {
        std::hint::black_box(x.wrapping_mul(by).wrapping_add(i))
    }
}

use numbers::{Multiply, Step};

#[inline(never)]
fn apply(steps: &[Box<dyn Step>], rounds: u64) -> BTreeMap<u64, u64> {
    (0..rounds)
        .map(|round| {
            let sum = steps.iter().fold(round, |x, step| step.step(x));
            (sum % 97, sum)
        })
        .collect()
}

fn main() {
    let milliseconds: u64 = std::env::args().nth(1).map_or(500, |text| text.parse().unwrap());
    let steps: Vec<Box<dyn Step>> = vec![Box::new(Multiply::<3>), Box::new(Multiply::<5>)];
    black_box(apply(&steps, milliseconds * 150));
}
