//! Whether a call leads to the function below it.
//!
//! Bytes of two moments may seem to join: the data of a function that has returned stays on the
//! stack until it is overwritten. The frames of such a stack are real, each at another time, and
//! one of them is not the caller of the next:
//!
//! ```text
//!   at the sample            when the rest was read         walked
//!     main                     main                           main
//!       descend                  cpu_now                        cpu_now
//!         descend                  clock_gettime                  clock_gettime  no call
//!           descend                (left as it was)                 descend
//! ```
//! So each call edge beyond the dump must be possible: the call before the return address leads to
//! the supposed callee. If the code does not show that (a call through a register), the edge is
//! accepted.

use prof_model::StackEnd;

use crate::arch::Called;
use crate::frame::Frame;
use crate::module::code_mapping::{CodeAddress, CodeMapping};
use crate::step::Step;

/// The code's verdict on a call edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edge {
    /// The call leads to the function.
    Proven,
    /// It may lead anywhere: through a pointer, or to code without unwind tables, which define the
    /// bounds of functions.
    Open,
    /// It leads elsewhere.
    Disproved,
}

/// Whether a caller that was read at another time than the dump can have called the function of the
/// step's frame, whose code is in `place`.
pub(crate) fn check_call(
    step: &mut Step<'_, '_>,
    place: &CodeMapping,
    caller_place: &CodeMapping,
    caller: &Frame,
) -> Result<(), StackEnd> {
    let target = caller.program_counter();
    let callee = place.code_address(step.frame.lookup_address());
    let from = caller_place.code_address(target.wrapping_sub(1));
    let edges = &mut step.code.known.edges;
    edges.want();
    if edges.contain(callee, from) {
        return Ok(());
    }
    let function = step.code.function(callee).map(|range| CodeAddress {
        address: range.start,
        ..callee
    });
    if edge(step, function, caller_place, target) == Edge::Disproved {
        return Err(StackEnd::Stale);
    }
    step.code.known.edges.add(callee, from);
    Ok(())
}

/// Where the function begins that the caller has called directly.
pub(crate) fn called_function(step: &mut Step<'_, '_>, caller: &Frame) -> Option<u64> {
    let target = caller.program_counter();
    let place = step.code.locate(target.wrapping_sub(1))?;
    let Called::Function(address) = called(step, &place, target)? else {
        return None;
    };
    let module = place.module;
    let function = step.code.function(CodeAddress { module, address })?;
    (function.start == address).then(|| place.address(address))
}

/// Whether the call before `target` can lead to `function`.
fn edge(
    step: &mut Step<'_, '_>,
    function: Option<CodeAddress>,
    place: &CodeMapping,
    target: u64,
) -> Edge {
    let (Some(function), Some(called)) = (function, called(step, place, target)) else {
        return Edge::Open;
    };
    let mut reach = Reach::of(function);
    match called {
        Called::Anything => return Edge::Open,
        Called::Function(address) => reach.add(*place, address),
        Called::PerhapsFunction(address) => {
            reach.is_open = true;
            reach.add(*place, address);
        }
        Called::Pointer(at) => {
            // It may have called another function since.
            reach.is_open = true;
            add_pointer(step, &mut reach, place, at);
        }
    }
    follow(step, reach)
}

/// The target of the call before `target`; `None` if there is no call.
fn called(step: &mut Step<'_, '_>, place: &CodeMapping, target: u64) -> Option<Called> {
    let mut bytes = [0; 8];
    let (before, _) = step.code.around(place, target, 8, &mut bytes)?;
    let architecture = step.code.architecture();
    architecture.called(before, place.elf_address(target))
}

/// Follows tail calls from a call's target, and the jumps between the parts of a function.
fn follow(step: &mut Step<'_, '_>, mut reach: Reach) -> Edge {
    let mut next = 0;
    while let Some(&Some((place, address))) = reach.places.get(next) {
        next += 1;
        let at = CodeAddress {
            module: place.module,
            address,
        };
        let found = step.code.function(at);
        if place.module == reach.function.module
            && (found.as_ref()).is_some_and(|range| range.start == reach.function.address)
        {
            return Edge::Proven;
        }
        let architecture = step.code.architecture();
        let mut code = step.code.reader(place.module);
        if let Some(at) = architecture.jumps_through(&mut code, address) {
            drop(code);
            add_pointer(step, &mut reach, &place, at);
            continue;
        }
        let is_closed = found.is_some_and(|range| {
            architecture.jumps_out(&mut code, range, &mut |to| reach.add(place, to))
        });
        reach.is_open |= !is_closed;
    }
    match reach.is_open {
        true => Edge::Open,
        false => Edge::Disproved,
    }
}

/// Adds the current value of the pointer at an address of the place's module.
fn add_pointer(step: &mut Step<'_, '_>, reach: &mut Reach, place: &CodeMapping, at: u64) {
    let pointer = step.stack.read_pointer(place.address(at));
    let to = pointer.and_then(|to| Some((step.code.locate(to)?, to)));
    match to {
        Some((to, address)) => {
            // A procedure linkage table may not have resolved its function yet.
            reach.is_open |= to.module == place.module;
            reach.add(to, to.elf_address(address));
        }
        None => reach.is_open = true,
    }
}

/// The functions that a call may reach by jumps.
struct Reach {
    function: CodeAddress,
    places: [Option<(CodeMapping, u64)>; Self::PLACES],
    count: usize,
    /// Whether it may also reach others.
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
