//! Functions by absolute address, where a later one takes the place of earlier ones.

use std::collections::BTreeMap;
use std::ops;

use crate::code::Machine;

/// Code made by a run-time compiler.
#[derive(Debug, Default)]
pub(crate) struct JitCode {
    /// By start; without overlaps.
    ranges: BTreeMap<u64, Range>,
    functions: Vec<Function>,
    files: Vec<String>,
    /// Of functions, and bytes of names and lines.
    count: usize,
    size: usize,
    is_full: bool,
    /// The architecture of the code, as far as it is known.
    pub(crate) machine: Option<Machine>,
}

#[derive(Clone, Copy, Debug)]
struct Range {
    end: u64,
    /// Index of the function.
    function: usize,
    /// The function's start before it was moved and cut.
    origin: u64,
    /// What to add to an address to get to where the function was when its lines were written
    /// down: it may have been moved since.
    shift: u64,
}

/// A function when it was made.
#[derive(Debug, Default)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) lines: Vec<CodeLine>,
    /// The range of its machine code in the map or dump; the file may end before.
    pub(crate) bytes: Option<ops::Range<u64>>,
}

/// From `address` on, code of this line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CodeLine {
    pub(crate) address: u64,
    /// From [`JitCode::file`].
    pub(crate) file: usize,
    pub(crate) line: u32,
}

/// The part of a function that later functions do not cover.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// The range of its machine code in the map or dump.
    pub(crate) bytes: Option<ops::Range<u64>>,
}

/// The code at an address.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Found<'a> {
    pub(crate) name: &'a str,
    pub(crate) place: Option<(&'a str, u32)>,
}

impl JitCode {
    /// More functions are not kept: a large browser's or server's compiler makes some 100,000.
    const MOST_FUNCTIONS: usize = 2_000_000;
    /// Nor more bytes of names and lines.
    const MOST_BYTES: usize = 256 << 20;

    /// Whether it holds as much as it may. What comes later is left out.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }

    fn add_size(&mut self, bytes: usize) {
        self.size = self.size.saturating_add(bytes);
        self.is_full |= self.size > Self::MOST_BYTES;
    }

    /// Adds a function; whatever it overlaps is gone.
    pub(crate) fn insert(&mut self, start: u64, size: u64, mut function: Function) {
        self.count += 1;
        self.is_full |= self.count > Self::MOST_FUNCTIONS;
        self.add_size(function.name.len() + size_of_val(&function.lines[..]));
        if self.is_full {
            return;
        }
        function.lines.sort_by_key(|line| line.address);
        self.functions.push(function);
        let range = Range {
            end: start.saturating_add(size),
            function: self.functions.len() - 1,
            origin: start,
            shift: 0,
        };
        self.put(start, range);
    }

    /// Moves a function from `old` to `new`.
    pub(crate) fn relocate(&mut self, old: u64, new: u64, size: u64) {
        let Some(range) = self.ranges.get(&old).copied() else {
            return;
        };
        self.ranges.remove(&old);
        let moved = Range {
            end: new.saturating_add(size),
            shift: range.shift.wrapping_add(old.wrapping_sub(new)),
            ..range
        };
        self.put(new, moved);
    }

    /// The number of a file, for [`CodeLine::file`].
    pub(crate) fn file(&mut self, path: &str) -> usize {
        // Lines of one file come in long runs.
        if self.files.last().is_none_or(|last| last != path) {
            self.add_size(path.len() + size_of::<String>());
            self.files.push(path.to_owned());
        }
        self.files.len() - 1
    }

    fn put(&mut self, start: u64, range: Range) {
        if start < range.end {
            self.cut(start, range.end);
            self.ranges.insert(start, range);
        }
    }

    /// Makes room from `start` to `end`.
    fn cut(&mut self, start: u64, end: u64) {
        if let Some((_, before)) = self.ranges.range_mut(..start).next_back() {
            let old = *before;
            before.end = old.end.min(start);
            if old.end > end {
                self.ranges.insert(end, old);
            }
        }
        while let Some((&covered, &range)) = self.ranges.range(start..end).next() {
            self.ranges.remove(&covered);
            if range.end > end {
                self.ranges.insert(end, range);
            }
        }
    }

    /// The code that holds an address.
    pub(crate) fn extent(&self, address: u64) -> Option<Extent> {
        let (start, range) = self.range(address)?;
        let bytes = self.functions.get(range.function)?.bytes.as_ref();
        let before = start.wrapping_add(range.shift).wrapping_sub(range.origin);
        let of = |bytes: &ops::Range<u64>| {
            let from = bytes.start.checked_add(before)?;
            let to = from.saturating_add(range.end - start).min(bytes.end);
            (from < to).then_some(from..to)
        };
        Some(Extent {
            start,
            end: range.end,
            bytes: bytes.and_then(of),
        })
    }

    fn range(&self, address: u64) -> Option<(u64, Range)> {
        let (&start, &range) = self.ranges.range(..=address).next_back()?;
        (address < range.end).then_some((start, range))
    }

    /// The code at an address.
    pub(crate) fn find(&self, address: u64) -> Option<Found<'_>> {
        let (_, range) = self.range(address)?;
        let function = self.functions.get(range.function)?;
        let original = address.wrapping_add(range.shift);
        let after = function.lines.partition_point(|l| l.address <= original);
        let line = after
            .checked_sub(1)
            .and_then(|index| function.lines.get(index));
        let place = line.and_then(|line| Some((self.files.get(line.file)?.as_str(), line.line)));
        Some(Found {
            name: &function.name,
            place,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(name: &str, lines: Vec<CodeLine>) -> Function {
        Function {
            name: name.into(),
            lines,
            bytes: Some(1000..1010),
        }
    }

    #[test]
    fn what_is_kept_has_a_bound() {
        let check = |mut code: JitCode| {
            code.insert(0, 1, function("last", Vec::new()));
            assert!(!code.is_full());
            code.insert(0, 1, function("later", Vec::new()));
            assert!(code.is_full());
            assert_eq!(code.find(0).map(|found| found.name), Some("last"));
        };
        check(JitCode {
            count: JitCode::MOST_FUNCTIONS - 1,
            ..JitCode::default()
        });
        check(JitCode {
            size: JitCode::MOST_BYTES - "last".len(),
            ..JitCode::default()
        });
    }

    fn names(code: &JitCode, addresses: impl IntoIterator<Item = u64>) -> String {
        let name = |address| code.find(address).map_or("-", |found| found.name);
        addresses.into_iter().map(name).collect()
    }

    #[test]
    fn later_code_takes_the_place_of_earlier() {
        let mut code = JitCode::default();
        code.insert(2, 6, function("a", Vec::new()));
        assert_eq!(names(&code, 0..10), "--aaaaaa--");
        code.insert(4, 2, function("b", Vec::new()));
        assert_eq!(names(&code, 0..10), "--aabbaa--");
        code.insert(5, 4, function("c", Vec::new()));
        assert_eq!(names(&code, 0..10), "--aabcccc-");
        let extent = |start, end, bytes| Extent {
            start,
            end,
            bytes: Some(bytes),
        };
        assert_eq!(code.extent(3), Some(extent(2, 4, 1000..1002)));
        assert_eq!(code.extent(8), Some(extent(5, 9, 1000..1004)));
        code.insert(7, 1, function("d", Vec::new()));
        assert_eq!(code.extent(8), Some(extent(8, 9, 1003..1004)));
        code.insert(7, 1, function("c", Vec::new()));
        code.insert(9, 0, function("d", Vec::new()));
        assert_eq!(names(&code, 0..10), "--aabcccc-");
        code.insert(0, u64::MAX, function("e", Vec::new()));
        assert_eq!(names(&code, 0..10), "eeeeeeeeee");
    }

    #[test]
    fn lines_follow_a_function_that_moves() {
        let mut code = JitCode::default();
        let file = code.file("x.js");
        let line = |address, line| CodeLine {
            address,
            file,
            line,
        };
        code.insert(100, 20, function("f", vec![line(110, 2), line(100, 1)]));
        let place = |code: &JitCode, address| code.find(address).and_then(|f| f.place).map(|p| p.1);
        assert_eq!(place(&code, 109), Some(1));
        assert_eq!(place(&code, 110), Some(2));
        code.relocate(100, 50, 20);
        code.relocate(50, 500, 20);
        assert_eq!(place(&code, 509), Some(1));
        assert_eq!(place(&code, 510), Some(2));
        assert_eq!(code.find(105), None);
        assert_eq!(code.extent(510).and_then(|at| at.bytes), Some(1000..1010));
    }
}
