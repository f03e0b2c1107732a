//! The stored form of [`EmbeddedSymbols`](super::EmbeddedSymbols).
//!
//! All numbers are unsigned LEB128; `[x]` is a count followed by so many `x`; an optional number
//! is stored plus one, zero meaning none.
//!
//! ```text
//!   "PSYM" version=4 whole (1 if all modules are here, else 0)
//!   [ string: [byte] ]
//!   [ frame: function, file?, line?, inlined ]
//!   [ module: kind (0 file: path [byte], build id [byte] | 1 kernel | 2 run-time code: pid
//!                   | 3 file without build id: path [byte],
//!                       device: major, minor; inode, generation),
//!             detail, problem [byte],
//!             [ address: distance to the one before,
//!                        [frame], if there is none: distance to the start of its function? ] ]
//!   [ code without frame pointers: kind as above, [ address: distance to the one before ] ]
//! ```
//!
//! Version 1 has no modules of kind 3: files without a build id are of kind 0 there. Versions 1 and
//! 2 have no code without frame pointers. Versions 1 to 3 have no starts of functions.

use std::collections::BTreeMap;
use std::sync::Arc;

use prof_model::{BuildId, FileIdentity};

use super::{EmbeddedError, EmbeddedSymbols, FileKey, Frame, Key, Module, path_bytes, path_of};
use crate::query::Detail;

const MAGIC: &[u8] = b"PSYM";
const VERSION: u64 = 4;

pub(super) fn write(symbols: &EmbeddedSymbols) -> Vec<u8> {
    let mut out = Output(MAGIC.to_vec());
    out.number(VERSION);
    out.number(u64::from(symbols.whole));
    out.number(symbols.strings.len() as u64);
    for string in &symbols.strings {
        out.bytes(string.as_bytes());
    }
    out.number(symbols.frames.len() as u64);
    for frame in &symbols.frames {
        out.number(u64::from(frame.function));
        out.optional(frame.file.map(u64::from));
        out.optional(frame.line.map(u64::from));
        out.number(u64::from(frame.inlined));
    }
    out.number(symbols.modules.len() as u64);
    for module in &symbols.modules {
        write_module(&mut out, module);
    }
    out.number(symbols.skipped_callers.len() as u64);
    for (key, addresses) in &symbols.skipped_callers {
        write_key(&mut out, key);
        out.number(addresses.len() as u64);
        let mut previous = 0;
        for &address in addresses {
            out.number(address.wrapping_sub(previous));
            previous = address;
        }
    }
    out.0
}

fn write_module(out: &mut Output, module: &Module) {
    write_key(out, &module.key);
    out.number(match module.detail {
        Detail::Nothing => 0,
        Detail::Functions => 1,
        Detail::Inlines => 2,
    });
    out.bytes(module.problem.as_deref().unwrap_or_default().as_bytes());
    out.number(module.addresses.len() as u64);
    let mut previous = 0;
    let mut start = 0;
    for (&address, &end) in module.addresses.iter().zip(&module.ends) {
        out.number(address.wrapping_sub(previous));
        let frames = module.frames.get(start..end as usize).unwrap_or_default();
        out.number(frames.len() as u64);
        for &frame in frames {
            out.number(u64::from(frame));
        }
        if frames.is_empty() {
            let start = module.starts.get(&address);
            out.optional(start.map(|start| address.wrapping_sub(*start)));
        }
        previous = address;
        start = end as usize;
    }
}

fn write_key(out: &mut Output, key: &Key) {
    match key {
        Key::File(path, FileKey::Identity(Some(identity))) => {
            out.number(3);
            out.bytes(path_bytes(path));
            out.number(identity.device.0.into());
            out.number(identity.device.1.into());
            out.number(identity.inode);
            out.number(identity.generation);
        }
        Key::File(path, file) => {
            out.number(0);
            out.bytes(path_bytes(path));
            out.bytes(match file {
                FileKey::BuildId(id) => id.as_bytes(),
                FileKey::Identity(_) => &[],
            });
        }
        Key::Kernel => out.number(1),
        Key::Jit(pid) => {
            out.number(2);
            out.number(u64::from(pid.cast_unsigned()));
        }
    }
}

pub(super) fn read(bytes: &[u8]) -> Result<EmbeddedSymbols, EmbeddedError> {
    let rest = bytes.strip_prefix(MAGIC).ok_or(EmbeddedError::Damaged)?;
    let mut input = Input(rest);
    let version = match input.number() {
        Some(version @ 1..=VERSION) => version,
        Some(version) => return Err(EmbeddedError::UnknownVersion(version)),
        None => return Err(EmbeddedError::Damaged),
    };
    read_all(&mut input, version).ok_or(EmbeddedError::Damaged)
}

fn read_all(input: &mut Input<'_>, version: u64) -> Option<EmbeddedSymbols> {
    Some(EmbeddedSymbols {
        whole: input.number()? != 0,
        strings: input.list(|input| Some(Arc::from(input.text()?)))?,
        frames: input.list(|input| {
            Some(Frame {
                function: input.small()?,
                file: input.small_optional()?,
                line: input.small_optional()?,
                inlined: input.number()? != 0,
            })
        })?,
        modules: input.list(|input| read_module(input, version))?,
        skipped_callers: match version {
            1 | 2 => Vec::new(),
            _ => input.list(read_skipped_callers)?,
        },
    })
}

fn read_skipped_callers(input: &mut Input<'_>) -> Option<(Key, Vec<u64>)> {
    let key = read_key(input)?;
    let mut previous = 0_u64;
    let addresses = input.list(|input| {
        previous = previous.wrapping_add(input.number()?);
        Some(previous)
    })?;
    addresses.is_sorted().then_some((key, addresses))
}

fn read_module(input: &mut Input<'_>, version: u64) -> Option<Module> {
    let key = read_key(input)?;
    let detail = match input.number()? {
        0 => Detail::Nothing,
        1 => Detail::Functions,
        2 => Detail::Inlines,
        _ => return None,
    };
    let problem = Some(input.text()?.to_owned()).filter(|text| !text.is_empty());
    let mut previous = 0_u64;
    let mut frames = Vec::new();
    let mut starts = BTreeMap::new();
    let addresses = input.list(|input| {
        previous = previous.wrapping_add(input.number()?);
        let found = input.list(Input::small)?;
        if found.is_empty() && version >= 4 {
            let distance = input.optional()?;
            starts.extend(distance.map(|distance| (previous, previous.wrapping_sub(distance))));
        }
        frames.extend(found);
        Some((previous, u32::try_from(frames.len()).ok()?))
    })?;
    let (addresses, ends): (Vec<u64>, Vec<u32>) = addresses.into_iter().unzip();
    addresses.is_sorted().then_some(Module {
        key,
        detail,
        problem,
        addresses,
        ends,
        frames,
        starts,
    })
}

fn read_key(input: &mut Input<'_>) -> Option<Key> {
    Some(match input.number()? {
        0 => {
            let path = path_of(input.bytes()?);
            let build_id = BuildId::new(input.bytes()?);
            let file = build_id.map_or(FileKey::Identity(None), FileKey::BuildId);
            Key::File(path, file)
        }
        1 => Key::Kernel,
        2 => Key::Jit(input.small()?.cast_signed()),
        3 => {
            let path = path_of(input.bytes()?);
            let identity = FileIdentity {
                device: (input.small()?, input.small()?),
                inode: input.number()?,
                generation: input.number()?,
            };
            Key::File(path, FileKey::Identity(Some(identity)))
        }
        _ => return None,
    })
}

struct Output(Vec<u8>);

impl Output {
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn optional(&mut self, number: Option<u64>) {
        self.number(number.map_or(0, |number| number.saturating_add(1)));
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }
}

struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            let bits = u64::from(byte & 0x7f);
            number |= bits
                .checked_shl(shift)
                .filter(|value| value >> shift == bits)?;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn small(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }

    fn optional(&mut self) -> Option<Option<u64>> {
        Some(self.number()?.checked_sub(1))
    }

    fn small_optional(&mut self) -> Option<Option<u32>> {
        match self.optional()? {
            None => Some(None),
            Some(number) => Some(Some(u32::try_from(number).ok()?)),
        }
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    /// A count and so many items. As each takes a byte at least, a false count ends with the
    /// bytes, not with the memory.
    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.number()?;
        let mut items = Vec::new();
        for _ in 0..count {
            items.push(item(self)?);
        }
        Some(items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for number in [
            0,
            1,
            0x7f,
            0x80,
            0x3fff,
            0x4000,
            u64::from(u32::MAX),
            u64::MAX,
        ] {
            let mut out = Output(Vec::new());
            out.number(number);
            assert_eq!(Input(&out.0).number(), Some(number));
        }
        let check_bad = |bytes: &[u8]| assert_eq!(Input(bytes).number(), None);
        check_bad(&[]);
        check_bad(&[0x80]);
        check_bad(&[0xff; 9]);
        check_bad(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]);
    }

    /// Version 1 has no inodes.
    #[test]
    fn the_first_version_is_read() {
        let frames = b"\x01\x01f\x01\0\0\0\0";
        let module = b"\x01\0\x02/p\0\x01\0\x01\x10\x01\0";
        let bytes = [&b"PSYM\x01\x01"[..], frames, module].concat();
        let symbols = read(&bytes).unwrap();
        let key = Key::File("/p".into(), FileKey::Identity(None));
        assert_eq!(symbols.modules[0].key, key);
        assert_eq!(&*symbols.frame(0).unwrap().function, "f");
        assert_eq!(symbols.modules[0].addresses, [0x10]);
        let mut again = [&bytes[..], b"\0"].concat();
        again[MAGIC.len()] = 4;
        assert_eq!(write(&symbols), again);
    }

    #[test]
    fn code_without_frame_pointers_comes_back() {
        let module = prof_model::Module::from_path("/p");
        let mut symbols = EmbeddedSymbols::default();
        symbols.add_skipped_callers(&module, vec![0x30, 0x10, 0x30]);
        let again = read(&write(&symbols)).unwrap();
        assert_eq!(again, symbols);
        for (address, expected) in [(0x10, true), (0x20, false), (0x30, true)] {
            assert_eq!(again.skips_caller(&module, address), expected, "{address}");
        }
        let other = prof_model::Module::from_path("/q");
        assert!(!again.skips_caller(&other, 0x10));
    }

    #[test]
    fn other_versions_and_damage_are_distinguished() {
        let check = |bytes: &[u8], expected| assert_eq!(read(bytes).unwrap_err(), expected);
        check(b"", EmbeddedError::Damaged);
        check(b"PSYM", EmbeddedError::Damaged);
        check(b"PSYM\x05", EmbeddedError::UnknownVersion(5));
        check(b"PSYM\x00", EmbeddedError::UnknownVersion(0));
        check(b"PSYM\x01\x01\xff\xff\xff\xff\x0f", EmbeddedError::Damaged);
    }
}
