//! Whether a call leads to the function below it.
//!
//! Bytes of two moments may seem to join: what a returned function leaves behind stays as it was until
//! something else is written there. The frames of such a stack are real, each at another time, and one
//! of them is not the caller of the next:
//!
//! ```text
//!   at the sample            when the rest was read         walked
//!     main                     main                           main
//!       descend                  cpu_now                        cpu_now
//!         descend                  clock_gettime                  clock_gettime    no call of descend
//!           descend                (left as it was)                 descend
//! ```
//! So each call edge beyond the copy must be possible: the call in front of the return address leads to the
//! function that is said to have been called. Where the code does not tell (a call through a register),
//! the edge is believed.

use std::ops::Range;

use prof_model::StackEnd;

use crate::arch::Called;
use crate::cache::code_facts::CodeAddress;
use crate::module::code_mapping::CodeMapping;
use crate::walk::{Caller, Walk};

/// What the code says about a call edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edge {
    /// The call leads to the function.
    Proven,
    /// It may lead anywhere: through a pointer, or to code without unwind tables, which bound functions.
    Open,
    /// It leads elsewhere.
    Disproved,
}

/// The call edges that are known to be possible: an address in the called function, and the return address
/// minus 1.
#[derive(Debug)]
pub(crate) struct KnownEdges {
    /// Fingerprints, direct-mapped.
    edges: Vec<u64>,
    /// Whether any stack has gone on beyond its copy: until then, nothing is noted.
    pub(crate) wanted: bool,
}

impl KnownEdges {
    /// As many as there are cached rules.
    const EDGES: usize = 1 << 15;

    pub(crate) fn new() -> Self {
        Self {
            edges: Vec::new(),
            wanted: false,
        }
    }

    #[inline]
    pub(crate) fn contain(&self, callee: CodeAddress, caller: CodeAddress) -> bool {
        let edge = fingerprint(callee, caller);
        self.edges.get(slot(edge)) == Some(&edge)
    }

    fn want(&mut self) {
        if !self.wanted {
            self.wanted = true;
            self.edges.resize(Self::EDGES, 0);
        }
    }

    fn add(&mut self, callee: CodeAddress, caller: CodeAddress) {
        let edge = fingerprint(callee, caller);
        if let Some(known) = self.edges.get_mut(slot(edge)) {
            *known = edge;
        }
    }
}

/// A number for an edge, never 0.
#[inline]
fn fingerprint(callee: CodeAddress, caller: CodeAddress) -> u64 {
    const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
    let number = |(module, address): CodeAddress| address ^ (module.index() as u64) << 44;
    let mixed = number(callee).wrapping_mul(MIX).rotate_left(32) ^ number(caller);
    mixed.wrapping_mul(MIX).max(1)
}

#[inline]
fn slot(fingerprint: u64) -> usize {
    (fingerprint >> 40) as usize % KnownEdges::EDGES
}

impl Walk<'_> {
    /// Notes that the current frame called the one before, which the copy alone has shown.
    pub(crate) fn note_call_of(&mut self, callee: CodeAddress, place: &CodeMapping) {
        let caller = (place.module, place.elf_address(self.lookup_address()));
        self.unwinder.edges.add(callee, caller);
    }

    /// Whether a caller that was read at another time than the copy can have called the current
    /// frame's function.
    pub(crate) fn check_call(
        &mut self,
        place: &CodeMapping,
        caller_place: &CodeMapping,
        caller: &Caller,
    ) -> Result<(), StackEnd> {
        let layout = self.unwinder.layout;
        let target = caller.registers.get(layout.program_counter).unwrap_or(0);
        let callee = (place.module, place.elf_address(self.lookup_address()));
        let from = caller_place.elf_address(target.wrapping_sub(1));
        let from = (caller_place.module, from);
        self.unwinder.edges.want();
        if self.unwinder.edges.contain(callee, from) {
            return Ok(());
        }
        let function = self.function_at(callee).map(|(function, _)| function);
        if self.edge(function, caller_place, target) == Edge::Disproved {
            return Err(StackEnd::Stale);
        }
        self.unwinder.edges.add(callee, from);
        Ok(())
    }

    /// Whether the call in front of `target` can lead to `function`.
    fn edge(&mut self, function: Option<CodeAddress>, place: &CodeMapping, target: u64) -> Edge {
        let Some(function) = function else {
            return Edge::Open;
        };
        let reach = match self.called(place, target) {
            None => return Edge::Open,
            Some(Called::Anything) => return Edge::Open,
            Some(Called::Function(address)) => {
                let mut reach = Reach::of(function);
                reach.add(*place, address);
                reach
            }
            Some(Called::PerhapsFunction(address)) => {
                let mut reach = Reach::of(function);
                reach.is_open = true;
                reach.add(*place, address);
                reach
            }
            Some(Called::Pointer(at)) => {
                let mut reach = Reach::of(function);
                // Another function may have been called by it since.
                reach.is_open = true;
                self.add_pointer(&mut reach, place, at);
                reach
            }
        };
        self.follow(reach)
    }

    /// What the call in front of `target` calls; `None` if there is none.
    fn called(&mut self, place: &CodeMapping, target: u64) -> Option<Called> {
        let mut bytes = [0; 8];
        let (before, _) = self.code_around(place, target, 8, &mut bytes)?;
        let architecture = self.unwinder.layout.architecture;
        architecture.called(before, place.elf_address(target))
    }

    /// Follows tail calls from where a call leads, and the jumps between the parts of a function.
    fn follow(&mut self, mut reach: Reach) -> Edge {
        let mut next = 0;
        while let Some(&Some((place, address))) = reach.places.get(next) {
            next += 1;
            let found = self.function_at((place.module, address));
            if found.as_ref().map(|(start, _)| *start) == Some(reach.function) {
                return Edge::Proven;
            }
            let module = place.module;
            let architecture = self.unwinder.layout.architecture;
            let modules = &mut self.unwinder.modules;
            let mut code = |at, buffer: &mut [u8]| modules.read_code(module, at, buffer);
            if let Some(at) = architecture.jumps_through(&mut code, address) {
                self.add_pointer(&mut reach, &place, at);
                continue;
            }
            let is_closed = found.is_some_and(|(_, range)| {
                architecture.jumps_out(&mut code, range, &mut |to| reach.add(place, to))
            });
            reach.is_open |= !is_closed;
        }
        match reach.is_open {
            true => Edge::Open,
            false => Edge::Disproved,
        }
    }

    /// Adds where the pointer at an address of the place's module leads now.
    fn add_pointer(&mut self, reach: &mut Reach, place: &CodeMapping, at: u64) {
        let pointer = self.stack.read_pointer(place.address(at));
        let to = pointer.and_then(|to| Some((self.locate(to)?, to)));
        match to {
            Some((to, address)) => {
                // A procedure linkage table may not have looked its function up yet.
                reach.is_open |= to.module == place.module;
                reach.add(to, to.elf_address(address));
            }
            None => reach.is_open = true,
        }
    }

    /// The bounds of the function at an address; first where it begins.
    fn function_at(&mut self, (module, address): CodeAddress) -> Option<(CodeAddress, Range<u64>)> {
        let tables = self.unwinder.modules.get(module)?;
        let sections = [tables.eh_frame.as_ref(), tables.read_debug_frame()];
        let range = (sections.into_iter().flatten()).find_map(|cfi| cfi.function(address))?;
        Some(((module, range.start), range))
    }
}

/// Where a call may lead to by jumps.
struct Reach {
    function: CodeAddress,
    places: [Option<(CodeMapping, u64)>; Self::PLACES],
    count: usize,
    /// Whether it may also lead elsewhere.
    is_open: bool,
}

impl Reach {
    const PLACES: usize = 8;

    fn of(function: CodeAddress) -> Self {
        Self {
            function,
            places: [None; Self::PLACES],
            count: 0,
            is_open: false,
        }
    }

    fn add(&mut self, place: CodeMapping, address: u64) {
        let known = (self.places.iter().flatten())
            .any(|(known, at)| known.module == place.module && *at == address);
        if known {
            return;
        }
        match self.places.get_mut(self.count) {
            Some(slot) => {
                *slot = Some((place, address));
                self.count += 1;
            }
            None => self.is_open = true,
        }
    }
}
