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
    /// Keeps a value.
    pub(crate) fn keep(&self, value: T) -> &T {
        let mut link = &self.first;
        let mut node = Some(Box::new(Node {
            value,
            next: Link::new(),
        }));
        loop {
            // Whoever comes first takes the place; the other goes on to the next.
            let taken = link.get_or_init(|| node.take().unwrap_or_else(|| unreachable!()));
            if node.is_none() {
                return &taken.value;
            }
            link = &taken.next;
        }
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
