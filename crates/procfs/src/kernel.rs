//! The addresses of the kernel's code and of its modules, if they are shown (kptr_restrict).

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::ops::Range;

use crate::maps::hex;

/// A loaded kernel module: a line of /proc/modules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelModule {
    /// Its name, such as `ext4`.
    pub name: String,
    /// The address where it begins.
    pub address: u64,
    /// Its size in bytes.
    pub size: u64,
}

impl KernelModule {
    /// `ext4 737280 1 - Live 0xffffffffc0340000 (E)`
    pub fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split(' ');
        let name = fields.next().filter(|name| !name.is_empty())?;
        let size = fields.next()?.parse().ok()?;
        let address = hex(fields.nth(3)?.strip_prefix("0x")?)?;
        // The kernel shows zeros to readers without the permission.
        (address != 0).then(|| Self {
            name: name.to_owned(),
            address,
            size,
        })
    }
}

/// The loaded modules whose addresses are shown.
pub fn modules() -> impl Iterator<Item = KernelModule> {
    let file = File::open("/proc/modules").ok();
    let lines = file.map(|file| BufReader::new(file).lines().map_while(Result::ok));
    let lines = lines.into_iter().flatten();
    lines.filter_map(|line| KernelModule::parse(&line))
}

/// The addresses of the kernel's own code, from /proc/kallsyms.
pub fn text() -> Option<Range<u64>> {
    let file = File::open("/proc/kallsyms").ok()?;
    text_in(BufReader::with_capacity(1 << 16, file)).ok()?
}

/// From `_text` to `_etext`, which kallsyms lists like any symbol.
///
/// # Errors
/// The list cannot be read.
pub fn text_in(mut kallsyms: impl BufRead) -> io::Result<Option<Range<u64>>> {
    let (mut start, mut end) = (None, None);
    let mut line = Vec::new();
    while (start.is_none() || end.is_none()) && kallsyms.read_until(b'\n', &mut line)? > 0 {
        let mut fields = line.trim_ascii_end().split(|&byte| byte == b' ');
        let address = fields.next();
        let symbol = match fields.nth(1) {
            Some(b"_text") => &mut start,
            Some(b"_etext") => &mut end,
            _ => {
                line.clear();
                continue;
            }
        };
        let address = address.and_then(|text| std::str::from_utf8(text).ok());
        *symbol = address.and_then(hex).filter(|&address| address != 0);
        line.clear();
    }
    let range = start.zip(end).map(|(start, end)| start..end);
    Ok(range.filter(|range| !range.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_proc_modules() {
        let check = |line: &str, expected: Option<(&str, u64, u64)>| {
            let expected = expected.map(|(name, address, size)| KernelModule {
                name: name.into(),
                address,
                size,
            });
            assert_eq!(KernelModule::parse(line), expected, "{line}");
        };
        check(
            "ext4 737280 1 - Live 0xffffffffc0340000",
            Some(("ext4", 0xffff_ffff_c034_0000, 737_280)),
        );
        check(
            "nf_tables 323584 3 nft_compat,nft_chain_nat, Live 0xffffffffc0a00000 (OE)",
            Some(("nf_tables", 0xffff_ffff_c0a0_0000, 323_584)),
        );
        check("ext4 737280 1 - Live 0x0000000000000000", None);
        check("ext4 737280 1 - Live", None);
        check("", None);
    }

    #[test]
    fn kernel_text_is_between_its_symbols() {
        let check = |text: &str, expected| {
            assert_eq!(text_in(text.as_bytes()).unwrap(), expected);
        };
        check("f0 T _text\nf8 T x\nff T _etext\n", Some(0xf0..0xff));
        check("0 T _text\n0 T _etext\n", None);
        check("f0 T _text\n", None);
        check("", None);
    }
}
