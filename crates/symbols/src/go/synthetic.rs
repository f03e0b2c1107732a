//! A small program with Go's tables, without section headers, and tests on it.

use super::header::Layout;
use super::{GoFrame, GoTable};
use crate::image::Image;

/// Where data and code are, in memory.
const DATA: u64 = 0x40_0000;
const TEXT: u64 = 0x50_0000;
/// Where they are in the file.
const TABLES: usize = 0x100;
const CODE: usize = 0x1000;
const LENGTH: u32 = 0x80;

/// Bytes that are put together.
#[derive(Default)]
struct Builder(Vec<u8>);

impl Builder {
    fn u32(&mut self, number: u32) {
        self.0.extend(number.to_le_bytes());
    }

    fn u64(&mut self, number: u64) {
        self.0.extend(number.to_le_bytes());
    }

    fn at(&mut self, place: usize, number: u64) {
        self.0[place..place + 8].copy_from_slice(&number.to_le_bytes());
    }

    /// Appends bytes; returns where they begin, from `start` on.
    fn add(&mut self, start: usize, bytes: &[u8]) -> u32 {
        let at = self.0.len() - start;
        self.0.extend(bytes);
        at as u32
    }

    fn align(&mut self, to: usize) {
        self.0.resize(self.0.len().next_multiple_of(to), 0);
    }
}

fn varint(bytes: &mut Vec<u8>, mut number: u32) {
    while number > 0x7f {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// A table of numbers, each with how many bytes of code it is for.
fn values(pairs: &[(i32, u32)]) -> Vec<u8> {
    let (mut bytes, mut before) = (Vec::new(), -1);
    for &(value, length) in pairs {
        let change = value - before;
        varint(&mut bytes, ((change << 1) ^ (change >> 31)).cast_unsigned());
        varint(&mut bytes, length);
        before = value;
    }
    bytes.push(0);
    bytes
}

/// `main.main` has `main.helper` inlined, and that `main.inner`; `main.leaf` follows.
///
/// ```text
///  0x00 ─ main.main ─ 0x10 ─ helper ─ 0x18 ─ inner ─ 0x20 ─ helper ─ 0x28 ─ main ─ 0x40
///  0x40 ─ main.leaf ─ 0x80
/// ```
pub(super) fn program(layout: Layout) -> Vec<u8> {
    let is_new = layout == Layout::Go120;
    let mut file = Builder::default();
    headers(&mut file);
    file.0.resize(TABLES, 0);
    // The header; its offsets follow.
    file.u32(if is_new { 0xffff_fff1 } else { 0xffff_fff0 });
    file.0.extend([0, 0, 1, 8]);
    for number in [2, 2, 0] {
        file.u64(number);
    }
    let offsets = file.0.len();
    file.0.resize(offsets + 5 * 8, 0);
    let part = |file: &mut Builder, index: usize| {
        file.align(4);
        let start = file.0.len();
        file.at(offsets + 8 * index, (start - TABLES) as u64);
        start
    };
    let names = part(&mut file, 0);
    file.0.push(0);
    let name = |file: &mut Builder, text: &str| file.add(names, format!("{text}\0").as_bytes());
    let [main, helper, inner, leaf] =
        ["main.main", "main.helper", "main.inner", "main.leaf"].map(|text| name(&mut file, text));
    part(&mut file, 1);
    for offset in [0, 8] {
        file.u32(offset);
    }
    let files = part(&mut file, 2);
    assert_eq!(file.add(files, b"main.go\0"), 0);
    assert_eq!(file.add(files, b"other.go\0"), 8);
    let numbers = part(&mut file, 3);
    file.0.push(0);
    let mut table = |pairs: &[(i32, u32)]| file.add(numbers, &values(pairs));
    let main_files = table(&[(0, 0x10), (1, 0x18), (0, 0x18)]);
    let main_lines = table(&[(10, 0x10), (30, 8), (50, 8), (31, 8), (12, 0x18)]);
    let main_calls = table(&[(-1, 0x10), (0, 8), (1, 8), (0, 8), (-1, 0x18)]);
    let leaf_files = table(&[(1, 0x40)]);
    let leaf_lines = table(&[(70, 0x40)]);
    let start = part(&mut file, 4);
    let functions = [
        (0, main, main_files, main_lines, Some(main_calls)),
        (0x40, leaf, leaf_files, leaf_lines, None),
    ];
    records(&mut file, start, functions, is_new);
    file.align(8);
    let trees = DATA + file.0.len() as u64;
    // The first call is in `main`, the second in the first.
    for (name, called_at) in [(helper, 0x08), (inner, 0x12)] {
        let call: &[u32] = match layout {
            Layout::Go118 => &[0, 0, 0, name, called_at],
            Layout::Go120 => &[0, name, called_at, 1],
        };
        call.iter().for_each(|&number| file.u32(number));
    }
    file.align(8);
    module_data(&mut file, offsets, trees, is_new);
    assert!(file.0.len() <= CODE);
    file.0.resize(CODE, 0);
    file.0.resize(CODE + LENGTH as usize, 0x90);
    file.0
}

/// Where a function begins, its name, and its tables of files, of lines and of inlined calls.
type Function = (u32, u32, u32, u32, Option<u32>);

/// The functions by address, and a record of each.
fn records(file: &mut Builder, start: usize, functions: [Function; 2], is_new: bool) {
    let entries = file.0.len();
    file.0.resize(entries + 2 * 8 + 4, 0);
    for (index, (entry, name, files, lines, calls)) in functions.into_iter().enumerate() {
        let record = (file.0.len() - start) as u64;
        file.at(entries + 8 * index, record << 32 | u64::from(entry));
        for number in [entry, name, 0, 0, 0, files, lines, 3, 0] {
            file.u32(number);
        }
        if is_new {
            file.u32(10);
        }
        // The function's kind and flags, and how many other data it has.
        file.0.extend([0, 0, 0, 4]);
        for number in [0, 0, calls.unwrap_or(0)] {
            file.u32(number);
        }
        let tree = calls.map_or(u32::MAX, |_| 0);
        for number in [u32::MAX, u32::MAX, u32::MAX, tree] {
            file.u32(number);
        }
    }
    file.0[entries + 16..entries + 20].copy_from_slice(&LENGTH.to_le_bytes());
}

/// What Go's runtime begins with.
fn module_data(file: &mut Builder, offsets: usize, trees: u64, is_new: bool) {
    let tables = DATA + TABLES as u64;
    let parts: Vec<u64> = (0..5)
        .map(|index| {
            let at = offsets + 8 * index;
            let offset = file.0[at..at + 8].try_into().map(u64::from_le_bytes);
            tables + offset.expect("eight bytes")
        })
        .collect();
    file.u64(tables);
    for start in parts.iter().chain(parts.last()) {
        for number in [*start, 1, 1] {
            file.u64(number);
        }
    }
    let end = TEXT + u64::from(LENGTH);
    let text = [0, TEXT, end, TEXT, end];
    // Other data up to the trees.
    let others = vec![DATA; if is_new { 18 } else { 16 }];
    for number in text.into_iter().chain(others).chain([trees]) {
        file.u64(number);
    }
}

/// An ELF header, and segments of data and code.
fn headers(file: &mut Builder) {
    file.0.extend(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    file.0.extend([2, 0, 62, 0, 1, 0, 0, 0]);
    for number in [TEXT, 64, 0] {
        file.u64(number);
    }
    file.0
        .extend([0, 0, 0, 0, 64, 0, 56, 0, 2, 0, 64, 0, 0, 0, 0, 0]);
    for (flags, offset, address, size) in [
        (4, 0, DATA, CODE as u64),
        (5, CODE as u64, TEXT, LENGTH.into()),
    ] {
        file.u32(1);
        file.u32(flags);
        for number in [offset, address, address, size, size, 0x1000] {
            file.u64(number);
        }
    }
}

/// A function of the synthetic program, its file, its line, and whether it is inlined.
type Expected = (&'static str, &'static str, u32, bool);

fn frame(&(function, file, line, inlined): &Expected) -> GoFrame<'static> {
    GoFrame {
        function: function.as_bytes(),
        file: Some(file.as_bytes()),
        line: Some(line),
        inlined,
    }
}

#[test]
fn functions_lines_and_inlined_calls_are_those_of_the_tables() {
    for layout in [Layout::Go118, Layout::Go120] {
        let bytes = program(layout);
        let image = Image::parse(&bytes).expect("an ELF file");
        let table = GoTable::of(&image).expect("tables");
        let check = |offset: u64, expected: &[Expected]| {
            let expected: Vec<_> = expected.iter().map(frame).collect();
            assert_eq!(
                table.frames(TEXT + offset),
                expected,
                "{layout:?} {offset:#x}"
            );
        };
        let main = ("main.main", "main.go", 10, false);
        let helper = |line| ("main.helper", "other.go", line, true);
        check(0, &[main]);
        check(0x10, &[helper(30), main]);
        check(
            0x1f,
            &[("main.inner", "other.go", 50, true), helper(30), main],
        );
        check(0x20, &[helper(31), main]);
        check(0x28, &[("main.main", "main.go", 12, false)]);
        check(0x7f, &[("main.leaf", "other.go", 70, false)]);
        check(0x80, &[]);
        assert!(table.frames(TEXT - 1).is_empty());
    }
}

#[test]
fn functions_have_bounds() {
    let bytes = program(Layout::Go120);
    let image = Image::parse(&bytes).expect("an ELF file");
    let table = GoTable::of(&image).expect("tables");
    let check = |offset: u64, expected: Option<(u64, u64, &[u8])>| {
        let found = table.function(TEXT + offset);
        let found = found.map(|(range, name)| (range.start - TEXT, range.end - TEXT, name));
        assert_eq!(found, expected);
    };
    check(2, Some((0, 0x40, b"main.main")));
    check(0x50, Some((0x40, 0x80, b"main.leaf")));
    check(0x90, None);
}

/// Without the record that says where they are, inlined functions are not known, and the lines at
/// their code are not those of the function around them.
#[test]
fn code_of_unknown_inlined_calls_has_no_line() {
    let mut bytes = program(Layout::Go120);
    let tables = (DATA + TABLES as u64).to_le_bytes();
    let record = bytes
        .windows(8)
        .position(|window| window == tables)
        .expect("the record");
    bytes[record] ^= 1;
    // The header of older versions says where the code begins.
    bytes[TABLES + 24..TABLES + 32].copy_from_slice(&TEXT.to_le_bytes());
    let image = Image::parse(&bytes).expect("an ELF file");
    let table = GoTable::of(&image).expect("tables");
    let expected = GoFrame {
        file: None,
        line: None,
        ..frame(&("main.main", "", 0, false))
    };
    assert_eq!(table.frames(TEXT + 0x18), [expected]);
    assert_eq!(
        table.frames(TEXT),
        [frame(&("main.main", "main.go", 10, false))]
    );
}

/// The seeds of the fuzz target are these programs.
#[test]
fn the_fuzz_target_has_these_programs_as_seeds() {
    for (name, layout) in [("go118", Layout::Go118), ("go120", Layout::Go120)] {
        let path = format!(
            "{}/../../fuzz/seeds/symbols_go/{name}",
            env!("CARGO_MANIFEST_DIR")
        );
        if std::env::var_os("PROF_BLESS").is_some() {
            std::fs::write(&path, program(layout)).expect("written");
        }
        assert_eq!(std::fs::read(path).expect("a seed"), program(layout));
    }
}
