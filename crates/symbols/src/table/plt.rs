//! Names for the linker's stubs that jump to functions of other files: `name@plt`.
//!
//! A stub jumps to an address that it loads from a slot of the global offset table; a relocation
//! fills that slot and says with whose address.
//!
//! ```text
//!   .plt, .plt.sec, .plt.got                  .got                 .rela.plt, .rela.dyn
//!   endbr64; jmp *disp(%rip) ─────────────▶ slot 0x3fc8 ◀────────── 0x3fc8: puts
//! ```

use std::borrow::Cow;
use std::collections::HashMap;

use object::{Architecture, Object, ObjectSection, ObjectSymbol, ObjectSymbolTable};
use object::{RelocationTarget, SymbolIndex};

use crate::image::Image;
use crate::table::symbol::Symbol;

/// The stubs of a file, of those sections that hold an address.
pub(crate) fn stubs<'data>(image: &Image<'data>, addresses: &[u64]) -> Vec<Symbol<'data>> {
    let object = image.object();
    let slot_of = match object.architecture() {
        Architecture::X86_64 => x86_64_slot,
        Architecture::Aarch64 => aarch64_slot,
        _ => return Vec::new(),
    };
    let sections: Vec<_> = [".plt", ".plt.sec", ".plt.got"]
        .into_iter()
        .filter_map(|name| object.section_by_name(name))
        .filter(|section| {
            let start = section.address();
            let section = start..start.saturating_add(section.size());
            addresses.iter().any(|address| section.contains(address))
        })
        .collect();
    if sections.is_empty() {
        return Vec::new();
    }
    let targets = targets(object);
    let mut stubs = Vec::new();
    for section in sections {
        let code = section.data().unwrap_or_default();
        for (index, stub) in code.chunks(STUB).enumerate() {
            let start = section.address().wrapping_add((index * STUB) as u64);
            let target = slot_of(stub, start).and_then(|slot| targets.get(&slot));
            stubs.extend(target.map(|target| Symbol {
                start,
                end: start.saturating_add(stub.len() as u64),
                limit: start,
                rank: 3,
                name: Cow::Owned([target, b"@plt".as_slice()].concat()),
            }));
        }
    }
    stubs
}

/// Stubs are of this size on all architectures here, in bytes. (Those of `.plt.got` take half of
/// it on x86-64 without IBT: then every other one is found.)
const STUB: usize = 16;

/// Slots of the global offset table and the names of the functions that they are filled with.
fn targets<'data>(object: &object::File<'data>) -> HashMap<u64, &'data [u8]> {
    let Some(symbols) = object.dynamic_symbol_table() else {
        return HashMap::new();
    };
    let name = |index: SymbolIndex| symbols.symbol_by_index(index).ok()?.name_bytes().ok();
    let relocations = object.dynamic_relocations().into_iter().flatten();
    relocations
        .filter_map(|(slot, relocation)| match relocation.target() {
            RelocationTarget::Symbol(index) => Some((slot, name(index)?)),
            _ => None,
        })
        .filter(|(_, name)| !name.is_empty())
        .collect()
}

/// `jmp *disp32(%rip)`, after an `endbr64` and a `bnd` prefix perhaps.
fn x86_64_slot(stub: &[u8], start: u64) -> Option<u64> {
    let mut at = 0;
    for prefix in [&[0xf3, 0x0f, 0x1e, 0xfa][..], &[0xf2]] {
        if stub.get(at..)?.starts_with(prefix) {
            at += prefix.len();
        }
    }
    let displacement = stub.get(at..)?.strip_prefix(&[0xff, 0x25])?;
    let displacement = i32::from_le_bytes(*displacement.first_chunk()?);
    let next = start.wrapping_add(at as u64 + 6);
    Some(next.wrapping_add_signed(i64::from(displacement)))
}

/// `adrp x16, page; ldr x17, [x16, #offset]`, after a `bti c` perhaps.
fn aarch64_slot(stub: &[u8], start: u64) -> Option<u64> {
    const BTI_C: u32 = 0xd503_245f;
    let mut words = stub
        .chunks_exact(4)
        .zip((start..).step_by(4))
        .filter_map(|(bytes, address)| Some((u32::from_le_bytes(*bytes.first_chunk()?), address)))
        .skip_while(|&(word, _)| word == BTI_C);
    let (adrp, address) = words.next()?;
    let (ldr, _) = words.next()?;
    if adrp & 0x9f00_001f != 0x9000_0010 || ldr & 0xffc0_03ff != 0xf940_0211 {
        return None;
    }
    let pages = (adrp >> 5 & 0x7_ffff) << 2 | adrp >> 29 & 3;
    let pages = i64::from((pages << 11).cast_signed() >> 11);
    let page = (address & !0xfff).wrapping_add_signed(pages << 12);
    let offset = u64::from(ldr >> 10 & 0xfff) * 8;
    Some(page.wrapping_add(offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_of_x86_64_stubs() {
        let check = |stub: &[u8], expected| assert_eq!(x86_64_slot(stub, 0x1020), expected);
        check(&[0xff, 0x25, 0xa2, 0x2f, 0, 0, 0x66, 0x90], Some(0x3fc8));
        check(
            &[0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0x9d, 0x2f, 0, 0],
            Some(0x3fc8),
        );
        check(&[0xff, 0x35, 0xe2, 0x2f, 0, 0], None);
        check(&[0xff, 0x25, 1], None);
        check(&[], None);
    }

    #[test]
    fn slots_of_aarch64_stubs() {
        // adrp x16, 0x11000 ; ldr x17, [x16, #8] at 0x5a0
        let plain = [0xd000_0090_u32 & !0x6000_0000 | 0x2000_0000, 0xf940_0611];
        let bytes = |words: &[u32]| -> Vec<u8> {
            words.iter().flat_map(|word| word.to_le_bytes()).collect()
        };
        assert_eq!(aarch64_slot(&bytes(&plain), 0x5a0), Some(0x1_1008));
        let guarded = [0xd503_245f, plain[0], plain[1]];
        assert_eq!(aarch64_slot(&bytes(&guarded), 0x5a0), Some(0x1_1008));
        assert_eq!(aarch64_slot(&bytes(&[0, 0]), 0x5a0), None);
    }
}
