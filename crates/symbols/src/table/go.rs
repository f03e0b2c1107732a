//! Functions of stripped Go programs.

use crate::go::GoTable;
use crate::image::Image;
use crate::table::symbol::Symbol;

/// The functions of a Go program without a symbol table that hold one of the `addresses`, which are
/// in order.
pub(super) fn functions<'data>(image: &Image<'data>, addresses: &[u64]) -> Vec<Symbol<'data>> {
    let mut symbols: Vec<Symbol<'data>> = Vec::new();
    if image.has_symbol_table() {
        return symbols;
    }
    let Some(table) = GoTable::of(image) else {
        return symbols;
    };
    for &address in addresses {
        if symbols.last().is_some_and(|last| address < last.end) {
            continue;
        }
        if let Some((range, name)) = table.function(address) {
            symbols.push(Symbol {
                start: range.start,
                end: range.end,
                limit: range.end,
                rank: 0,
                name: name.into(),
            });
        }
    }
    symbols
}
