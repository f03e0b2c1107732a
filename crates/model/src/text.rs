//! Text that others chose, and people get to see.

use std::borrow::Cow;

/// `text` with a space for each control character. Names of files, threads and functions are chosen
/// by the programs that are recorded: a line break in one would tear a table apart, an escape
/// sequence would speak to the terminal.
pub fn printable(text: &str) -> Cow<'_, str> {
    match text.contains(char::is_control) {
        true => Cow::Owned(text.replace(char::is_control, " ")),
        false => Cow::Borrowed(text),
    }
}

/// How many of something there are: `1 sample`, `2 samples`.
pub fn counted(count: u64, one: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        more => format!("{more} {one}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::{counted, printable};

    #[test]
    fn one_is_not_many() {
        let numbers = [0, 1, 2].map(|count| counted(count, "sample"));
        assert_eq!(numbers, ["0 samples", "1 sample", "2 samples"]);
    }

    #[test]
    fn control_characters_are_blanks() {
        let check = |text, expected: &str| assert_eq!(printable(text), expected);
        check("main", "main");
        check("größe<T>;x", "größe<T>;x");
        check("a\nb\tc\0", "a b c ");
        // ESC and its shorter form of the second Latin block.
        check("\u{1b}[2Jx\u{9b}", " [2Jx ");
    }
}
