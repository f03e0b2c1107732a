//! Values that live as long as their arena, which many threads may add to.

use std::sync::OnceLock;

/// Values that are kept where they are until the arena goes.
pub(crate) struct Arena<T> {
    first: Link<T>,
}

type Link<T> = OnceLock<Box<Node<T>>>;

struct Node<T> {
    value: T,
    next: Link<T>,
}

impl<T> Default for Arena<T> {
    fn default() -> Self {
        Self { first: Link::new() }
    }
}

impl<T> Arena<T> {
    /// Stores a value. (`None` can't happen: a place that is taken stays so.)
    pub(crate) fn store(&self, value: T) -> Option<&T> {
        let mut link = &self.first;
        let mut node = Box::new(Node {
            value,
            next: Link::new(),
        });
        // Whoever comes first takes the place; the other goes on to the next.
        while let Err(mine) = link.set(node) {
            node = mine;
            link = &link.get()?.next;
        }
        Some(&link.get()?.value)
    }
}

impl<T> Drop for Arena<T> {
    fn drop(&mut self) {
        // One after the other: a long chain must not become a deep recursion.
        let mut next = self.first.take();
        while let Some(mut node) = next {
            next = node.next.take();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_many_threads_stay() {
        let arena = Arena::default();
        let sums: Vec<u64> = std::thread::scope(|scope| {
            let keep = |from: u64| {
                let kept: Vec<_> = (from..from + 50).filter_map(|n| arena.store(n)).collect();
                kept.into_iter().sum()
            };
            let threads: Vec<_> = (0..4).map(|n| scope.spawn(move || keep(n * 50))).collect();
            threads
                .into_iter()
                .filter_map(|thread| thread.join().ok())
                .collect()
        });
        assert_eq!(sums.iter().sum::<u64>(), (0..200).sum());
    }

    #[test]
    fn a_long_chain_goes_without_recursion() {
        let arena = Arena::default();
        let mut chain = Box::new(Node {
            value: 0,
            next: Link::new(),
        });
        for value in 1..1_000_000 {
            let next = Link::new();
            let _ = next.set(chain);
            chain = Box::new(Node { value, next });
        }
        let _ = arena.first.set(chain);
        drop(arena);
    }
}
