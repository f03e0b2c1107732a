//! The tables that map instructions to lines.

/// The encoding of such a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineTable {
    /// Pairs of bytes: the distance to the first instruction of the next line, and to that line
    /// (Objects/lnotab_notes.txt of 3.8).
    ByteDeltas,
    /// Pairs of bytes: the length of the instructions, and the distance to their line (the same
    /// file of 3.10).
    Ranges,
    /// Entries with columns (Objects/locations.md of 3.11).
    Locations,
}

/// Instructions of one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CodeLine {
    /// The end of the instructions, in code units of two bytes.
    pub(super) end: u64,
    pub(super) line: Option<u32>,
}

impl LineTable {
    /// The lines of a function that begins on the line `first` and has this many code units.
    pub(super) fn lines(self, table: &[u8], first: u32, units: u64) -> Vec<CodeLine> {
        match self {
            Self::ByteDeltas => byte_deltas(table, first, units),
            Self::Ranges => ranges(table, first),
            Self::Locations => locations(table, first),
        }
    }
}

fn byte_deltas(table: &[u8], first: u32, units: u64) -> Vec<CodeLine> {
    let (mut lines, mut bytes, mut line) = (Vec::new(), 0, i64::from(first));
    for pair in table.chunks_exact(2) {
        let &[more, delta] = pair else { continue };
        if more > 0 {
            bytes += u64::from(more);
            lines.push(at(bytes, Some(line)));
        }
        line = line.saturating_add(i64::from(delta as i8));
    }
    lines.push(at(units.saturating_mul(2), Some(line)));
    lines
}

fn ranges(table: &[u8], first: u32) -> Vec<CodeLine> {
    /// In place of a distance: these instructions have no line.
    const NO_LINE: i8 = -128;
    let (mut lines, mut bytes, mut line) = (Vec::new(), 0, i64::from(first));
    for pair in table.chunks_exact(2) {
        let &[more, delta] = pair else { continue };
        let delta = delta as i8;
        if delta != NO_LINE {
            line = line.saturating_add(i64::from(delta));
        }
        bytes += u64::from(more);
        lines.push(at(bytes, (delta != NO_LINE).then_some(line)));
    }
    lines
}

fn at(bytes: u64, line: Option<i64>) -> CodeLine {
    CodeLine {
        end: bytes / 2,
        line: line.and_then(|line| u32::try_from(line).ok()),
    }
}

/// For each entry its code units, and the distance of its line from the previous one.
fn locations(table: &[u8], first: u32) -> Vec<CodeLine> {
    let (mut lines, mut end, mut line) = (Vec::new(), 0, i64::from(first));
    let mut bytes = table.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        let kind = byte >> 3 & 15;
        let mut number = || {
            let (mut value, mut shift) = (0_u64, 0);
            for byte in bytes.by_ref() {
                value |= u64::from(byte & 63).checked_shl(shift).unwrap_or(0);
                shift += 6;
                if byte & 64 == 0 {
                    break;
                }
            }
            value as i64
        };
        let delta = match kind {
            13 | 14 => match number() {
                odd if odd & 1 == 1 => -(odd >> 1),
                even => even >> 1,
            },
            10..=12 => i64::from(kind) - 10,
            _ => 0,
        };
        line = line.saturating_add(delta);
        end += u64::from(byte & 7) + 1;
        // The columns are skipped.
        while bytes.next_if(|&byte| byte & 128 == 0).is_some() {}
        lines.push(CodeLine {
            end,
            line: (kind != 15).then(|| u32::try_from(line).ok()).flatten(),
        });
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(table: LineTable, bytes: &[u8], expected: &[(u64, Option<u32>)]) {
        let lines = table.lines(bytes, 10, 9);
        let lines: Vec<_> = lines.iter().map(|it| (it.end, it.line)).collect();
        assert_eq!(lines, expected, "{table:?}");
    }

    #[test]
    fn lines_of_each_table() {
        // Two instructions of the first line, one of the line before, the rest 130 further on.
        let deltas = [4, 0xff, 2, 127, 0, 3];
        let expected = [(2, Some(10)), (3, Some(9)), (9, Some(139))];
        check(LineTable::ByteDeltas, &deltas, &expected);
        // One of the first line, one without a line, two of the line after.
        let ranges = [2, 0, 2, 0x80, 4, 1];
        let expected = [(1, Some(10)), (2, None), (4, Some(11))];
        check(LineTable::Ranges, &ranges, &expected);
        // One of the line after, with columns; two without a line.
        let locations = [0x80 | 11 << 3, 0, 0, 0x80 | 15 << 3 | 1];
        let expected = [(1, Some(11)), (3, None)];
        check(LineTable::Locations, &locations, &expected);
    }

    #[test]
    fn numbers_stay_in_bounds() {
        check(
            LineTable::Ranges,
            &[2, 0x81, 2, 0x81],
            &[(1, None), (2, None)],
        );
        check(LineTable::Ranges, &[7], &[]);
        check(LineTable::ByteDeltas, &[], &[(9, Some(10))]);
    }
}
