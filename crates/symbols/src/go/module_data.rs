//! The record of a program that Go's runtime begins with (`runtime.firstmoduledata`). It has no
//! name in a stripped file: it is what refers to the tables, part by part.

use std::collections::HashMap;

use object::{Object, ObjectSegment, RelocationFlags};

use super::Bytes;
use super::header::{Header, Layout};
use crate::image::Image;

/// What it says.
pub(super) struct ModuleData {
    /// The address that offsets of functions begin at.
    pub(super) text: u64,
    /// Addresses of which one is where trees of inlined calls are: how many fields are before it
    /// differs from version to version.
    trees: Vec<u64>,
}

/// The trees of inlined calls of all functions.
pub(super) struct InlinedCalls<'data> {
    bytes: Bytes<'data>,
    layout: Layout,
}

/// An inlined call.
pub(super) struct InlinedCall {
    /// The offset of the called function's name.
    pub(super) name: u32,
    /// Where the call was, from the start of the function that has the code.
    pub(super) called_at: u32,
}

/// The size of an address.
const WORD: u64 = 8;

impl ModuleData {
    /// Finds it by the address of the tables.
    pub(super) fn find(image: &Image<'_>, tables: u64, header: &Header<'_>) -> Option<Self> {
        let place = Place { tables, header };
        let segments = image.object().segments();
        let data = segments.filter_map(|segment| Some((segment.address(), segment.data().ok()?)));
        let in_file = data.flat_map(|(address, bytes)| {
            let words = (0..bytes.len()).step_by(WORD as usize);
            let first = move |&at: &usize| Bytes(bytes).u64(at) == Some(tables);
            words
                .filter(first)
                .map(move |at| (address, at, Bytes(bytes)))
        });
        let mut in_file = in_file.filter_map(|(_, at, bytes)| {
            let word = |index: usize| bytes.u64(at.checked_add(WORD as usize * index)?);
            place.read(word)
        });
        in_file.next().or_else(|| Self::relocated(image, &place))
    }

    /// Of a position-independent program the file may have only relocations.
    fn relocated(image: &Image<'_>, place: &Place<'_>) -> Option<Self> {
        /// `R_X86_64_RELATIVE`, `R_AARCH64_RELATIVE`
        const RELATIVE: [u32; 2] = [8, 1027];
        let relocations = image.object().dynamic_relocations()?;
        let relative = relocations.filter_map(|(at, relocation)| match relocation.flags() {
            RelocationFlags::Elf { r_type } if RELATIVE.contains(&r_type.0) => {
                Some((at, relocation.addend().cast_unsigned()))
            }
            _ => None,
        });
        let words: HashMap<u64, u64> = relative.collect();
        let mut starts: Vec<u64> = (words.iter())
            .filter(|&(_, &to)| to == place.tables)
            .map(|(&at, _)| at)
            .collect();
        starts.sort_unstable();
        starts.into_iter().find_map(|start| {
            place.read(|index| {
                let at = start.checked_add(WORD * index as u64)?;
                let in_file = || bytes_at(image, at)?.u64(0);
                words.get(&at).copied().or_else(in_file)
            })
        })
    }

    /// The trees that it leads to.
    pub(super) fn inlined_calls<'data>(
        &self,
        image: &Image<'data>,
        header: &Header<'_>,
    ) -> Option<InlinedCalls<'data>> {
        let trees = self.trees.iter().filter_map(|&address| {
            Some(InlinedCalls {
                bytes: bytes_at(image, address)?,
                layout: header.layout,
            })
        });
        trees.into_iter().find(|trees| trees.are_plausible(header))
    }
}

/// What the record must refer to.
struct Place<'a> {
    tables: u64,
    header: &'a Header<'a>,
}

impl Place<'_> {
    /// Reads the record with these words, if it is one.
    fn read(&self, word: impl Fn(usize) -> Option<u64>) -> Option<ModuleData> {
        /// Functions by address come after the header, the parts and themselves, in slices.
        const SEARCHED: std::ops::Range<usize> = 19..28;
        /// The fields from the code's start to the trees, in the versions that are known.
        const BEFORE_TREES: std::ops::RangeInclusive<usize> = 14..=24;
        let is_part = |(index, &offset): (usize, &usize)| {
            let start = self.tables.checked_add(offset as u64)?;
            (word(1 + 3 * index)? == start).then_some(())
        };
        self.header
            .offsets
            .iter()
            .enumerate()
            .try_for_each(|it| is_part(it).ok_or(()))
            .ok()?;
        let first = u64::from(self.header.entry(0)?);
        let last = u64::from(self.header.entry(self.header.count)?);
        let (at, text) = SEARCHED.into_iter().find_map(|at| {
            let text = word(at + 2)?;
            let is_it =
                word(at)? == text.checked_add(first)? && word(at + 1)? == text.checked_add(last)?;
            is_it.then_some((at + 2, text))
        })?;
        Some(ModuleData {
            text,
            trees: BEFORE_TREES
                .filter_map(|fields| word(at + fields))
                .collect(),
        })
    }
}

impl InlinedCalls<'_> {
    /// A call of a tree at this offset.
    pub(super) fn call(&self, tree: u32, index: usize) -> Option<InlinedCall> {
        let (size, name, called_at) = match self.layout {
            Layout::Go118 => (20, 12, 16),
            Layout::Go120 => (16, 4, 8),
        };
        let at = index
            .checked_mul(size)?
            .checked_add(usize::try_from(tree).ok()?)?;
        Some(InlinedCall {
            name: self.bytes.u32(at.checked_add(name)?)?,
            called_at: self.bytes.u32(at.checked_add(called_at)?)?,
        })
    }

    /// Whether the first calls of some functions have names, and are in their code.
    fn are_plausible(&self, header: &Header<'_>) -> bool {
        const ENOUGH: usize = 64;
        /// A damaged file may have no calls at all.
        const MOST: usize = 1 << 16;
        let mut calls = (0..header.count.min(MOST)).filter_map(|index| {
            let tree = header
                .tables_of(header.record(index)?)?
                .inline_tree(header)?;
            let length = header.entry(index + 1)?.checked_sub(header.entry(index)?)?;
            let call = self.call(tree, 0);
            Some(call.is_some_and(|it| header.is_name(it.name) && it.called_at < length))
        });
        let mut some = calls.by_ref().take(ENOUGH).peekable();
        some.peek().is_some() && some.all(|is_plausible| is_plausible)
    }
}

/// The bytes of a file from an address on, to the end of its segment.
fn bytes_at<'data>(image: &Image<'data>, address: u64) -> Option<Bytes<'data>> {
    image.object().segments().find_map(|segment| {
        let at = address.checked_sub(segment.address())?;
        let bytes = segment.data().ok()?.get(usize::try_from(at).ok()?..)?;
        (!bytes.is_empty()).then_some(Bytes(bytes))
    })
}
