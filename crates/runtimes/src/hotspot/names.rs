//! The names of code: of compiled methods those that `jcmd PID Compiler.perfmap` writes, and of
//! interpreted ones in the same style.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use prof_model::{Account, Charge};

use super::layout::HotspotLayout;
use super::symbols::{MethodSymbols, blob_name};
use crate::Memory;
use crate::bounded_map::entry;
use crate::synthetic::{Line, SyntheticAddresses};

/// Code and methods come and go: they are read again after this time, in nanoseconds.
pub(super) const LASTS: u64 = 1_000_000_000;

/// What names a piece of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// The method at this address, which it was compiled from.
    Method(u64),
    /// The text at this address, its blob's name.
    Blob(u64),
}

/// The names of the code that was seen.
///
/// Freed memory gets other code. Addresses in a recording have no time, so code that takes the
/// place of other code is recorded as if it were elsewhere: at addresses of its own, above those of
/// all programs. Interpreted methods, which all run in the same code, have such addresses, too, and
/// so has code for whose name there is no room: it may replace code that has one.
#[derive(Debug)]
pub(super) struct CodeNames {
    /// By the start of the code.
    known: BTreeMap<u64, NamedCode>,
    /// By the address of the `Method`.
    interpreted: HashMap<u64, InterpretedMethod>,
    /// Code that was replaced, and interpreted methods.
    lines: Vec<Line>,
    addresses: SyntheticAddresses,
    /// What represents code for whose name there was no room, if there was any.
    without_room: Option<u64>,
    charge: Charge,
    /// Whether nothing has a name any more.
    is_closed: bool,
}

#[derive(Clone, Debug)]
struct NamedCode {
    end: u64,
    origin: Origin,
    /// What to add to its addresses.
    shift: u64,
    /// Empty if it cannot be known.
    name: String,
}

#[derive(Clone, Copy, Debug)]
struct InterpretedMethod {
    symbols: MethodSymbols,
    /// What represents it in recordings; `None` if its name cannot be known.
    address: Option<u64>,
    /// When it was last read.
    read_at: u64,
}

impl CodeNames {
    pub(super) fn new(account: &Account) -> Self {
        Self {
            known: BTreeMap::new(),
            interpreted: HashMap::new(),
            lines: Vec::new(),
            addresses: SyntheticAddresses::default(),
            without_room: None,
            charge: account.for_names(),
            is_closed: false,
        }
    }

    /// Forgets all names. Later ones would be wrong for what was replaced before.
    pub(super) fn close(&mut self) {
        let account = self.charge.account().clone();
        account.leave_out();
        *self = Self {
            is_closed: true,
            ..Self::new(&account)
        };
    }

    /// Reads the name of this code, unless it is known.
    pub(super) fn learn(
        &mut self,
        layout: &HotspotLayout,
        memory: &mut impl Memory,
        range: &Range<u64>,
        origin: Origin,
    ) {
        // Without those of methods, other names are of no use.
        let Some(fields) = layout.name.as_ref().filter(|_| !self.is_closed) else {
            return;
        };
        let known = self.known.get(&range.start);
        if known.is_some_and(|known| known.end == range.end && known.origin == origin) {
            return;
        }
        let name = match origin {
            Origin::Method(method) => MethodSymbols::read(layout, fields, memory, method)
                .and_then(|symbols| symbols.method_name(fields, memory)),
            Origin::Blob(at) => blob_name(memory, at),
        };
        let replaces = self.replace(range);
        let name = name.unwrap_or_default();
        if !self.has_room(entry::<u64, NamedCode>() + name.len()) {
            let addresses = &mut self.addresses;
            (self.without_room).get_or_insert_with(|| addresses.add_function());
            return;
        }
        let shift = match replaces {
            true => self.shift(range),
            false => 0,
        };
        let named = NamedCode {
            end: range.end,
            origin,
            shift,
            name,
        };
        self.known.insert(range.start, named);
    }

    /// The address that represents an interpreted method in recordings, at a time in nanoseconds;
    /// `None` if it has no name. The memory of a method whose class is unloaded may get another
    /// method, so its names are compared after a while.
    pub(super) fn interpreted(
        &mut self,
        layout: &HotspotLayout,
        memory: &mut impl Memory,
        method: u64,
        now: u64,
    ) -> Option<u64> {
        let fields = layout.name.as_ref().filter(|_| !self.is_closed)?;
        let known = self.interpreted.get(&method).copied();
        if let Some(known) = known
            && now.saturating_sub(known.read_at) < LASTS
        {
            return known.address;
        }
        let Some(symbols) = MethodSymbols::read(layout, fields, memory, method) else {
            // What the process had at its end is right for its last samples.
            return known?.address;
        };
        let address = match known.filter(|known| known.symbols == symbols) {
            Some(known) => known.address,
            None => self.add_interpreted(symbols.method_name(fields, memory))?,
        };
        let read = InterpretedMethod {
            symbols,
            address,
            read_at: now,
        };
        self.interpreted.insert(method, read);
        address
    }

    /// Reserves addresses for an interpreted method of this name, if there is room for it; returns
    /// one of them, if it has a name.
    fn add_interpreted(&mut self, name: Option<String>) -> Option<Option<u64>> {
        let length = name.as_ref().map_or(0, String::len);
        let size = entry::<u64, InterpretedMethod>() + 2 * size_of::<Line>() + length;
        self.has_room(size).then_some(())?;
        Some(name.map(|name| {
            let address = self.addresses.add_function();
            self.lines.push(Line::of_function(address, name));
            address
        }))
    }

    /// Whether there is room for this many bytes more.
    fn has_room(&mut self, bytes: usize) -> bool {
        let has_room = self.charge.add(bytes);
        if !has_room {
            self.charge.account().leave_out();
        }
        has_room
    }

    /// Removes the code in this range; returns whether there was any.
    fn replace(&mut self, range: &Range<u64>) -> bool {
        let before = self.known.range(..range.end);
        let overlapping = before.rev().take_while(|(_, it)| it.end > range.start);
        let starts: Vec<u64> = overlapping.map(|(&start, _)| start).collect();
        for start in &starts {
            if let Some(code) = self.known.remove(start) {
                self.lines.push(code.line(*start));
            }
        }
        !starts.is_empty()
    }

    /// What leads from this range to addresses of its own.
    fn shift(&mut self, range: &Range<u64>) -> u64 {
        let start = self.addresses.reserve(range.end - range.start);
        start.wrapping_sub(range.start)
    }

    /// Replaces the addresses of code that takes the place of other code, or may do so:
    /// `is_code` says whether there is code at an address.
    pub(super) fn move_replacing(&self, addresses: &mut [u64], is_code: impl Fn(u64) -> bool) {
        if !self.addresses.are_used() {
            return;
        }
        for address in addresses {
            let before = self.known.range(..=*address).next_back();
            let code = before.filter(|(_, code)| *address < code.end);
            match (code, self.without_room) {
                (Some((_, code)), _) => *address = address.wrapping_add(code.shift),
                (None, Some(without_room)) if is_code(*address) => *address = without_room,
                (None, _) => {}
            }
        }
    }

    /// Adds the names to a perf map: a line for each piece of code.
    pub(super) fn write(&self, map: &mut String) {
        let known = self.known.iter().map(|(&start, code)| code.line(start));
        let lines = self.lines.iter().cloned().chain(known);
        for line in lines.filter(|line| !line.name.is_empty()) {
            line.write(map);
        }
    }
}

impl NamedCode {
    fn line(&self, start: u64) -> Line {
        Line {
            start: start.wrapping_add(self.shift),
            size: self.end - start,
            name: self.name.clone(),
        }
    }
}
