//! Probes on functions in files: `uprobe:FILE:FUNCTION[+OFFSET]`, `uretprobe:FILE:FUNCTION`.
//!
//! The function is looked up here, and the kernel gets the file and the offset in it: through the
//! PMU `uprobe` of sysfs, whose `config1` is a pointer to the path and whose `config2` is the
//! offset; or, if events are inherited, by a `Definition` in tracefs.

mod library;
mod symbol;
mod window;

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;

use super::catalog::Catalog;
use super::cursor::{Cursor, Located};
use super::error::Problem;
use super::meaning::Meaning;
use super::pmu;
use super::spec::{Encoding, Family};
use super::terms::parse_number;

/// Reads the part after `uprobe:` or `uretprobe:`.
pub(super) fn read(
    cursor: &mut Cursor<'_>,
    catalog: &Catalog,
    at_return: bool,
) -> Result<Meaning, Located> {
    let file_start = cursor.at();
    let file = match cursor.quoted()? {
        Some(file) => file,
        None => cursor.take_while(|c| !matches!(c, ':' | ',')),
    };
    if file.is_empty() {
        return Err(cursor.here(Problem::Expected {
            expected: "a file to probe",
        }));
    }
    let path = library::find(catalog, file).map_err(|problem| cursor.from(file_start, problem))?;
    if !cursor.eat(":") {
        let expected = "a colon and a function's name";
        return Err(cursor.here(Problem::Expected { expected }));
    }
    let start = cursor.at();
    let typed = match cursor.quoted()? {
        Some(symbol) => symbol,
        None => function(cursor),
    };
    if typed.is_empty() {
        return Err(cursor.here(Problem::Expected {
            expected: "a function's name, or an address as 0xADDRESS",
        }));
    }
    let (symbol, offset) = split_offset(typed);
    if at_return && offset.is_some() {
        let problem = Problem::Modifier("a return probe takes a function, not an offset in it");
        return Err(cursor.from(start, problem));
    }
    let located = symbol::file_offset(&path, symbol, offset.unwrap_or(0));
    let config2 = located.map_err(|problem| cursor.from(start, problem))?;
    let missing = || {
        let path = catalog.devices.join("uprobe").display().to_string();
        cursor.from(file_start, Problem::NoUprobes { path })
    };
    let pmu = pmu::kind_of(catalog, "uprobe").ok_or_else(missing)?;
    let bad_path = |_| {
        let path = path.display().to_string();
        cursor.from(
            file_start,
            Problem::BadFile {
                path,
                reason: "its name contains a NUL".into(),
            },
        )
    };
    let mut encoding = Encoding {
        kind: pmu.kind,
        config2,
        path: Some(CString::new(path.as_os_str().as_bytes()).map_err(bad_path)?),
        ..Encoding::default()
    };
    if at_return {
        pmu.set("retprobe", 1, &mut encoding).ok_or_else(missing)?;
    }
    let family = if at_return {
        Family::Uretprobe
    } else {
        Family::Uprobe
    };
    Ok(Meaning::new(family, encoding))
}

/// A function's name: it may hold `::` and anything in brackets, as in `<T as Trait>::f`,
/// `f(int, char)` and `f::{{closure}}`; a comma, a slash, a single colon or a closing brace outside
/// of brackets ends it.
fn function<'a>(cursor: &mut Cursor<'a>) -> &'a str {
    let text = cursor.rest();
    let bytes = text.as_bytes();
    let mut depth = 0_usize;
    let mut end = text.len();
    let mut colons = false;
    for (at, byte) in bytes.iter().enumerate() {
        let next = bytes.get(at + 1);
        match byte {
            // The end of an arrow, as in `fn() -> u8`, closes nothing.
            b'>' if at > 0 && bytes.get(at - 1) == Some(&b'-') => {}
            b'(' | b'<' | b'[' | b'{' => depth += 1,
            b')' | b'>' | b']' | b'}' if depth > 0 => depth -= 1,
            b':' if colons => colons = false,
            b':' if next == Some(&b':') => colons = true,
            b':' | b',' | b'/' | b'}' if depth == 0 => {
                end = at;
                break;
            }
            _ => {}
        }
    }
    cursor.skip(end)
}

/// `f+0x10` is an offset in `f`; `operator+` is not.
fn split_offset(typed: &str) -> (&str, Option<u64>) {
    let parts = typed.rsplit_once('+');
    let split = parts.and_then(|(symbol, offset)| {
        let offset = parse_number(offset.trim())?;
        (!symbol.is_empty()).then_some((symbol.trim_end(), Some(offset)))
    });
    split.unwrap_or((typed, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_end_where_they_should() {
        let check = |text: &str, expected: &str| {
            assert_eq!(function(&mut Cursor::new(text)), expected, "{text}");
        };
        check("malloc", "malloc");
        check("malloc,cycles", "malloc");
        check("malloc:u", "malloc");
        check("malloc/period=1/", "malloc");
        check("malloc}:S", "malloc");
        check("a::b:u", "a::b");
        check("a::b::<X as Y<u8, u16>>::c,d", "a::b::<X as Y<u8, u16>>::c");
        check("f(int, char),g", "f(int, char)");
        check("a::{{closure}}}", "a::{{closure}}");
        check("a::{closure#0}:k", "a::{closure#0}");
        check("f+0x10:u", "f+0x10");
        check("g<fn() -> u8>,h", "g<fn() -> u8>");
        check("", "");
    }

    #[test]
    fn offsets() {
        assert_eq!(split_offset("f+0x10"), ("f", Some(16)));
        assert_eq!(split_offset("f + 16"), ("f", Some(16)));
        assert_eq!(split_offset("operator+"), ("operator+", None));
        assert_eq!(split_offset("f+g"), ("f+g", None));
        assert_eq!(split_offset("+8"), ("+8", None));
    }
}
