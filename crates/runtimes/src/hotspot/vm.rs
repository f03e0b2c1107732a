//! A virtual machine in a process, and its known code.

use std::collections::BTreeMap;
use std::ops::Range;

use prof_model::{Account, Charge};

use super::blob::{Code, Kinds};
use super::code_heap::{CodeHeap, Unknown};
use super::layout::HotspotLayout;
use super::method;
use super::names::{CodeNames, LASTS};
use super::tables::Tables;
use crate::Memory;
use crate::bounded_map::{BoundedMap, entry};

/// A HotSpot in a process.
#[derive(Debug)]
pub struct HotSpot {
    layout: HotspotLayout,
    heaps: Vec<CodeHeap>,
    kinds: Kinds,
    /// Code by its start address.
    code: BTreeMap<u64, Known>,
    code_charge: Charge,
    /// Methods by their address.
    methods: BoundedMap<u64, KnownMethod>,
    names: CodeNames,
}

#[derive(Clone, Debug)]
struct Known {
    code: Code,
    /// When it was last read.
    read_at: u64,
}

/// A method that was in a frame of the interpreter.
#[derive(Clone, Debug)]
struct KnownMethod {
    bytecodes: Range<u64>,
    /// When they were last read.
    read_at: u64,
}

impl HotSpot {
    /// The machine of a process in which these symbols of libjvm.so, those of its tables, have
    /// these addresses; `None` if the tables lack something.
    pub fn new(
        symbols: &[(&str, u64)],
        memory: &mut impl Memory,
        account: &Account,
    ) -> Option<Self> {
        let layout = HotspotLayout::new(&Tables::read(symbols, memory)?)?;
        Some(Self {
            heaps: Vec::new(),
            layout,
            kinds: Kinds::new(),
            code: BTreeMap::new(),
            code_charge: account.for_cache(),
            methods: BoundedMap::new(account),
            names: CodeNames::new(account),
        })
    }

    /// The code that holds an address, at a time in nanoseconds.
    pub fn code_at(&mut self, memory: &mut impl Memory, address: u64, now: u64) -> Option<Code> {
        let known = self.known(address);
        if let Some(known) = known
            && now.saturating_sub(known.read_at) < LASTS
        {
            return Some(known.code.clone());
        }
        match self.read(memory, address) {
            Ok(code) => {
                self.insert(code.clone(), now);
                Some(code)
            }
            // The code that the process had at its end is right for its last samples.
            Err(Unknown::Unreadable) => self.known(address).map(|known| known.code.clone()),
            Err(Unknown::NoCode) => {
                self.forget(address..address.saturating_add(1));
                None
            }
        }
    }

    /// Whether an address can be code, as far as is known.
    pub fn holds(&self, address: u64) -> bool {
        let mut heaps = self.heaps.iter();
        heaps.any(|heap| heap.memory.contains(&address))
    }

    /// The addresses of the bytecodes of the method at this address, at a time in nanoseconds;
    /// empty for a native one. `None` if it is not a method.
    pub fn bytecodes(
        &mut self,
        memory: &mut impl Memory,
        method: u64,
        now: u64,
    ) -> Option<Range<u64>> {
        let known = self.methods.get(&method);
        if let Some(known) = known
            && now.saturating_sub(known.read_at) < LASTS
        {
            return Some(known.bytecodes.clone());
        }
        let Some(bytecodes) = method::bytecodes(&self.layout, memory, method) else {
            // Those that the process had at its end are right for its last samples.
            return known.map(|known| known.bytecodes.clone());
        };
        let read = KnownMethod {
            bytecodes: bytecodes.clone(),
            read_at: now,
        };
        self.methods.insert(method, read);
        Some(bytecodes)
    }

    /// The [address](crate::SyntheticCode) that represents an interpreted method in recordings, at
    /// a time in nanoseconds; `None` if it has no name.
    pub fn interpreted(&mut self, memory: &mut impl Memory, method: u64, now: u64) -> Option<u64> {
        self.names.interpreted(&self.layout, memory, method, now)
    }

    /// Replaces the addresses of code that takes the place of other code by those that
    /// [represent it](crate::SyntheticCode).
    pub fn move_replacing(&self, addresses: &mut [u64]) {
        self.names.move_replacing(addresses, |it| self.holds(it));
    }

    /// Adds the names of the code and of the interpreted methods that were seen to a perf map:
    /// lines of `START SIZE NAME`.
    pub fn write_perf_map(&self, map: &mut String) {
        self.names.write(map);
    }

    /// Forgets all names, of what comes, too: addresses may have had other code.
    pub fn forget_names(&mut self) {
        self.names.close();
    }

    fn known(&self, address: u64) -> Option<&Known> {
        let (_, known) = self.code.range(..=address).next_back()?;
        known.code.range.contains(&address).then_some(known)
    }

    fn read(&mut self, memory: &mut impl Memory, address: u64) -> Result<Code, Unknown> {
        let holds = |heap: &&CodeHeap| heap.memory.contains(&address);
        if !self.heaps.iter().any(|heap| holds(&heap)) {
            // Heaps grow.
            let heaps = CodeHeap::all(&self.layout, memory);
            self.heaps = heaps.ok_or(Unknown::Unreadable)?;
        }
        let heap = self.heaps.iter().find(holds).ok_or(Unknown::NoCode)?;
        let blob = heap.blob(&self.layout, memory, address)?;
        let (code, origin) = Code::read(&self.layout, memory, &blob, &mut self.kinds)?;
        if !code.range.contains(&address) {
            return Err(Unknown::NoCode);
        }
        (self.names).learn(&self.layout, memory, &code.range, origin);
        Ok(code)
    }

    fn insert(&mut self, code: Code, now: u64) {
        self.forget(code.range.clone());
        let codes = self.code.len() + 1;
        if !self.code_charge.set(codes * entry::<u64, Known>()) {
            self.code.clear();
            self.code_charge.clear();
            return;
        }
        let start = code.range.start;
        let read_at = now;
        self.code.insert(start, Known { code, read_at });
    }

    /// Forgets the code in this range, which was replaced or removed.
    fn forget(&mut self, range: Range<u64>) {
        let before = self.code.range(..range.end);
        let overlapping = before
            .rev()
            .take_while(|(_, known)| known.code.range.end > range.start)
            .map(|(&start, _)| start);
        for start in overlapping.collect::<Vec<_>>() {
            self.code.remove(&start);
        }
    }
}
