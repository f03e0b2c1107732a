//! Functions that an interpreter runs, in recordings, and how many stacks contain them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::text::printable;

/// A language whose functions are read from the memory of its interpreter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum InterpretedLanguage {
    /// Python, as CPython runs it.
    Python,
    /// PHP.
    Php,
    /// Ruby, as its virtual machine (YARV) runs it.
    Ruby,
}

impl InterpretedLanguage {
    const ALL: [Self; 3] = [Self::Python, Self::Php, Self::Ruby];

    /// As people write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Python => "Python",
            Self::Php => "PHP",
            Self::Ruby => "Ruby",
        }
    }

    /// How paths of its functions begin, without the space after it.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Python => "[python]",
            Self::Php => "[php]",
            Self::Ruby => "[ruby]",
        }
    }
}

/// An interpreted function as recordings store it: a mapping far above all addresses of programs.
/// Its path names the function, and each address in it is a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterpretedFunction {
    /// The language of its interpreter.
    pub language: InterpretedLanguage,
    /// The name, qualified if the interpreter has it so.
    pub name: String,
    /// The file of its source, as the interpreter knows it.
    pub file: String,
    /// The line where it begins.
    pub first_line: u32,
}

impl InterpretedFunction {
    /// The length of each mapping: the number of lines that it can represent.
    pub const LINES: u64 = 1 << 20;
    /// The address of the first mapping: no processor has programs there.
    const START: u64 = 1 << 56;
    /// The end of the last mapping.
    const END: u64 = 1 << 57;
    /// Replaces spaces of names in paths: one that does not end the name.
    const SPACE: &str = "\u{a0}";
    /// The name that replaces unknown functions.
    const MISSING: &str = "?";

    /// A placeholder for functions whose names are left out, because their process has too many.
    pub fn left_out(language: InterpretedLanguage) -> Self {
        Self {
            language,
            name: Self::MISSING.into(),
            file: "the process has too many names".into(),
            first_line: 0,
        }
    }

    /// A placeholder for frames that are unknown for this reason.
    pub fn missing(language: InterpretedLanguage, reason: MissingFrames) -> Self {
        Self {
            language,
            name: Self::MISSING.into(),
            file: reason.describe(language).into(),
            first_line: 0,
        }
    }

    /// Whether it is a placeholder for unknown frames; its file is then the reason.
    pub fn is_missing(&self) -> bool {
        self.name == Self::MISSING
    }

    /// The start of the mapping of the function with this index.
    pub fn start(number: u64) -> u64 {
        (Self::START + number % (Self::START / Self::LINES) * Self::LINES).min(Self::END)
    }

    /// The address that represents a line of the function whose mapping contains `address`.
    pub fn address(address: u64, line: Option<u32>) -> u64 {
        let line = line.map_or(0, u64::from);
        let known = if line < Self::LINES { line } else { 0 };
        (address & !(Self::LINES - 1)) | known
    }

    /// Whether an address is that of an interpreted function.
    pub fn holds(address: u64) -> bool {
        (Self::START..Self::END).contains(&address)
    }

    /// The path of its mapping.
    pub fn path(&self) -> String {
        let name = printable(&self.name).replace(' ', Self::SPACE);
        let file = printable(&self.file);
        let prefix = self.language.prefix();
        format!("{prefix} {name} ({file}:{})", self.first_line)
    }

    /// The function whose mapping has this path.
    pub fn of_path(path: &str) -> Option<Self> {
        let (prefix, function) = path.split_once(' ')?;
        let mut languages = InterpretedLanguage::ALL.into_iter();
        let language = languages.find(|language| language.prefix() == prefix)?;
        let (name, place) = function.split_once(" (")?;
        let (file, line) = place.strip_suffix(')')?.rsplit_once(':')?;
        Some(Self {
            language,
            name: name.replace(Self::SPACE, " "),
            file: file.to_owned(),
            first_line: line.parse().ok()?,
        })
    }
}

/// Why a stack with an interpreter's evaluation loop on it has no interpreted frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MissingFrames {
    /// They were not read right after the sample: the process was not known to run an interpreter
    /// yet, or too many samples waited.
    NotRead,
    /// The frames that were read do not match the stack of the sample.
    Changed,
    /// The frames may be those of a later moment: the thread has run, or not.
    Uncertain,
    /// The evaluation loop's own frame is beyond the part of the stack that was copied.
    BeyondCopy,
    /// The interpreter has more or fewer activations of its loop than the stack of the sample.
    Mismatch,
    /// The interpreter knows of no such thread.
    NoThread,
    /// The interpreter's memory does not hold a valid stack.
    Inconsistent,
    /// More frames than a sample can hold.
    TooDeep,
    /// More functions that were not seen before than are read for one sample.
    TooManyNew,
    /// The memory layout of this version of the interpreter is unknown.
    UnknownVersion,
}

impl MissingFrames {
    /// The reason in words, after a count: "12 stacks without Python frames: ...".
    pub(crate) fn describe(self, language: InterpretedLanguage) -> &'static str {
        match self {
            Self::NotRead => "they were not read right after the sample",
            Self::Changed => "the program ran on before they could be read",
            Self::Uncertain => "the program may have run on before they were read",
            Self::BeyondCopy => {
                "the copy of the stack ends before the interpreter's frame: \
                 --call-graph dwarf,65528 copies more"
            }
            Self::Mismatch => "the interpreter's calls are not those on the stack",
            Self::NoThread => "the interpreter does not know the thread",
            Self::Inconsistent => "the interpreter's memory was inconsistent",
            Self::TooDeep => "more frames than a sample can hold",
            Self::TooManyNew => "more new functions than prof reads for one sample",
            Self::UnknownVersion => match language {
                InterpretedLanguage::Python => "prof reads CPython 3.8 to 3.14 only",
                InterpretedLanguage::Php => {
                    "prof reads PHP 8.2 and 8.4 only, without thread safety (NTS)"
                }
                InterpretedLanguage::Ruby => "prof reads Ruby 3.1, and 3.3 if it is not stripped",
            },
        }
    }
}

/// Stacks with an interpreter's evaluation loop on them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InterpretedStacks {
    /// Stacks with interpreted frames.
    pub known: u64,
    /// Stacks without interpreted frames, by reason.
    pub unknown: BTreeMap<MissingFrames, u64>,
}

impl InterpretedStacks {
    /// Whether there are none.
    pub fn are_none(&self) -> bool {
        *self == Self::default()
    }

    /// Counts one more stack.
    pub fn count(&mut self, result: Result<(), MissingFrames>) {
        let count = match result {
            Ok(()) => &mut self.known,
            Err(reason) => self.unknown.entry(reason).or_default(),
        };
        *count = count.saturating_add(1);
    }

    /// Adds the counts of another recording.
    pub(crate) fn add(&mut self, other: &Self) {
        self.known = self.known.saturating_add(other.known);
        for (&reason, &more) in &other.unknown {
            let count = self.unknown.entry(reason).or_default();
            *count = count.saturating_add(more);
        }
    }

    /// All stacks with an evaluation loop.
    pub(crate) fn all(&self) -> u64 {
        let unknown = self.unknown.values();
        unknown.fold(self.known, |all, &count| all.saturating_add(count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_contain_functions() {
        let check = |language, name: &str, file: &str| {
            let function = InterpretedFunction {
                language,
                name: name.into(),
                file: file.into(),
                first_line: 12,
            };
            let path = function.path();
            assert_eq!(InterpretedFunction::of_path(&path), Some(function));
        };
        let python = InterpretedLanguage::Python;
        check(python, "f", "/home/a b/x.py");
        check(
            python,
            "A.f.<locals>.<lambda>",
            "<frozen importlib._bootstrap>",
        );
        check(python, "f", "/home/a (b)/x:1.py");
        check(InterpretedLanguage::Php, "A::f", "/srv/x.php");
        let ruby = InterpretedLanguage::Ruby;
        check(ruby, "block (2 levels) in f", "/srv/x.rb");
        assert_eq!(InterpretedFunction::of_path("/usr/bin/python3"), None);
        assert_eq!(InterpretedFunction::of_path("[python] f"), None);
        assert_eq!(InterpretedFunction::of_path("[java] f (x:1)"), None);
    }

    #[test]
    fn lines_are_addresses() {
        let start = InterpretedFunction::start(3);
        let at = InterpretedFunction::address(start, Some(70));
        assert_eq!(at - start, 70);
        assert_eq!(InterpretedFunction::address(at, None), start);
        assert_eq!(InterpretedFunction::address(start, Some(u32::MAX)), start);
        assert!(InterpretedFunction::holds(at) && !InterpretedFunction::holds(u64::MAX));
        assert!(InterpretedFunction::holds(InterpretedFunction::start(
            u64::MAX
        )));
    }
}
