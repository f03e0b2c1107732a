//! The data of the views: the current profile, merged, in values of its own.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use prof_model::Quality;
use prof_report::calltree::{Label, NodeId};
use prof_report::symbolize::FunctionKind;
use prof_report::view::flat::Flat;
use prof_report::view::groups::Groups;
use prof_report::{CallTree, Filter, Split, SymbolizedProfile};

/// The current profile.
#[derive(Debug, Default)]
pub(super) struct Picture {
    /// The event of the weights.
    pub event: String,
    /// By self weight, the heaviest first.
    pub functions: Vec<Row>,
    /// By their weight, the heaviest first.
    pub threads: Vec<Row>,
    pub tree: Tree,
    /// The totals since the start.
    pub foot: Foot,
}

/// A function, or a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub name: Arc<str>,
    pub module: Arc<str>,
    pub own: u64,
    pub total: u64,
}

/// How far the profile can be trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Foot {
    pub samples: u64,
    /// The share of whole stacks, from 0 to 1.
    pub whole: Option<f64>,
    /// Why the others are not, most of them.
    pub partial: Option<&'static str>,
    pub lost: u64,
    pub throttled: u64,
    /// The share of the samples' weight that is dropped, because it is rare.
    pub left_out: f64,
}

/// Calls, merged from the outermost function inwards.
#[derive(Debug)]
pub(super) struct Tree {
    /// Each after its caller; the first one is the root.
    pub nodes: Vec<Node>,
}

/// A function with one stack of callers.
#[derive(Debug)]
pub(super) struct Node {
    /// The same in the next picture for the same call.
    pub id: u64,
    pub name: Arc<str>,
    pub module: Arc<str>,
    pub kind: FunctionKind,
    pub own: u64,
    pub total: u64,
    pub parent: usize,
    /// The heaviest first.
    pub children: Vec<usize>,
}

impl Picture {
    /// The part of a profile that passes `filter`. Listing threads takes another pass, so this
    /// happens only if requested.
    pub(super) fn new(profile: &SymbolizedProfile, filter: &Filter, threads: bool) -> Self {
        let foot = Foot::of(profile.quality());
        // Without samples, the picture is empty.
        let Ok(calls) = CallTree::new(profile, filter, Split::Nothing) else {
            return Self {
                foot,
                ..Self::default()
            };
        };
        let functions = Flat::new(&calls).rows.into_iter().map(|row| {
            let function = &profile[row.function];
            Row {
                name: Arc::clone(&function.name),
                module: Arc::clone(&function.module),
                own: row.own.value,
                total: row.total.value,
            }
        });
        let by_thread = threads.then(|| CallTree::new(profile, filter, Split::Thread));
        let threads = by_thread.into_iter().flatten().flat_map(|calls| {
            let rows = Groups::parts(&calls).rows.into_iter();
            rows.map(|group| Row {
                name: group.name.into(),
                module: "".into(),
                own: group.own.value,
                total: group.total.value,
            })
        });
        Self {
            event: shown_name(&calls.event().name),
            functions: functions.collect(),
            threads: threads.collect(),
            tree: Tree::of(&calls),
            foot,
        }
    }

    /// The total weight.
    pub(super) fn total(&self) -> u64 {
        self.tree.nodes[Tree::ROOT].total
    }
}

/// The name of an event, without the modifier that leaves out idle CPUs: all events of CPUs do.
fn shown_name(event: &str) -> String {
    let name = event.rsplit_once(':').and_then(|(base, modifiers)| {
        let (rest, last) = modifiers.split_at_checked(modifiers.len().checked_sub(1)?)?;
        (last == "I").then(|| match rest {
            "" => base.to_owned(),
            rest => format!("{base}:{rest}"),
        })
    });
    name.unwrap_or_else(|| event.to_owned())
}

impl Foot {
    /// How many stacks are whole, and why others are not: `97.5 % whole (most others: ...)`.
    pub(super) fn wholeness(&self) -> Option<String> {
        // Rounded down: 100 % only if all are whole.
        let whole = (self.whole? * 1000.0).floor() / 10.0;
        Some(match self.partial.filter(|_| whole < 99.0) {
            Some(why) => format!("{whole} % whole (most others: {why})"),
            None => format!("{whole} % whole"),
        })
    }

    fn of(quality: &Quality) -> Self {
        let stacks = quality.user_stacks();
        let losses = &quality.losses;
        Self {
            samples: quality.samples,
            whole: (stacks > 0).then(|| quality.whole_stacks() as f64 / stacks as f64),
            partial: quality
                .partial_stacks()
                .first()
                .map(|(end, _)| end.describe()),
            lost: losses.ring_full.saturating_add(losses.queue_full),
            throttled: losses.throttled,
            left_out: 0.0,
        }
    }
}

impl Default for Tree {
    fn default() -> Self {
        Self {
            nodes: vec![Node {
                id: 0,
                name: "all".into(),
                module: "".into(),
                kind: FunctionKind::State,
                own: 0,
                total: 0,
                parent: Self::ROOT,
                children: Vec::new(),
            }],
        }
    }
}

impl Tree {
    /// The root node.
    pub(super) const ROOT: usize = 0;

    fn of(calls: &CallTree<'_>) -> Self {
        let mut tree = Self::default();
        for (id, node) in calls.nodes() {
            let children = calls.children(id).iter().map(|id| id.index()).collect();
            if id == NodeId::ROOT {
                let root = &mut tree.nodes[Self::ROOT];
                (root.own, root.total) = (node.own.value, node.total.value);
                root.children = children;
                continue;
            }
            let Label::Function(function) = node.label else {
                continue;
            };
            let function = &calls.symbolized()[function];
            let parent = node.parent.index();
            let mut hasher = DefaultHasher::new();
            let caller = tree.nodes[parent].id;
            (caller, &function.name, &function.module).hash(&mut hasher);
            tree.nodes.push(Node {
                id: hasher.finish(),
                name: Arc::clone(&function.name),
                module: Arc::clone(&function.module),
                kind: function.kind,
                own: node.own.value,
                total: node.total.value,
                parent,
                children,
            });
        }
        tree
    }

    /// The node with this id; the root if there is none now.
    pub(super) fn find(&self, id: u64) -> usize {
        let found = self.nodes.iter().position(|node| node.id == id);
        found.unwrap_or(Self::ROOT)
    }
}

/// A share in percent.
pub(super) fn percent(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        whole => part as f64 * 100.0 / whole as f64,
    }
}

#[cfg(test)]
mod tests {
    use prof_model::StackEnd;

    use super::*;

    #[test]
    fn what_all_events_of_cpus_leave_out_is_not_in_their_names() {
        for (event, expected) in [
            ("cpu-clock:I", "cpu-clock"),
            ("cpu-clock:uI", "cpu-clock:u"),
            ("cycles:u", "cycles:u"),
            ("cpu-clock", "cpu-clock"),
            ("sched:sched_switch", "sched:sched_switch"),
        ] {
            assert_eq!(shown_name(event), expected);
        }
    }

    #[test]
    fn samples_of_the_kernel_alone_are_no_partial_stacks() {
        let mut quality = Quality::default();
        quality.stacks.insert(StackEnd::Root, 3);
        quality.stacks.insert(StackEnd::NoUserState, 5);
        assert_eq!(Foot::of(&quality).whole, Some(1.0));
        quality.stacks.insert(StackEnd::Stale, 1);
        assert_eq!(Foot::of(&quality).whole, Some(0.75));
        let why = Some("the outer part changed before it could be read");
        assert_eq!(Foot::of(&quality).partial, why);
    }
}
