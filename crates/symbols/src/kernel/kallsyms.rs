//! The kernel's functions, from `/proc/kallsyms`.

use std::io::{self, BufRead, BufReader};
use std::ops::Range;
use std::path::Path;

/// The running kernel's functions and those of its modules and BPF programs.
pub(crate) struct KernelSymbols {
    /// By address; one for each address.
    functions: Vec<Function>,
    /// All names, end to end.
    names: String,
    /// The address of `_text`: the kernel's first byte of code.
    text: Option<u64>,
}

#[derive(Clone, Copy)]
struct Function {
    start: u64,
    name: (u32, u32),
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

impl KernelSymbols {
    /// Reads `/proc/kallsyms` or a copy of it.
    pub(crate) fn read(path: &Path) -> Result<Self, KernelError> {
        let file = std::fs::File::open(path).map_err(KernelError::Io)?;
        Self::parse(BufReader::with_capacity(1 << 16, file))
    }

    fn parse(mut input: impl BufRead) -> Result<Self, KernelError> {
        let mut this = Self {
            functions: Vec::new(),
            names: String::new(),
            text: None,
        };
        let mut line = Vec::new();
        let mut hidden = false;
        while input
            .read_until(b'\n', &mut line)
            .map_err(KernelError::Io)?
            > 0
        {
            if let Some(function) = parse_line(&line) {
                match function.address {
                    0 => hidden = true,
                    _ => this.push(&function),
                }
            }
            line.clear();
        }
        if this.functions.is_empty() && hidden {
            return Err(KernelError::Hidden);
        }
        let Self {
            functions, names, ..
        } = &mut this;
        let name = |function: &Function| {
            let (start, end) = function.name;
            names.get(start as usize..end as usize).unwrap_or_default()
        };
        functions.sort_by(|a, b| {
            let key = |f| (underscores(name(f)), name(f).len());
            (a.start.cmp(&b.start)).then_with(|| key(a).cmp(&key(b)))
        });
        functions.dedup_by_key(|function| function.start);
        Ok(this)
    }

    fn push(&mut self, line: &Line<'_>) {
        if line.name == "_text" {
            self.text = Some(line.address);
        }
        let start = self.names.len();
        self.names.push_str(line.name);
        if let Some(module) = line.module {
            self.names.push_str(" [");
            self.names.push_str(module);
            self.names.push(']');
        }
        if let (Ok(start), Ok(end)) = (u32::try_from(start), u32::try_from(self.names.len())) {
            self.functions.push(Function {
                start: line.address,
                name: (start, end),
            });
        }
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

    /// The function at an absolute address; those of modules as `name [module]`.
    pub(crate) fn find(&self, address: u64) -> Option<&str> {
        let after = self.functions.partition_point(|f| f.start <= address);
        let function = self.functions.get(after.checked_sub(1)?)?;
        if address - function.start > LONGEST {
            return None;
        }
        let (start, end) = function.name;
        self.names.get(start as usize..end as usize)
    }
}

struct Line<'a> {
    address: u64,
    name: &'a str,
    module: Option<&'a str>,
}

/// `ffffffff81000000 T _stext` or `ffffffffc0000000 t init_module\t[ext4]`; `None` for data.
fn parse_line(line: &[u8]) -> Option<Line<'_>> {
    let (address, rest) = line.split_at_checked(line.iter().position(|&byte| byte == b' ')?)?;
    let [b' ', b't' | b'T' | b'w' | b'W', b' ', rest @ ..] = rest else {
        return None;
    };
    let address = std::str::from_utf8(address).ok()?;
    let mut fields = std::str::from_utf8(rest).ok()?.split_ascii_whitespace();
    Some(Line {
        address: u64::from_str_radix(address, 16).ok()?,
        name: fields.next()?,
        module: (fields.next()).and_then(|field| field.strip_prefix('[')?.strip_suffix(']')),
    })
}

fn underscores(name: &str) -> usize {
    name.bytes().take_while(|&byte| byte == b'_').count()
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
        let symbols = KernelSymbols::parse(TEXT.as_bytes())?;
        let check = |address, expected| assert_eq!(symbols.find(address), expected, "{address:x}");
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
            KernelSymbols::parse(hidden.as_bytes()),
            Err(KernelError::Hidden)
        ));
    }
}
