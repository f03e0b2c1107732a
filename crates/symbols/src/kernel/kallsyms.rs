//! The kernel's functions, from `/proc/kallsyms`.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;

use prof_procfs::kernel::KernelSymbol;

/// The running kernel's functions and those of its modules and BPF programs.
pub(crate) struct KernelSymbols {
    /// The list as the kernel gives it: of its hundred thousand names, few are requested.
    list: Vec<u8>,
    /// By address; those of one address in the order of the list.
    functions: Vec<Function>,
    /// The address of `_text`: the kernel's first byte of code.
    text: Option<u64>,
}

#[derive(Clone, Copy)]
struct Function {
    start: u64,
    /// Where its name is in the list.
    name: usize,
}

/// Why there are no kernel symbols.
#[derive(Debug)]
pub(crate) enum KernelError {
    /// Every address reads as zero (`kernel.kptr_restrict`).
    Hidden,
    /// The file can't be read.
    Io(io::Error),
}

/// Farther behind the last function's start than this is not in it, in bytes.
const LONGEST: u64 = 1 << 20;
/// Lists are shorter than this, in bytes: they need not be copied while they grow. What is not used
/// of it is no memory.
const LONG_LIST: usize = 32 << 20;
/// Lines are longer than this on average, in bytes.
const SHORT_LINE: usize = 40;

impl KernelSymbols {
    /// Reads `/proc/kallsyms` or a copy of it.
    pub(crate) fn read(path: &Path) -> Result<Self, KernelError> {
        let mut list = Vec::with_capacity(LONG_LIST);
        let mut file = File::open(path).map_err(KernelError::Io)?;
        file.read_to_end(&mut list).map_err(KernelError::Io)?;
        Self::parse(list)
    }

    fn parse(list: Vec<u8>) -> Result<Self, KernelError> {
        let mut functions = Vec::with_capacity(list.len() / SHORT_LINE);
        let (mut text, mut hidden) = (None, false);
        let mut end = 0;
        for line in list.split(|&byte| byte == b'\n') {
            end += line.len();
            match KernelSymbol::parse(line).filter(KernelSymbol::is_code) {
                Some(KernelSymbol { address: 0, .. }) => hidden = true,
                Some(KernelSymbol { address, name, .. }) => {
                    if name == b"_text" {
                        text = Some(address);
                    }
                    functions.push(Function {
                        start: address,
                        name: end - name.len(),
                    });
                }
                None => {}
            }
            // The line break.
            end += 1;
        }
        if functions.is_empty() && hidden {
            return Err(KernelError::Hidden);
        }
        functions.sort_by_key(|function| function.start);
        Ok(Self {
            list,
            functions,
            text,
        })
    }

    /// The address of `_text`.
    pub(crate) fn text(&self) -> Option<u64> {
        self.text
    }

    /// The starts of the function at an absolute address and of the next one.
    pub(crate) fn range(&self, address: u64) -> Option<Range<u64>> {
        let after = self.functions.partition_point(|f| f.start <= address);
        let start = self.functions.get(after.checked_sub(1)?)?.start;
        let next = self
            .functions
            .get(after)
            .map_or(u64::MAX, |next| next.start);
        (address - start <= LONGEST).then_some(start..next)
    }

    /// The function at an absolute address; those of modules as `name [module]`. Of several names
    /// for one address, that with the fewest underscores in front, or else the shortest.
    pub(crate) fn find(&self, address: u64) -> Option<Cow<'_, str>> {
        let Range { start, .. } = self.range(address)?;
        let first = self.functions.partition_point(|f| f.start < start);
        let functions = self.functions.get(first..)?.iter();
        let names = functions
            .take_while(|function| function.start == start)
            .filter_map(|function| self.name(function));
        names.min_by_key(|name| {
            let rest = name.trim_start_matches('_');
            (name.len() - rest.len(), name.len())
        })
    }

    fn name(&self, function: &Function) -> Option<Cow<'_, str>> {
        let rest = self.list.get(function.name..)?;
        let line = std::str::from_utf8(rest.split(|&byte| byte == b'\n').next()?).ok()?;
        let mut fields = line.split_ascii_whitespace();
        let name = fields.next()?;
        Some(match fields.next() {
            Some(module) if module.starts_with('[') => format!("{name} {module}").into(),
            _ => name.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
ffffffff81000000 T _stext
ffffffff81000000 T _text
ffffffff81000100 t __do_one
ffffffff81000100 T do_one
ffffffff81000180 D not_code
ffffffff81000200 t do_two
not a line
ffffffffc0000000 t do_three\t[ext4]
";

    #[test]
    fn functions_are_found_with_their_module() -> Result<(), KernelError> {
        let symbols = KernelSymbols::parse(TEXT.into())?;
        let check = |address, expected| {
            assert_eq!(symbols.find(address).as_deref(), expected, "{address:x}");
        };
        check(0xffff_ffff_8000_0000, None);
        check(0xffff_ffff_8100_0000, Some("_text"));
        check(0xffff_ffff_8100_0101, Some("do_one"));
        check(0xffff_ffff_8100_0180, Some("do_one"));
        check(0xffff_ffff_8100_0200, Some("do_two"));
        check(0xffff_ffff_c000_0010, Some("do_three [ext4]"));
        check(0xffff_ffff_ffff_ffff, None);
        Ok(())
    }

    #[test]
    fn zeros_mean_that_the_kernel_hides_them() {
        let hidden = "0000000000000000 T _stext\n0000000000000000 t x\t[m]\n";
        assert!(matches!(
            KernelSymbols::parse(hidden.into()),
            Err(KernelError::Hidden)
        ));
    }
}
