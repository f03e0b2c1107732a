//! Which units of a file are parsed: those that contain requested addresses.
//!
//! `addr2line` reads the abbreviations and the root of every unit before it answers the first
//! question, which takes longer than all answers. It leaves units out whose root it can't read:
//!
//! ```text
//!   .debug_aranges ─▶ [unit 1: holds one] [unit 2: holds none] [unit 3: not listed]
//!                            │                   │                    │
//!   abbreviations:        parsed          none, so left out         parsed
//! ```

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use gimli::{Abbreviations, DebugInfoOffset};

use super::Reader;

/// Parses the abbreviations of all units that may hold one of these addresses, which are sorted.
/// Returns whether any were left out: what refers to one of these can't be resolved then.
///
/// # Errors
/// When the units' headers or the list of their addresses can't be read.
pub(super) fn select(
    dwarf: &mut gimli::Dwarf<Reader<'_>>,
    addresses: &[u64],
) -> Result<bool, gimli::Error> {
    let hits = hits(dwarf, addresses)?;
    let (mut wanted, mut unwanted) = (BTreeSet::new(), BTreeSet::new());
    let mut units = dwarf.units();
    while let Some(unit) = units.next()? {
        let offset = unit.debug_info_offset();
        let is_hit = offset.and_then(|DebugInfoOffset(offset)| hits.get(&offset));
        match is_hit {
            Some(false) => unwanted.insert(unit.debug_abbrev_offset().0),
            _ => wanted.insert(unit.debug_abbrev_offset().0),
        };
    }
    let mut cache = gimli::AbbreviationsCache::new();
    for &offset in &wanted {
        let offset = gimli::DebugAbbrevOffset(offset);
        if let Ok(abbreviations) = dwarf.debug_abbrev.abbreviations(offset) {
            cache.set::<Reader<'_>>(offset, Arc::new(abbreviations));
        }
    }
    let none = Arc::new(Abbreviations::default());
    let mut left_out = false;
    for &offset in unwanted.difference(&wanted) {
        cache.set::<Reader<'_>>(gimli::DebugAbbrevOffset(offset), Arc::clone(&none));
        left_out = true;
    }
    dwarf.abbreviations_cache = cache;
    Ok(left_out)
}

/// By a unit's offset: whether it holds any of the addresses. Of units that are not listed, nobody
/// knows but their roots.
fn hits(
    dwarf: &gimli::Dwarf<Reader<'_>>,
    addresses: &[u64],
) -> Result<HashMap<usize, bool>, gimli::Error> {
    let mut hits = HashMap::new();
    let mut units = dwarf.debug_aranges.headers();
    while let Some(unit) = units.next()? {
        let mut ranges = unit.entries();
        // What can't be read may be anywhere, such as a range that goes on beyond all addresses.
        while let Some(range) = ranges.next().transpose() {
            let hit = match range.map(|range| (range.length(), range.range())) {
                Ok((0, _)) => continue,
                Ok((_, range)) => {
                    let first = addresses.partition_point(|&address| address < range.begin);
                    addresses.get(first).is_some_and(|&first| first < range.end)
                }
                Err(_) => true,
            };
            *hits.entry(unit.debug_info_offset().0).or_default() |= hit;
        }
    }
    Ok(hits)
}
