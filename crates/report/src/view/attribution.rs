//! Whose the own weight of waits and allocations is: that of the innermost function which decided
//! to wait or to allocate.
//!
//! ```text
//!   main ─▶ take ─▶ pthread_mutex_lock ─▶ __lll_lock_wait ─▶ [kernel] schedule
//!           owner   through                                  where the sample is
//! ```

use crate::calltree::{CallTree, Label, NodeId};
use crate::profile::Event;
use crate::symbolize::primitives::is_primitive;
use crate::symbolize::{FunctionId, FunctionKind, OFF_CPU};

/// The owners of nodes' own weights.
pub(super) struct Attribution {
    /// By node's number; empty if each node has its own.
    owners: Vec<Owner>,
}

/// Who has the own weight of a node.
#[derive(Clone, Copy, Default)]
struct Owner {
    /// If it is not the node's function.
    function: Option<FunctionId>,
    /// What that called to wait or to allocate.
    through: Option<FunctionId>,
}

/// What is known on the way to a node.
#[derive(Clone, Copy, Default)]
struct Path {
    /// Whether own weights here are of waits or allocations.
    counts: bool,
    /// The innermost function of the program, and the innermost that is no primitive.
    user: Option<FunctionId>,
    decides: Option<FunctionId>,
    /// The outermost of the primitives below that.
    through: Option<FunctionId>,
}

impl Attribution {
    /// Of a tree whose event is of waits or allocations; of others, all weights stay.
    pub(super) fn of(tree: &CallTree<'_>) -> Self {
        let symbolized = tree.symbolized();
        let (off_cpu, allocates) = (tree.event().is_off_cpu(), tree.event().allocates());
        if !off_cpu && !allocates && tree.event().name != Event::WALL_CLOCK {
            return Self { owners: Vec::new() };
        }
        let is_primitive = |function: FunctionId| {
            !symbolized.profile().native && is_primitive(&symbolized[function])
        };
        let mut paths: Vec<Path> = Vec::with_capacity(tree.nodes().count());
        let mut owners = Vec::new();
        for (id, node) in tree.nodes() {
            let mut path = match id {
                NodeId::ROOT => Path {
                    counts: off_cpu || allocates,
                    ..Path::default()
                },
                _ => paths[node.parent.index()],
            };
            let mut owner = Owner::default();
            if let Label::Function(function) = node.label {
                match symbolized[function].kind {
                    FunctionKind::State => path.counts |= &*symbolized[function].name == OFF_CPU,
                    FunctionKind::Kernel if path.counts => owner = path.owner(),
                    FunctionKind::Kernel | FunctionKind::Missing => {}
                    FunctionKind::User | FunctionKind::Jit | FunctionKind::Interpreted(_) => {
                        path.user = Some(function);
                        if is_primitive(function) {
                            path.through = path.through.or(Some(function));
                            if path.counts && path.decides.is_some() {
                                owner = path.owner();
                            }
                        } else {
                            (path.decides, path.through) = (Some(function), None);
                        }
                    }
                }
            }
            paths.push(path);
            owners.push(owner);
        }
        Self { owners }
    }

    /// The function that has a node's own weight, if it is not the node's.
    pub(super) fn owner(&self, id: NodeId) -> Option<FunctionId> {
        self.owners.get(id.index())?.function
    }

    /// What the owner of a node's weight called to wait or to allocate.
    pub(super) fn through(&self, id: NodeId) -> Option<FunctionId> {
        self.owners.get(id.index())?.through
    }
}

impl Path {
    fn owner(self) -> Owner {
        match self.decides {
            Some(function) => Owner {
                function: Some(function),
                through: self.through,
            },
            None => Owner {
                function: self.user,
                through: None,
            },
        }
    }
}
