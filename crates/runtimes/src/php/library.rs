//! Files that contain a PHP.

use std::ops::Range;

use super::frames::Interpreter;
use crate::elf::Elf;
use crate::function_parts::{self, is_new_part};

/// What a file says of its interpreter: an executable, or the module of a server.
#[derive(Clone, Debug)]
pub(crate) struct Library {
    /// `ZEND_MODULE_API_NO`: the date of the version's interface for modules; `None` if unknown.
    api: Option<u32>,
    /// The address of `executor_globals` in the file's own address space; `None` if each thread has
    /// its own.
    globals: Option<u64>,
}

impl Library {
    /// Whether a file of this name may contain one: `php8.2`, `php-fpm8.2`, `libphp.so`.
    pub(crate) fn is_named(name: &str) -> bool {
        name.starts_with("php") || name.starts_with("libphp")
    }

    /// Reads the symbol tables of a file, and the addresses of the evaluation loop; `None` if it
    /// contains no interpreter.
    pub(crate) fn read(elf: &Elf<'_>) -> Option<(Self, Vec<Range<u64>>)> {
        let (mut globals, mut evaluation) = (None, Vec::new());
        elf.symbols(|name, range| match name {
            b"executor_globals" => globals = Some(range.start),
            b"execute_ex" | b"execute_ex.cold" if is_new_part(&evaluation, &range) => {
                evaluation.push(range);
            }
            _ => {}
        });
        (!evaluation.is_empty()).then_some(())?;
        let api = elf.section(".rodata").and_then(|(_, bytes)| api(bytes));
        let evaluation = function_parts::with_unnamed(elf, evaluation);
        Some((Self { api, globals }, evaluation))
    }

    /// The interpreter of a process that has the file mapped this far from its own addresses;
    /// `None` if its frames cannot be read.
    pub(crate) fn at(&self, bias: u64) -> Option<Interpreter> {
        Interpreter::new(self.api?, bias.wrapping_add(self.globals?))
    }
}

/// The version in `ZEND_MODULE_BUILD_ID`, which each module of C code has: `API20220829,NTS`.
fn api(constants: &[u8]) -> Option<u32> {
    const START: &[u8] = b"API";
    const DIGITS: usize = 8;
    const END: &[u8] = b",NTS\0";
    let mut words = constants.windows(START.len() + DIGITS + END.len());
    words.find_map(|word| {
        let digits = word.strip_prefix(START)?.strip_suffix(END)?;
        std::str::from_utf8(digits).ok()?.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_in_the_build_id() {
        assert_eq!(api(b"\0API20220829,NTS\0x"), Some(20_220_829));
        assert_eq!(api(b"API20220829,TS\0\0"), None);
        assert_eq!(api(b"APIx0220829,NTS\0"), None);
        assert_eq!(api(b"API"), None);
    }
}
