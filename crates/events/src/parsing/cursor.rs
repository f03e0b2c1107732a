//! A place in the text that is being parsed.

use std::ops::Range;

use super::error::{ParseError, Problem};

/// A problem and the bytes that it is about.
pub(super) type Located = (Range<usize>, Problem);

/// The text and how far it has been read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Bytes read so far.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// The text that has not been read.
    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The text that was read since `start`.
    pub(super) fn since(&self, start: usize) -> &'a str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Reads `prefix` if it comes next.
    pub(super) fn eat(&mut self, prefix: &str) -> bool {
        let found = self.rest().starts_with(prefix);
        if found {
            self.at += prefix.len();
        }
        found
    }

    /// Reads as long as the letters are of a kind.
    pub(super) fn take_while(&mut self, accept: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|c| !accept(c)).unwrap_or(rest.len());
        self.skip(length)
    }

    /// Reads this many bytes, which must end between letters.
    pub(super) fn skip(&mut self, bytes: usize) -> &'a str {
        let start = self.at;
        self.at = (start + bytes).min(self.text.len());
        self.since(start)
    }

    /// Reads a text in quotes, if a quote comes next.
    pub(super) fn quoted(&mut self) -> Result<Option<&'a str>, Located> {
        let start = self.at;
        let Some(quote) = ["'", "\""].into_iter().find(|quote| self.eat(quote)) else {
            return Ok(None);
        };
        let text = self.take_while(|c| !quote.starts_with(c));
        match self.eat(quote) {
            true => Ok(Some(text)),
            false => {
                let expected = "a closing quote";
                Err(self.from(start, Problem::Expected { expected }))
            }
        }
    }

    pub(super) fn skip_spaces(&mut self) {
        self.take_while(char::is_whitespace);
    }

    /// The problem is at the next letter, or at the end.
    pub(super) fn here(&self, problem: Problem) -> Located {
        let end = self.at + self.peek().map_or(0, char::len_utf8);
        (self.at..end, problem)
    }

    /// The problem is in the text that was read since `start`.
    pub(super) fn from(&self, start: usize, problem: Problem) -> Located {
        (start..self.at, problem)
    }

    pub(super) fn error(&self, (place, problem): Located) -> ParseError {
        ParseError {
            text: self.text.to_owned(),
            place,
            problem: Box::new(problem),
        }
    }
}
