//! Work in futures, two levels deep, in generic functions, closures and trait implementations.
//! `tasks MILLISECONDS`.
#![forbid(unsafe_code)]

use std::future::Future;
use std::hint::black_box;
use std::pin::Pin;
use std::task::{Context, Poll};

trait Shape {
    fn area(&self, rounds: u64) -> u64;
}

struct Polygon<T>(T);

impl<T: Into<u64> + Copy> Shape for Polygon<T> {
    #[inline(never)]
    fn area(&self, rounds: u64) -> u64 {
        burn(rounds) + self.0.into()
    }
}

/// A chain of dependent multiplications, which takes the same time in each function.
#[inline(never)]
fn burn(rounds: u64) -> u64 {
    (0..rounds).fold(1, |x, _| black_box(x * 3 + 1) % 1_000_003)
}

#[inline(never)]
fn apply<F: FnMut(u64) -> u64>(mut function: F, rounds: u64) -> u64 {
    black_box(function(rounds))
}

/// A hand-written future.
struct ByHand {
    rounds: u64,
}

impl Future for ByHand {
    type Output = u64;

    #[inline(never)]
    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<u64> {
        let shape = Polygon(7_u32);
        Poll::Ready(apply(|rounds| black_box(shape.area(rounds)), self.rounds))
    }
}

async fn inner(rounds: u64) -> u64 {
    let first = ByHand { rounds: rounds / 4 }.await;
    tokio::task::yield_now().await;
    first + ByHand { rounds: rounds / 4 }.await
}

async fn outer(rounds: u64) -> u64 {
    // Boxed, so that there is something between the two.
    let boxed: Pin<Box<dyn Future<Output = u64> + Send>> = Box::pin(inner(rounds));
    let block = async move { black_box(burn(rounds / 2)) };
    boxed.await + block.await
}

fn main() {
    let milliseconds: u64 = std::env::args().nth(1).map_or(300, |text| text.parse().unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    let rounds = milliseconds * 100_000;
    let tasks: Vec<_> = (0..4).map(|_| runtime.spawn(outer(rounds / 4))).collect();
    for task in tasks {
        black_box(runtime.block_on(task).unwrap());
    }
}
