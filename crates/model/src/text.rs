//! Text from recorded programs, made safe to show.

use std::borrow::Cow;
use std::fmt::Write;

use unicode_width::UnicodeWidthChar;

/// `text` with an escape (`
/// `, `\x1b`, `\u{202e}`) for each character that is not [printable](is_printable). Recorded
/// programs choose the names of files, threads, events and functions: a line break in one would
/// break a table, an escape sequence would control the terminal, an invisible character would make
/// two names look the same.
pub fn printable(text: &str) -> Cow<'_, str> {
    // Most names are ASCII, which takes no decoding.
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    if is_plain || text.chars().all(is_printable) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len());
    for character in text.chars() {
        // Writing to a `String` cannot fail.
        let _ = match character {
            c if is_printable(c) => clean.write_char(c),
            '\n' => clean.write_str("\\n"),
            '\r' => clean.write_str("\\r"),
            '\t' => clean.write_str("\\t"),
            c if c.is_ascii() => write!(clean, "\\x{:02x}", u32::from(c)),
            c => write!(clean, "\\u{{{:x}}}", u32::from(c)),
        };
    }
    Cow::Owned(clean)
}

/// Whether a character can be shown as it is, everywhere: it controls nothing, does not change the
/// direction of text, has a width, and is allowed in XML.
pub fn is_printable(character: char) -> bool {
    !character.is_control()
        // Marks are drawn over the character before, which may be any of ours.
        && character.width() != Some(0)
        && !matches!(
            character,
            // Soft hyphen, marks and embeddings of direction, joiners, separators of lines.
            '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
            // Annotations; what is no character.
            | '\u{fff9}'..='\u{fffb}' | '\u{fdd0}'..='\u{fdef}' | '\u{fffe}' | '\u{ffff}'
            // Tags.
            | '\u{e0000}'..='\u{e007f}'
        )
}

/// A count with its noun: `1 sample`, `2 samples`.
pub fn counted(count: u64, one: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        more if one.ends_with('s') => format!("{more} {one}es"),
        more => format!("{more} {one}s"),
    }
}

/// An amount of memory or disk space: `512 bytes`, `66 KiB`, `12 MiB`.
pub fn byte_size(bytes: u64) -> String {
    match bytes {
        few if few < 10 << 10 => format!("{few} bytes"),
        some if some < 10 << 20 => format!("{} KiB", some >> 10),
        many => format!("{} MiB", many >> 20),
    }
}

#[cfg(test)]
mod tests {
    use super::{byte_size, counted, printable};

    #[test]
    fn sizes_have_units() {
        let sizes = [512, 10 << 10, 12 << 20].map(byte_size);
        assert_eq!(sizes, ["512 bytes", "10 KiB", "12 MiB"]);
    }

    #[test]
    fn one_is_not_many() {
        let numbers = [0, 1, 2].map(|count| counted(count, "sample"));
        assert_eq!(numbers, ["0 samples", "1 sample", "2 samples"]);
        assert_eq!(counted(2, "process"), "2 processes");
    }

    #[test]
    fn invisible_characters_are_escaped() {
        let check = |text, expected: &str| assert_eq!(printable(text), expected);
        check("main", "main");
        check("größe<T>;x", "größe<T>;x");
        check("a\nb\tc\0", "a\\nb\\tc\\x00");
        // ESC and its shorter form of the second Latin block.
        check("\u{1b}[2Jx\u{9b}", "\\x1b[2Jx\\u{9b}");
        check(
            "a\u{202e}b\u{200b}c\u{ffff}",
            "a\\u{202e}b\\u{200b}c\\u{ffff}",
        );
        // Combining characters, a variation selector, and a letter that contains its mark.
        check("a\u{36f}\u{20dd}", "a\\u{36f}\\u{20dd}");
        check("a\u{fe0f}\u{e9}", "a\\u{fe0f}\u{e9}");
    }
}
