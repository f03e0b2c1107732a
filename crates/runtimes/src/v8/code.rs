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

use prof_model::{Account, Charge};

use super::layout::{CodeLayout, Layout};
use super::object::{Object, instance_type, object_at, small_integer};
use crate::Memory;
use crate::bounded_map::entry;
use crate::read::{word, word_at};

/// The compiled code of a process that was seen. When there is no room for more, it starts over.
#[derive(Debug)]
pub(super) struct CompiledCode {
    /// The map of all headers, once it is known.
    map: Option<u64>,
    /// By the address of the header, or of memory without any.
    known: BTreeMap<u64, Known>,
    charge: Charge,
}

/// A piece of code, as far as it is known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Code {
    /// Where its instructions begin.
    pub(super) start: Option<u64>,
    /// The function that it was optimized for.
    pub(super) function: Option<Object>,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    code: Code,
    /// The highest address that was seen in it.
    end: u64,
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
/// Words of a `Code` that are looked at.
const WORDS: usize = 12;

impl CompiledCode {
    pub(super) fn new(account: &Account) -> Self {
        Self {
            map: None,
            known: BTreeMap::new(),
            charge: account.for_cache(),
        }
    }

    /// The code at an address, by what was read in `lasts` nanoseconds before `now`.
    pub(super) fn at(
        &mut self,
        layout: &Layout,
        memory: &mut impl Memory,
        address: u64,
        (now, lasts): (u64, u64),
    ) -> Code {
        let is_fresh = |known: &Known| now.saturating_sub(known.read_at) < lasts;
        let below = self.known.range(..=address).next_back();
        let below = below.map(|(&start, &known)| (start, known));
        let same = below.filter(|(_, known)| address <= known.end);
        if let Some((_, known)) = same.filter(|(_, known)| is_fresh(known)) {
            return known.code;
        }
        let reach = address.saturating_sub(LARGEST);
        let fresh = below.filter(|(_, known)| is_fresh(known) && known.end >= reach);
        let lowest = fresh.map_or(reach, |(_, known)| known.end);
        let read = |code| Known {
            code,
            end: address,
            read_at: now,
        };
        let (header, known) = match (self.find(layout, memory, lowest..address), fresh) {
            (Search::Found(header, code), _) => {
                let code = Code {
                    start: Some(header.wrapping_add(layout.code.instructions)),
                    function: optimized_function(layout, memory, code),
                };
                (header, read(code))
            }
            // There is no other header in between.
            (Search::NotFound, Some((header, known))) => (
                header,
                Known {
                    end: address,
                    ..known
                },
            ),
            (Search::NotFound, None) => (lowest, read(Code::default())),
            // What the process had at its end is right for its last samples.
            (Search::Unreadable, _) => {
                return same.map(|(_, known)| known.code).unwrap_or_default();
            }
        };
        // Other code was there before.
        let stale = self.known.range(header..=address).map(|(&start, _)| start);
        for start in stale.collect::<Vec<_>>() {
            self.known.remove(&start);
        }
        let codes = self.known.len() + 1;
        match self.charge.set(codes * entry::<u64, Known>()) {
            true => _ = self.known.insert(header, known),
            false => {
                self.known.clear();
                self.charge.clear();
            }
        }
        known.code
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
    const LENGTH: u64 = 8;
    const WRAPPED: u64 = 8;
    FIELDS.into_iter().find_map(|field| {
        let data = code.object(memory, field)?;
        let length = small_integer(word(memory, data.at(LENGTH))?)?;
        (u64::try_from(length).ok()? > layout.code.function_index).then_some(())?;
        let element = layout.code.elements + 8 * layout.code.function_index;
        let function = data.object(memory, element)?;
        let mut is_function =
            |it: &Object| it.instance_type(layout, memory) == Some(layout.types.shared_info);
        if is_function(&function) {
            return Some(function);
        }
        let wrapped = function.object(memory, WRAPPED);
        wrapped.filter(|it| it.instance_type(layout, memory) == Some(layout.types.shared_info))
    })
}
