//! The state of the display.

use std::collections::HashMap;

use prof_report::{Pattern, Span};

use super::filters::{Filters, PromptKind};
use super::picture::{Picture, Row, Tree};

/// The views, in the order of their tabs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum View {
    #[default]
    Functions,
    Tree,
    Flamegraph,
    Threads,
}

impl View {
    pub(super) const ALL: [Self; 4] =
        [Self::Functions, Self::Tree, Self::Flamegraph, Self::Threads];
}

/// The state of the display.
#[derive(Debug, Default)]
pub(super) struct App {
    pub view: View,
    pub span: Span,
    pub frozen: bool,
    pub by_total: bool,
    pub help: bool,
    pub filters: Filters,
    pub search: Option<Pattern>,
    /// The pattern that the user is typing.
    pub prompt: Option<(PromptKind, String)>,
    /// Shown until the next key.
    pub message: Option<String>,
    /// Why no more samples arrive.
    pub ended: Option<String>,
    /// The selected rows of functions and of threads.
    pub rows: [usize; 2],
    /// Calls that were opened (`true`) or closed in the tree, by their ids.
    pub opened: HashMap<u64, bool>,
    /// The ids of calls that were zoomed into, the outermost first.
    pub zoom: Vec<u64>,
    /// The id of the selected call, in tree and flamegraph.
    pub call: u64,
    /// Columns of the flamegraph, and rows of what scrolls, when it was last drawn.
    pub size: (u16, u16),
}

impl App {
    /// Whether the search matches this name.
    pub(super) fn is_found(&self, name: &str) -> bool {
        (self.search.as_ref()).is_some_and(|search| search.matches(name))
    }

    /// The zoomed call; the root if it is not in the picture now.
    pub(super) fn root(&self, calls: &Tree) -> usize {
        self.zoom.last().map_or(Tree::ROOT, |&id| calls.find(id))
    }

    /// Functions or threads, in the current order.
    pub(super) fn sorted<'p>(&self, picture: &'p Picture) -> Vec<&'p Row> {
        let rows = match self.view {
            View::Threads => &picture.threads,
            _ => &picture.functions,
        };
        let mut rows: Vec<&Row> = rows.iter().collect();
        if self.by_total {
            rows.sort_by_key(|row| std::cmp::Reverse(row.total));
        }
        rows
    }

    /// The selected row of functions or threads.
    pub(super) fn row(&self) -> usize {
        self.rows[usize::from(self.view == View::Threads)]
    }

    pub(super) fn row_mut(&mut self) -> &mut usize {
        &mut self.rows[usize::from(self.view == View::Threads)]
    }
}
