//! Names in folded stacks, where some characters have a meaning.
//!
//! ```text
//!   root;caller;callee weight      ; ends a name, a number at the end is a weight,
//!   #comment                       a line that begins with # may be a comment,
//!   root;write_[k] weight          and some endings are marks
//! ```
//! Such a character becomes one that looks the same, so that other tools show the name as it is;
//! reading turns it back. What looks the same and is part of a name is written as an escape.

use std::borrow::Cow;

/// Looks like `;`: the Greek question mark.
const SEMICOLON: char = '\u{37e}';
/// Looks like a space: one that breaks no line.
const SPACE: char = '\u{a0}';
/// Looks like `#`: the fullwidth one.
const NUMBER_SIGN: char = '\u{ff03}';

/// Characters and their escapes, where these are needed.
const ESCAPES: [(char, &str); 6] = [
    ('\\', "\\u{5c}"),
    (SEMICOLON, "\\u{37e}"),
    (SPACE, "\\u{a0}"),
    (NUMBER_SIGN, "\\u{ff03}"),
    (' ', "\\u{20}"),
    ('[', "\\u{5b}"),
];

/// The endings of names that tell the kind of code: of the kernel, inlined, made at run time.
pub(crate) const MARKS: [&str; 3] = ["_[k]", "_[i]", "_[j]"];

/// A printable name as folded stacks have it; `may_be_last` says whether it can be the last one of
/// a stack, as a function can, everywhere in the same form.
pub(crate) fn encoded(name: &str, may_be_last: bool) -> Cow<'_, str> {
    let marked = MARKS.iter().any(|mark| name.ends_with(mark));
    let number = number_at_end(name).filter(|_| may_be_last);
    let is_special = |c| matches!(c, ';' | '\\' | '#' | SEMICOLON | SPACE | NUMBER_SIGN);
    let has_blank = name.starts_with(' ') || name.ends_with(' ');
    if !marked && !has_blank && number.is_none() && !name.contains(is_special) {
        return Cow::Borrowed(name);
    }
    let bracket = name.len() - "[k]".len().min(name.len());
    let mut text = String::with_capacity(name.len() + 8);
    for (at, character) in name.char_indices() {
        let is_last = at + character.len_utf8() == name.len();
        match character {
            ';' => text.push(SEMICOLON),
            '#' if at == 0 => text.push(NUMBER_SIGN),
            ' ' if number == Some(at) => text.push(SPACE),
            ' ' if at == 0 || is_last => text.push_str(escape(' ')),
            '[' if marked && at == bracket => text.push_str(escape('[')),
            '\\' if escaped(&name[at..]).is_some() => text.push_str(escape('\\')),
            SEMICOLON => text.push_str(escape(SEMICOLON)),
            SPACE if number_at_end(name) == Some(at) => text.push_str(escape(SPACE)),
            NUMBER_SIGN if at == 0 => text.push_str(escape(NUMBER_SIGN)),
            other => text.push(other),
        }
    }
    Cow::Owned(text)
}

/// The name that stands in folded stacks, without its mark.
pub(crate) fn decoded(text: &str) -> Cow<'_, str> {
    if text.is_ascii() && !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let number = number_at_end(text);
    let mut name = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let at = text.len() - rest.len();
        let (length, plain) = match character {
            SEMICOLON => (SEMICOLON.len_utf8(), ';'),
            SPACE if number == Some(at) => (SPACE.len_utf8(), ' '),
            NUMBER_SIGN if at == 0 => (NUMBER_SIGN.len_utf8(), '#'),
            other => match escaped(rest) {
                Some((plain, escape)) => (escape.len(), plain),
                None => (other.len_utf8(), other),
            },
        };
        name.push(plain);
        rest = &rest[length..];
    }
    Cow::Owned(name)
}

/// Where the space is before a number that ends the text.
fn number_at_end(text: &str) -> Option<usize> {
    let before = text.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let space = before
        .chars()
        .next_back()
        .filter(|c| matches!(*c, ' ' | SPACE))?;
    (before.len() < text.len()).then_some(before.len() - space.len_utf8())
}

/// The escape that a text begins with, and its character.
fn escaped(text: &str) -> Option<(char, &'static str)> {
    ESCAPES
        .into_iter()
        .find(|(_, escape)| text.starts_with(escape))
}

fn escape(character: char) -> &'static str {
    let known = ESCAPES.iter().find(|(plain, _)| *plain == character);
    known.map_or("", |(_, escape)| escape)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, expected: &str) {
        assert_eq!(encoded(name, true), expected, "{name:?}");
        assert_eq!(decoded(expected), name, "{expected:?}");
    }

    #[test]
    fn characters_with_a_meaning_are_replaced_by_their_likeness() {
        check("operator new(unsigned long)", "operator new(unsigned long)");
        check("[u8; 4]", "[u8\u{37e} 4]");
        check("worker 12", "worker\u{a0}12");
        check("worker 12 a", "worker 12 a");
        assert_eq!(encoded("thread 12", false), "thread 12");
        assert_eq!(decoded("thread 12"), "thread 12");
        check("#1 pool", "\u{ff03}1 pool");
        check("C#", "C#");
        check(" a ", "\\u{20}a\\u{20}");
        check("sys_[k]", "sys_\\u{5b}k]");
    }

    #[test]
    fn what_looks_the_same_is_escaped() {
        check("\u{37e}", "\\u{37e}");
        check("a\u{a0}7", "a\\u{a0}7");
        check("a\u{a0}b", "a\u{a0}b");
        check("\u{ff03}", "\\u{ff03}");
        check("\\u{37e}", "\\u{5c}u{37e}");
        check("\\u{202e}", "\\u{202e}");
        check("a\\nb", "a\\nb");
    }
}
