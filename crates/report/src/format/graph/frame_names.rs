//! The names by which inferno knows frames: it colours them by these.

use std::borrow::Cow;

use inferno::flamegraph::color::Color;
use prof_symbols::shorten;
use rustc_hash::FxHashMap;

use crate::calltree::{CallTree, Label, NodeId};
use crate::format::tools::folded;
use crate::symbolize::{FunctionKind, Language, Languages};

/// Names of nodes. Those of different colours differ.
pub(super) struct FrameNames<'t, 'p> {
    tree: &'t CallTree<'p>,
    languages: Languages,
    /// By node: which of the colours of its name it has.
    numbers: Vec<u16>,
}

/// Characters without a meaning, for all but the first colour of a name; pictures do not show them.
const FIRST: u32 = 0xe000;
const LAST: u32 = 0xf8ff;

impl<'t, 'p> FrameNames<'t, 'p> {
    pub(super) fn new(tree: &'t CallTree<'p>, color: impl Fn(NodeId) -> Color) -> Self {
        let mut names = Self {
            tree,
            languages: Languages::of(tree.symbolized()),
            numbers: Vec::new(),
        };
        let mut colors: FxHashMap<String, Vec<Color>> = FxHashMap::default();
        for (id, _) in tree.nodes() {
            let (of_name, color) = (colors.entry(names.of(id)).or_default(), color(id));
            let number = of_name.iter().position(|&known| known == color);
            let number = number.unwrap_or_else(|| {
                of_name.push(color);
                of_name.len() - 1
            });
            names
                .numbers
                .push(number.min((LAST - FIRST) as usize) as u16);
        }
        names
    }

    /// The name of a node.
    pub(super) fn of(&self, id: NodeId) -> String {
        self.in_line(id, false)
    }

    /// The same in a line of folded stacks, where the last one must not end in a number.
    pub(super) fn in_line(&self, id: NodeId, last: bool) -> String {
        let name = self.short(id);
        let mut name = folded::plain(&name, last).into_owned();
        let number = self.numbers.get(id.index()).copied().filter(|&it| it > 0);
        name.extend(number.and_then(|number| char::from_u32(FIRST + u32::from(number))));
        name.push_str(self.kind(id));
        name
    }

    /// Java's names begin with what the method returns, and little more fits into a frame.
    fn short(&self, id: NodeId) -> Cow<'t, str> {
        let name = self.tree.name(id);
        match self.tree[id].label {
            Label::Function(it) if self.languages.get(it) == Some(Language::Java) => shorten(name),
            _ => Cow::Borrowed(name),
        }
    }

    /// The suffix that distinguishes functions of one name but different kinds; inferno hides it,
    /// and knows only these.
    fn kind(&self, id: NodeId) -> &'static str {
        let node = &self.tree[id];
        let Label::Function(function) = node.label else {
            return "";
        };
        match self.tree.symbolized()[function].kind {
            FunctionKind::Kernel => "_[k]",
            _ if node.is_remote_read() && !node.inlined => "_[w]",
            FunctionKind::Jit => "_[j]",
            _ if node.inlined => "_[i]",
            _ => "",
        }
    }

    /// A picture without the characters that are for inferno only.
    pub(super) fn shown(&self, svg: Vec<u8>) -> Vec<u8> {
        if self.numbers.iter().all(|&number| number == 0) {
            return svg;
        }
        let is_for_inferno = |it: &char| (FIRST..=LAST).contains(&u32::from(*it));
        let svg = String::from_utf8_lossy(&svg);
        let shown: String = svg.chars().filter(|it| !is_for_inferno(it)).collect();
        shown.into_bytes()
    }
}
