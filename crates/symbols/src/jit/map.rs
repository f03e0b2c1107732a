//! Perf maps: `/tmp/perf-PID.map`, one function a line, `START SIZE name` in hex.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

use super::code::{Function, JitCode};

/// More of a map is not read, in bytes.
const LONGEST: u64 = 1 << 30;
/// Nor of a line.
const LONGEST_LINE: u64 = 64 << 10;

/// Reads a perf map. Lines that are not of its form are left out; of several functions at one
/// address the one that was written last counts.
pub(super) fn read(file: &File) -> JitCode {
    let mut code = JitCode::default();
    let input = BufReader::with_capacity(1 << 16, file);
    add(&mut code, input.take(LONGEST));
    code
}

/// Adds the functions of a perf map.
pub(super) fn add(code: &mut JitCode, mut input: impl BufRead) {
    let mut line = Vec::new();
    while !code.is_full() && matches!(read_line(&mut input, &mut line), Ok(read) if read > 0) {
        if let Some((start, size, name)) = parse_line(&String::from_utf8_lossy(&line)) {
            let function = Function {
                name: name.to_owned(),
                ..Function::default()
            };
            code.insert(start, size, function);
        }
        line.clear();
    }
}

/// Reads a line; what is too long for one is passed over.
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<usize> {
    let read = input.by_ref().take(LONGEST_LINE).read_until(b'\n', line)?;
    if read as u64 == LONGEST_LINE && line.last() != Some(&b'\n') {
        input.skip_until(b'\n')?;
    }
    Ok(read)
}

fn parse_line(line: &str) -> Option<(u64, u64, &str)> {
    // perf takes any character for a separator; some runtimes write tabs.
    let mut fields = line.trim_end().splitn(3, [' ', '\t']);
    let start = parse_hex(fields.next()?)?;
    let size = parse_hex(fields.next()?)?;
    let name = fields.next()?;
    (!name.is_empty()).then_some((start, size, name))
}

fn parse_hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(input: &[u8]) -> JitCode {
        let mut code = JitCode::default();
        add(&mut code, input);
        code
    }

    #[test]
    fn names_may_have_spaces_and_bad_lines_are_left_out() {
        let code = parse(
            &b"7f00 10 LazyCompile:*work /srv/app.js:3:5\n0x7f10 0x8 short\nbad\n7f20 zz x\n\
               7f30 10 \n7f40 10 last\n7f50\t10\tby tabs"[..],
        );
        let check = |address, expected| {
            assert_eq!(code.find(address).map(|found| found.name), expected);
        };
        check(0x7eff, None);
        check(0x7f0f, Some("LazyCompile:*work /srv/app.js:3:5"));
        check(0x7f17, Some("short"));
        check(0x7f18, None);
        check(0x7f30, None);
        check(0x7f40, Some("last"));
        check(0x7f50, Some("by tabs"));
    }

    #[test]
    fn of_a_long_line_the_start_counts() {
        let long = "x".repeat(1 << 20);
        let code = parse(format!("7f00 10 {long}\n7f10 10 next\n").as_bytes());
        let length = code.find(0x7f00).map(|found| found.name.len());
        assert_eq!(length, Some(LONGEST_LINE as usize - "7f00 10 ".len()));
        assert_eq!(code.find(0x7f10).map(|found| found.name), Some("next"));
    }
}
