//! Line tables: from an instruction's offset in its code object to a line.

use super::layout::LineFormat;

/// The line of the instruction at `offset` bytes, in a table that begins at line `first`. `None` if
/// the instruction has none, or the table ends before it.
pub(super) fn line(format: LineFormat, table: &[u8], first: i32, offset: i64) -> Option<u32> {
    if offset < 0 {
        // The frame has not begun.
        return u32::try_from(first).ok();
    }
    let line = match format {
        LineFormat::Lnotab => lnotab(table, first, offset),
        LineFormat::Ranges => ranges(table, first, offset)?,
        LineFormat::Locations => locations(table, first, offset)?,
    };
    u32::try_from(line).ok()
}

/// Pairs of steps: bytes of code, unsigned, and lines, signed.
fn lnotab(table: &[u8], first: i32, offset: i64) -> i32 {
    let (mut line, mut start) = (first, 0_i64);
    for &[bytes, lines] in table.as_chunks::<2>().0 {
        start += i64::from(bytes);
        if start > offset {
            break;
        }
        line = line.saturating_add(i32::from(lines.cast_signed()));
    }
    line
}

/// Pairs of a range's length in bytes and the step of lines that leads to it; -128 says that the
/// range has no line.
fn ranges(table: &[u8], first: i32, offset: i64) -> Option<i32> {
    let (mut line, mut end) = (first, 0_i64);
    for &[bytes, lines] in table.as_chunks::<2>().0 {
        end += i64::from(bytes);
        let step = Some(lines.cast_signed()).filter(|&step| step != i8::MIN);
        line = line.saturating_add(i32::from(step.unwrap_or(0)));
        if offset < end {
            return step.map(|_| line);
        }
    }
    None
}

/// Entries of a first byte, which has the highest bit set, a kind and a length in units of two bytes,
/// and of more bytes by kind.
fn locations(table: &[u8], first: i32, offset: i64) -> Option<i32> {
    const LONG: u8 = 14;
    const NO_COLUMNS: u8 = 13;
    const NO_LOCATION: u8 = 15;
    let (mut line, mut end) = (first, 0_i64);
    let mut rest = table;
    while let Some((&head, after)) = rest.split_first() {
        let length = after.iter().take_while(|&&byte| byte & 0x80 == 0).count();
        let (more, next) = after.split_at(length);
        let kind = head >> 3 & 15;
        let step = match kind {
            LONG | NO_COLUMNS => signed_varint(more),
            10..=12 => i32::from(kind - 10),
            _ => 0,
        };
        line = line.saturating_add(step);
        end += i64::from(head & 7) * 2 + 2;
        if offset < end {
            return (kind != NO_LOCATION).then_some(line);
        }
        rest = next;
    }
    None
}

/// Six bits a byte, the lowest first; the seventh says that more follow. The lowest of all bits is the
/// sign.
fn signed_varint(bytes: &[u8]) -> i32 {
    let (mut value, mut shift) = (0_u32, 0);
    for &byte in bytes.iter().take(6) {
        value |= u32::from(byte & 0x3f).wrapping_shl(shift);
        shift += 6;
        if byte & 0x40 == 0 {
            break;
        }
    }
    let size = (value >> 1).cast_signed();
    if value & 1 == 0 { size } else { -size }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_tells_lines() {
        let check = |format, table: &[u8], offset, expected: Option<u32>| {
            assert_eq!(line(format, table, 10, offset), expected, "{offset}");
        };
        let back_two = 254;
        let lnotab = |offset, expected| {
            check(LineFormat::Lnotab, &[4, 1, 6, back_two], offset, expected);
        };
        lnotab(-1, Some(10));
        lnotab(3, Some(10));
        lnotab(4, Some(11));
        lnotab(9, Some(11));
        lnotab(10, Some(9));
        let none = 0x80;
        let ranges = |offset, expected| {
            check(LineFormat::Ranges, &[4, 0, 2, none, 4, 3], offset, expected);
        };
        ranges(0, Some(10));
        ranges(4, None);
        ranges(6, Some(13));
        ranges(10, None);
        // Two units one line on, one unit without a location, one of a varint of -3, one of 70.
        let table = [
            0x80 | 11 << 3 | 1,
            4,
            9,
            0x80 | 15 << 3,
            0x80 | 13 << 3,
            7,
            0x80 | 14 << 3,
            0x4c,
            2,
            0,
            0,
            0,
        ];
        let locations = |offset, expected| {
            check(LineFormat::Locations, &table, offset, expected);
        };
        locations(0, Some(11));
        locations(3, Some(11));
        locations(4, None);
        locations(6, Some(8));
        locations(8, Some(78));
        locations(10, None);
    }

    #[test]
    fn any_table_will_do() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..10_000 {
            let length = random.usize(..40);
            let table: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
            for format in [
                LineFormat::Lnotab,
                LineFormat::Ranges,
                LineFormat::Locations,
            ] {
                line(format, &table, random.i32(..), random.i64(..));
            }
        }
    }
}
