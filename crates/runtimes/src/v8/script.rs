//! Scripts: their names, and the lines of their sources.

use std::collections::HashMap;

use prof_model::{Account, Charge};

use super::layout::Layout;
use super::object::Object;
use super::text::{Characters, characters, text};
use crate::Memory;
use crate::bounded_map::entry;

/// The scripts of a process. When there is no room for another one, it starts over.
#[derive(Debug)]
pub(super) struct Scripts {
    /// By the object, and by its source: another script may get the same memory.
    known: HashMap<(Object, Object), Script>,
    charge: Charge,
    /// The characters of sources that were read.
    read: usize,
}

#[derive(Clone, Debug)]
struct Script {
    name: Option<String>,
    /// Where lines end, in characters; empty if the source is unknown.
    line_ends: Vec<u32>,
    length: u32,
}

impl Scripts {
    /// The longest name.
    const NAME: usize = 4096;
    /// The longest source, in characters, whose lines are counted, and all of them.
    const SOURCE: usize = 8 << 20;
    const SOURCES: usize = 256 << 20;

    pub(super) fn new(account: &Account) -> Self {
        Self {
            known: HashMap::new(),
            charge: account.for_cache(),
            read: 0,
        }
    }

    /// Where a position is: `FILE:LINE:COLUMN`, counted from 1, or only the file. `None` if the
    /// script has no name.
    pub(super) fn place(
        &mut self,
        layout: &Layout,
        memory: &mut impl Memory,
        script: Object,
        position: Option<u32>,
    ) -> Option<String> {
        let source = script.object(memory, layout.script.source)?;
        let key = (script, source);
        if let Some(known) = self.known.get(&key) {
            return known.place(position);
        }
        let characters = characters(layout, memory, source);
        let left = Self::SOURCE.min(Self::SOURCES - self.read);
        let characters = characters.filter(|it| it.length <= left);
        self.read += characters.map_or(0, |it| it.length);
        let read = Script::read(layout, memory, script, characters);
        // One without a name may be readable later.
        let place = read.place(position)?;
        match self.charge.add(read.footprint()) {
            true => _ = self.known.insert(key, read),
            false => {
                self.known = HashMap::new();
                self.charge.clear();
            }
        }
        Some(place)
    }
}

impl Script {
    fn read(
        layout: &Layout,
        memory: &mut impl Memory,
        script: Object,
        source: Option<Characters>,
    ) -> Self {
        let name = script.object(memory, layout.script.name);
        let name = name.and_then(|name| text(layout, memory, name, Scripts::NAME));
        let mut units = Vec::new();
        let is_read = source.and_then(|source| source.read(memory, Scripts::SOURCE, &mut units));
        Self {
            name: name.filter(|name| !name.is_empty()),
            line_ends: is_read.map(|()| line_ends(&units)).unwrap_or_default(),
            length: units.len() as u32,
        }
    }

    /// Where a position is; `None` if the script has no name.
    fn place(&self, position: Option<u32>) -> Option<String> {
        let name = self.name.as_ref()?;
        Some(match position.and_then(|position| self.line(position)) {
            Some((line, column)) => format!("{name}:{line}:{column}"),
            None => name.clone(),
        })
    }

    /// The line and the column of a position, counted from 1.
    fn line(&self, position: u32) -> Option<(usize, u32)> {
        (position < self.length).then_some(())?;
        let line = self.line_ends.partition_point(|&end| end < position);
        let start = line.checked_sub(1).and_then(|it| self.line_ends.get(it));
        let start = start.map_or(0, |end| end + 1);
        Some((line + 1, position - start + 1))
    }

    fn footprint(&self) -> usize {
        entry::<(Object, Object), Self>()
            + self.name.as_ref().map_or(0, String::len)
            + 4 * self.line_ends.len()
    }
}

/// The positions of the characters that end lines, as ECMAScript has them (11.3); a carriage return
/// before a line feed ends none.
fn line_ends(source: &[u16]) -> Vec<u32> {
    const LINE_FEED: u16 = 0xa;
    const CARRIAGE_RETURN: u16 = 0xd;
    const SEPARATORS: [u16; 2] = [0x2028, 0x2029];
    let ends = source.iter().enumerate().filter(|&(at, &unit)| match unit {
        CARRIAGE_RETURN => source.get(at + 1) != Some(&LINE_FEED),
        unit => unit == LINE_FEED || SEPARATORS.contains(&unit),
    });
    ends.map(|(at, _)| at as u32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_have_lines_and_columns() {
        let source: Vec<u16> = "a\nbc\r\n\r\u{2028}d".encode_utf16().collect();
        let script = Script {
            name: None,
            line_ends: line_ends(&source),
            length: source.len() as u32,
        };
        let lines = (0..10).map(|position| script.line(position));
        let expected = [
            Some((1, 1)),
            Some((1, 2)),
            Some((2, 1)),
            Some((2, 2)),
            Some((2, 3)),
            Some((2, 4)),
            Some((3, 1)),
            Some((4, 1)),
            Some((5, 1)),
            None,
        ];
        assert_eq!(lines.collect::<Vec<_>>(), expected);
    }
}
