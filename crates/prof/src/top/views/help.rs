//! The help view: keys.

use ratatui::layout::Rect;
use ratatui::style::Style;

use super::Canvas;

/// The keys; the most important first, for short screens.
const KEYS: [(&str, &str); 17] = [
    ("1-4 Tab", "functions, tree, flamegraph, threads"),
    ("arrows", "move; in the tree: open and close"),
    ("Enter", "zoom in; a function or thread: only it"),
    ("Backspace", "zoom out"),
    ("/  n  N", "search (regular expression), next, previous"),
    ("f  t  m", "only a function, thread, module; empty: all"),
    ("Esc", "clear search, filters, zoom"),
    ("space", "freeze, resume"),
    ("d", "last seconds (weights decay), or since the start"),
    ("s", "sort by self or total"),
    ("K", "without kernel functions"),
    ("w", "write a recording"),
    ("q  Ctrl-C", "quit"),
    ("PgUp PgDn", "a page up, down"),
    ("Home End", "first, last"),
    ("j  k", "down, up"),
    ("?", "these keys; any key goes back"),
];

pub(super) fn draw(canvas: &mut Canvas<'_>, area: Rect) {
    for (y, (keys, what)) in (area.y..area.y + area.height).zip(KEYS) {
        let style = canvas.look.title();
        canvas.text(area, (area.x + 1, y), keys, style);
        canvas.text(area, (area.x + 12, y), what, Style::new());
    }
}
