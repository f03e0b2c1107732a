//! Where the code of loaded kernel modules is, told as perf tells it.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader};

use prof_perfdata::{CpuMode, Mmap, Record, Stamp};

/// Hands an MMAP2 record of each loaded kernel module to `each`, if addresses are told to us
/// (kptr_restrict) and there are modules.
pub(crate) fn synthesize(each: &mut dyn FnMut(&Record<'_>)) {
    if let Ok(modules) = File::open("/proc/modules") {
        let lines = BufReader::new(modules).lines().map_while(Result::ok);
        lines
            .filter_map(|line| LoadedModule::parse(&line))
            .for_each(|module| each(&Record::Mmap(module.record())));
    }
}

/// Reads a line for `fuzzing`.
pub(crate) fn fuzz(line: &str) {
    if let Some(module) = LoadedModule::parse(line) {
        module.record();
    }
}

/// A line of /proc/modules.
#[derive(Debug, PartialEq, Eq)]
struct LoadedModule {
    /// In brackets, as kallsyms has it.
    name: String,
    address: u64,
    size: u64,
}

impl LoadedModule {
    /// `ext4 737280 1 - Live 0xffffffffc0340000 (E)`
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split(' ');
        let name = fields.next().filter(|name| !name.is_empty())?;
        let size = fields.next()?.parse().ok()?;
        let address = fields.nth(3)?.strip_prefix("0x")?;
        let address = u64::from_str_radix(address, 16).ok()?;
        // Zeros are what those see who may not know.
        (address != 0).then(|| Self {
            name: format!("[{name}]"),
            address,
            size,
        })
    }

    fn record(&self) -> Mmap<'_> {
        const EXECUTE: u32 = 4;
        Mmap {
            stamp: Stamp::default(),
            mode: CpuMode::Kernel,
            pid: -1,
            tid: 0,
            address: self.address,
            length: self.size,
            file_offset: 0,
            executable: true,
            protection: Some(EXECUTE),
            flags: None,
            build_id: None,
            identity: None,
            path: OsStr::new(&self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_proc_modules() {
        let check = |line: &str, expected: Option<(&str, u64, u64)>| {
            let expected = expected.map(|(name, address, size)| LoadedModule {
                name: name.into(),
                address,
                size,
            });
            assert_eq!(LoadedModule::parse(line), expected, "{line}");
        };
        check(
            "ext4 737280 1 - Live 0xffffffffc0340000",
            Some(("[ext4]", 0xffff_ffff_c034_0000, 737_280)),
        );
        check(
            "nf_tables 323584 3 nft_compat,nft_chain_nat, Live 0xffffffffc0a00000 (OE)",
            Some(("[nf_tables]", 0xffff_ffff_c0a0_0000, 323_584)),
        );
        check("ext4 737280 1 - Live 0x0000000000000000", None);
        check("ext4 737280 1 - Live", None);
        check("", None);
    }
}
