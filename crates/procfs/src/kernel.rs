//! The kernel: its release, and the addresses of its code and modules, if they are shown
//! (kptr_restrict).

use std::fs::{self, File};
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

/// The release of the running kernel, such as `6.1.0-18-amd64`.
pub fn release() -> Option<String> {
    let text = fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    Some(text.trim().to_owned())
}

/// The machine's name.
pub fn host_name() -> Option<String> {
    let text = fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(text.trim().to_owned())
}

/// A symbol of the kernel: a line of /proc/kallsyms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelSymbol<'a> {
    /// Its address; 0 if the kernel hides it from the reader.
    pub address: u64,
    /// Its type, as nm(1) has them.
    pub kind: u8,
    /// Its name, and the rest of the line: for a symbol of a module a tab and `[module]`.
    pub name: &'a [u8],
}

impl<'a> KernelSymbol<'a> {
    /// `ffffffff81000000 T _stext`, or `ffffffffc0000000 t init_module\t[ext4]`; with or without a
    /// line break.
    pub fn parse(line: &'a [u8]) -> Option<Self> {
        const DIGITS: usize = 16;
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let length = line
            .iter()
            .take(DIGITS + 1)
            .position(|&byte| byte == b' ')?;
        let (digits, rest) = line.split_at_checked(length)?;
        let [b' ', kind, b' ', name @ ..] = rest else {
            return None;
        };
        let mut address = 0;
        for &digit in digits {
            address = address << 4 | u64::from(char::from(digit).to_digit(16)?);
        }
        (!digits.is_empty()).then_some(Self {
            address,
            kind: *kind,
            name,
        })
    }

    /// Whether it is in code.
    pub fn is_code(&self) -> bool {
        matches!(self.kind, b't' | b'T' | b'w' | b'W')
    }
}

/// The addresses of the kernel's own code, from /proc/kallsyms.
pub fn text() -> Option<Range<u64>> {
    text_in(kallsyms().ok()?).ok()?
}

/// Whether /proc/kallsyms shows addresses to this process.
///
/// # Errors
/// It cannot be read.
pub fn shows_addresses() -> io::Result<bool> {
    // Symbols of each CPU's data may be at zero, so one line proves nothing.
    const ENOUGH: usize = 10_000;
    let lines = kallsyms()?.split(b'\n').take(ENOUGH).map_while(Result::ok);
    let mut addresses = lines.filter_map(|line| Some(KernelSymbol::parse(&line)?.address));
    Ok(addresses.any(|address| address != 0))
}

fn kallsyms() -> io::Result<BufReader<File>> {
    let file = File::open("/proc/kallsyms")?;
    Ok(BufReader::with_capacity(1 << 16, file))
}

/// From `_text` to `_etext`, which kallsyms lists like any symbol.
///
/// # Errors
/// The list cannot be read.
pub fn text_in(mut kallsyms: impl BufRead) -> io::Result<Option<Range<u64>>> {
    let (mut start, mut end) = (None, None);
    let mut line = Vec::new();
    while (start.is_none() || end.is_none()) && kallsyms.read_until(b'\n', &mut line)? > 0 {
        if let Some(symbol) = KernelSymbol::parse(&line) {
            let address = Some(symbol.address).filter(|&address| address != 0);
            match symbol.name {
                b"_text" => start = address,
                b"_etext" => end = address,
                _ => {}
            }
        }
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
    fn lines_of_proc_kallsyms() {
        let check = |line: &str, expected: Option<(u64, char, &str)>| {
            let found = KernelSymbol::parse(line.as_bytes());
            let expected = expected.map(|(address, kind, name)| KernelSymbol {
                address,
                kind: kind as u8,
                name: name.as_bytes(),
            });
            assert_eq!(found, expected, "{line}");
        };
        let stext = Some((0xffff_ffff_8100_0000, 'T', "_stext"));
        check("ffffffff81000000 T _stext\n", stext);
        check("ffffffff81000000 T _stext", stext);
        check("0000000000000000 d x\t[m]\n", Some((0, 'd', "x\t[m]")));
        check("c0008000 t f", Some((0xc000_8000, 't', "f")));
        check("1ffffffff81000000 T _stext", None);
        check("ffffffff8100000g T _stext", None);
        check(" T _stext", None);
        check("0 T", None);
        check("", None);
        assert!(KernelSymbol::parse(b"1 W f").is_some_and(|symbol| symbol.is_code()));
        assert!(!KernelSymbol::parse(b"1 D f").is_some_and(|symbol| symbol.is_code()));
    }

    #[test]
    fn the_release_is_that_of_its_modules() {
        let release = release().unwrap();
        assert!(
            release.starts_with(|first: char| first.is_ascii_digit()) && !release.contains('\n')
        );
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
