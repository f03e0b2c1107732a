//! Compiled code: its header before the instructions leads to the function of optimized code.
//!
//! ```text
//!   InstructionStream: map, Code, ..., instructions              (up to Node 18: one object)
//!                           └──> Code: ..., deoptimization data, ..., start of the instructions
//!                                           └──> SharedFunctionInfo, or a wrapper of it
//! ```
//! Code moves rarely, other objects often.

use std::collections::BTreeMap;
use std::ops::Range;

use super::layout::{CodeLayout, Layout};
use super::object::{Object, instance_type, object_at};
use crate::Memory;
use crate::read::word_at;

/// The compiled code of a process that was seen.
#[derive(Clone, Debug, Default)]
pub(super) struct CompiledCode {
    /// The map of all headers, once it is known.
    map: Option<u64>,
    /// By the address of the header, or of memory without any.
    known: BTreeMap<u64, Known>,
    /// Since when searches are counted that were in vain, and how many there were.
    failures: (u64, u32),
}

#[derive(Clone, Copy, Debug)]
struct Known {
    /// The highest address that was seen in it.
    end: u64,
    /// The function; `None` if the code is not optimized.
    function: Option<Object>,
    /// When it was last read.
    read_at: u64,
}

/// The result of a search for a header.
enum Search {
    /// Its address, and the `Code` that it leads to.
    Found(u64, Object),
    NotFound,
    /// Memory before the code is missing.
    Unreadable,
}

/// Bytes that are read at once.
const BLOCK: u64 = 4096;
/// How far from its header code is found.
const LARGEST: u64 = 512 << 10;
/// Searches in vain, in the time that what was read lasts. Limits the cost of a hostile process.
const FAILURES: u32 = 32;
/// The most pieces of code to remember; then it starts over.
const CODES: usize = 1 << 16;
/// Words of a `Code` that are looked at.
const WORDS: usize = 12;

impl CompiledCode {
    /// The function that the code at an address was optimized for, by what was read in `lasts`
    /// nanoseconds before `now`.
    pub(super) fn function(
        &mut self,
        layout: &Layout,
        memory: &mut impl Memory,
        address: u64,
        (now, lasts): (u64, u64),
    ) -> Option<Object> {
        let is_fresh = |known: &Known| now.saturating_sub(known.read_at) < lasts;
        let below = self.known.range(..=address).next_back();
        let below = below.map(|(&start, &known)| (start, known));
        if let Some((_, known)) = below
            && address <= known.end
            && is_fresh(&known)
        {
            return known.function;
        }
        if now.saturating_sub(self.failures.0) >= lasts {
            self.failures = (now, 0);
        } else if self.failures.1 >= FAILURES {
            return None;
        }
        let reach = address.saturating_sub(LARGEST);
        let fresh = below.filter(|(_, known)| is_fresh(known) && known.end >= reach);
        let lowest = fresh.map_or(reach, |(_, known)| known.end);
        let (start, function) = match (self.find(layout, memory, lowest..address), fresh) {
            (Search::Found(header, code), _) => (header, optimized_function(layout, memory, code)),
            // There is no other header in between.
            (Search::NotFound, Some((start, known))) => (start, known.function),
            (Search::NotFound, None) => {
                self.failures.1 += 1;
                (lowest, None)
            }
            (Search::Unreadable, _) => {
                self.failures.1 += 1;
                // What the process had at its end is right for its last samples.
                let known = below.filter(|(_, known)| address <= known.end);
                return known.and_then(|(_, known)| known.function);
            }
        };
        if self.known.len() >= CODES {
            self.known.clear();
        }
        let end = self.known.get(&start).map_or(address, |it| it.end);
        let known = Known {
            end: end.max(address),
            function,
            read_at: fresh
                .filter(|it| it.0 == start)
                .map_or(now, |it| it.1.read_at),
        };
        self.known.insert(start, known);
        function
    }

    /// Searches the last header in a range.
    fn find(&mut self, layout: &Layout, memory: &mut impl Memory, range: Range<u64>) -> Search {
        let mut bytes = [0; BLOCK as usize];
        let mut block = range.end & !(BLOCK - 1);
        loop {
            if memory.read(block, &mut bytes) == 0 {
                return Search::Unreadable;
            }
            let words = bytes.chunks_exact(8);
            for (index, word) in words.enumerate().rev() {
                let at = block + 8 * index as u64;
                let word = word_at(word, 0).unwrap_or(0);
                if range.contains(&at)
                    && self.may_be_header(layout, memory, at, word)
                    && let Some(code) = code_of(layout.code, memory, at, range.end)
                    && code.instance_type(layout, memory) == Some(layout.types.code)
                {
                    self.map = Some(word);
                    return Search::Found(at, code);
                }
            }
            if block <= range.start {
                return Search::NotFound;
            }
            block -= BLOCK;
        }
    }

    /// Whether the word at this address can be the map of a header.
    fn may_be_header(&self, layout: &Layout, memory: &mut impl Memory, at: u64, word: u64) -> bool {
        const ALIGNMENT: u64 = 32;
        match self.map {
            Some(map) => word == map,
            None => {
                at.wrapping_add(layout.code.instructions)
                    .is_multiple_of(ALIGNMENT)
                    && Object::tagged(word).is_some_and(|map| {
                        instance_type(layout, memory, map) == Some(layout.types.code_header)
                    })
            }
        }
    }
}

/// The `Code` whose header is at this address, if it is there and its instructions begin before
/// `address`.
fn code_of(
    layout: CodeLayout,
    memory: &mut impl Memory,
    header: u64,
    address: u64,
) -> Option<Object> {
    let instructions = header.checked_add(layout.instructions)?;
    (instructions <= address).then_some(())?;
    let mut bytes = [0; 16];
    (memory.read(header, &mut bytes) == bytes.len()).then_some(())?;
    if !layout.has_header {
        return Object::tagged(header | 1);
    }
    let code = object_at(&bytes, 8)?;
    let words = words_of(memory, code);
    words.contains(&instructions).then_some(code)
}

/// The first words of an object, after its map.
pub(super) fn words_of(memory: &mut impl Memory, object: Object) -> Vec<u64> {
    let mut bytes = [0; 8 * (1 + WORDS)];
    let count = memory.read(object.at(0), &mut bytes);
    let words = bytes.get(..count).unwrap_or_default().chunks_exact(8);
    words
        .skip(1)
        .map(|word| word_at(word, 0).unwrap_or(0))
        .collect()
}

/// The function that this code was optimized for, in its data for deoptimization.
fn optimized_function(layout: &Layout, memory: &mut impl Memory, code: Object) -> Option<Object> {
    /// The data is among the first fields, at different places in different releases.
    const FIELDS: [u64; 2] = [8, 16];
    const WRAPPED: u64 = 8;
    FIELDS.into_iter().find_map(|field| {
        let data = code.object(memory, field)?;
        let function = data.object(memory, layout.code.function)?;
        let mut is_function =
            |it: &Object| it.instance_type(layout, memory) == Some(layout.types.shared_info);
        if is_function(&function) {
            return Some(function);
        }
        let wrapped = function.object(memory, WRAPPED);
        wrapped.filter(|it| it.instance_type(layout, memory) == Some(layout.types.shared_info))
    })
}
