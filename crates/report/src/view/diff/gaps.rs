//! What stacks that are not whole hide, or show instead of something else: if only one recording
//! has such stacks, that is no change.

use super::Side;
use crate::calltree::{CallTree, Label};
use crate::profile::FunctionKind;
use crate::symbolize::FunctionId;
use crate::view::flat;

/// The part of a function's weight that is in stacks that are not whole; of a whole recording, all
/// that such stacks have.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Unsure {
    /// Of the self weight: where the function may have run for one that is missing.
    pub(super) own: f64,
    /// Of the total.
    pub(super) total: f64,
    /// Of the total, where the function may stand for others that are missing.
    pub(super) replacing: f64,
}

impl Unsure {
    pub(super) fn scaled(self, scale: f64) -> Self {
        Self {
            own: self.own * scale,
            total: self.total * scale,
            replacing: self.replacing * scale,
        }
    }
}

impl std::ops::AddAssign for Unsure {
    fn add_assign(&mut self, more: Self) {
        self.own += more.own;
        self.total += more.total;
        self.replacing += more.replacing;
    }
}

/// What a node has in stacks that are not whole.
#[derive(Clone, Copy, Default)]
struct Node {
    /// Something is missing outside of it or within.
    is_partial: bool,
    /// Functions of an interpreter are missing: those of the interpreter itself are shown.
    lacks_interpreted: bool,
    unsure: Unsure,
}

/// By function, and of everything.
pub(super) fn unsure(tree: &CallTree<'_>) -> (Vec<Unsure>, Unsure) {
    let symbolized = tree.symbolized();
    let is_mark = |function: FunctionId| symbolized[function].kind == FunctionKind::Missing;
    let mut nodes: Vec<Node> = Vec::new();
    for (id, node) in tree.nodes() {
        let mark = match node.label {
            Label::Function(function) if is_mark(function) => Some(function),
            _ => None,
        };
        let caller = nodes.get(node.parent.index()).copied().unwrap_or_default();
        // Only the marks of interpreters have a module.
        let of_interpreter = mark.is_some_and(|mark| !symbolized[mark].module.is_empty());
        let is_partial = caller.is_partial || mark.is_some();
        let lacks_interpreted = caller.lacks_interpreted || of_interpreter;
        let own = |counts: bool| if counts { node.own.value as f64 } else { 0.0 };
        debug_assert_eq!(nodes.len(), id.index());
        nodes.push(Node {
            is_partial,
            lacks_interpreted,
            unsure: Unsure {
                own: own(lacks_interpreted || mark.is_some()),
                total: own(is_partial),
                replacing: own(lacks_interpreted),
            },
        });
    }
    let own: Vec<f64> = nodes.iter().map(|node| node.unsure.own).collect();
    let all_own = own.iter().sum();
    let parents: Vec<_> = tree.nodes().map(|(_, node)| node.parent).collect();
    // Children come after their parents.
    for (index, parent) in parents.iter().enumerate().skip(1).rev() {
        let more = nodes[index].unsure;
        nodes[parent.index()].unsure += more;
    }
    let mut functions = vec![Unsure::default(); symbolized.functions().len()];
    flat::visit_functions(tree, |part, function, id| {
        let (of, node) = (&mut functions[function.index()], &nodes[id.index()].unsure);
        match part {
            flat::Part::Own => of.own += own[id.index()],
            flat::Part::Total => {
                of.total += node.total;
                of.replacing += match is_mark(function) {
                    true => node.total,
                    false => node.replacing,
                };
            }
        }
    });
    let mut all = nodes.first().map_or(Unsure::default(), |root| root.unsure);
    all.own = all_own;
    (functions, all)
}

/// A share before and after, as close to each other as what is missing in only one of the
/// recordings allows. `wholes` are those of everything.
pub(super) fn own_shares([before, after]: [Side; 2], wholes: [Side; 2]) -> [f64; 2] {
    let hidden = |side: Side, whole: Side| whole.unsure.own - side.unsure.own;
    closest(
        [before.own, after.own],
        [hidden(before, wholes[0]), hidden(after, wholes[1])],
        [before.unsure.own, after.unsure.own],
    )
}

/// The same for totals.
pub(super) fn total_shares([before, after]: [Side; 2], wholes: [Side; 2]) -> [f64; 2] {
    let hidden = |side: Side, whole: Side| whole.unsure.total - side.unsure.total;
    closest(
        [before.total, after.total],
        [hidden(before, wholes[0]), hidden(after, wholes[1])],
        [before.unsure.replacing, after.unsure.replacing],
    )
}

/// The smaller share may lack what is `hidden` only there, and the larger one has too much of what
/// is `doubtful` only there.
fn closest([before, after]: [f64; 2], hidden: [f64; 2], doubtful: [f64; 2]) -> [f64; 2] {
    if before > after {
        let swap = |[one, other]: [f64; 2]| [other, one];
        return swap(closest([after, before], swap(hidden), swap(doubtful)));
    }
    let lacking = (hidden[0] - hidden[1]).max(0.0);
    let extra = (doubtful[1] - doubtful[0]).max(0.0);
    let before = after.min(before + lacking);
    [before, before.max(after - extra)]
}

#[cfg(test)]
mod tests {
    use crate::calltree::{CallTree, Split};
    use crate::testing::{TestProfile, everything};
    use crate::view::diff::{Basis, Certainty, Diff};

    /// Expects these certainties of a function's own and total change, in both directions.
    fn check(
        before: &[(usize, &str)],
        after: &[(usize, &str)],
        name: &str,
        expected: [Certainty; 2],
    ) {
        let profile = |counts: &[(usize, &str)]| {
            let lines = counts.iter().map(|&(count, line)| vec![line; count]);
            TestProfile::of(&lines.collect::<Vec<_>>().concat())
        };
        for (before, after) in [(before, after), (after, before)] {
            let (first, second) = (profile(before), profile(after));
            let tree = |profile| CallTree::new(profile, &everything(), Split::Nothing).unwrap();
            for basis in [Basis::Weight, Basis::Run] {
                let diff = Diff::new(&tree(&first), &tree(&second), basis).unwrap();
                let row = diff.rows.iter().find(|row| &*row.function == name).unwrap();
                let found = [row.certainty(), row.total_certainty()];
                assert_eq!(found, expected, "{name}: {diff:?}");
            }
        }
    }

    const NOISE: [Certainty; 2] = [Certainty::Noise; 2];

    #[test]
    fn functions_that_only_one_recording_lacks_have_not_changed() {
        let whole = [(500, "t main;outer;work 1"), (500, "t main;other 1")];
        let cut = [
            (400, "t main;outer;work 1"),
            (100, "t cut;work 1"),
            (500, "t main;other 1"),
        ];
        for name in [
            "main",
            "outer",
            "[truncated: the code has no unwind information]",
        ] {
            check(&whole, &cut, name, NOISE);
        }
        // The innermost function is known.
        let more = [
            (400, "t main;outer;work 1"),
            (200, "t cut;work 1"),
            (400, "t main;other 1"),
        ];
        check(&whole, &more, "work", [Certainty::Clear, Certainty::Clear]);
        let far_less = [
            (200, "t main;outer;work 1"),
            (100, "t cut;work 1"),
            (700, "t main;other 1"),
        ];
        check(
            &whole,
            &far_less,
            "outer",
            [Certainty::Noise, Certainty::Clear],
        );
    }

    #[test]
    fn functions_of_interpreters_are_no_change_where_others_are_missing() {
        let whole = [(900, "t main;in_python 1"), (100, "t main;memcpy 1")];
        let missing = [
            (800, "t main;in_python 1"),
            (100, "t main;no:Python;eval 1"),
            (100, "t main;memcpy 1"),
        ];
        for name in ["in_python", "eval", "[no Python frames: not read]"] {
            check(&whole, &missing, name, NOISE);
        }
    }

    #[test]
    fn what_both_lack_changes_nothing() {
        let before = [(300, "t main;a 1"), (600, "t main;b 1"), (100, "t cut;c 1")];
        let after = [(600, "t main;a 1"), (300, "t main;b 1"), (100, "t cut;c 1")];
        check(&before, &after, "a", [Certainty::Clear; 2]);
    }
}
