//! Machine instructions with their weights.

use std::collections::BTreeMap;
use std::sync::Arc;

use prof_model::{FileOffset, Module, ModuleId, Pid};
use prof_symbols::{Code, CodeError, Query, Source, SymbolFrame, Symbolizer};
use rustc_hash::FxHashSet;

use super::Annotation;
use super::decode::{Syntax, decode};
use super::tally::Tally;
use super::target::Target;
use crate::filter::filtered_samples::FilteredSamples;
use crate::profile::{Frame, Weight};
use crate::symbolize::{JIT, KERNEL};

/// The instructions of one function of a file, or those of them that an inlined function or a
/// source file has its part in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeListing {
    /// The physical function.
    pub function: Arc<str>,
    /// The short name of the module it is in.
    pub module: Arc<str>,
    /// Samples in these instructions.
    pub own: Weight,
    /// Samples with any of these instructions on their stacks.
    pub total: Weight,
    /// The instructions by address, or why there are none.
    pub instructions: Result<Vec<Instruction>, NoCode>,
    /// Bytes at the function's end that were not disassembled, for it is too long.
    pub left_out: u64,
}

/// One instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Its address in the file's own tables, as in other disassemblers.
    pub address: u64,
    /// The instruction.
    pub text: String,
    /// Its source, innermost first: inlined functions, then the physical one.
    pub places: Vec<SymbolFrame>,
    /// Samples at this instruction.
    pub own: Weight,
    /// Samples at this instruction or in its callees.
    pub total: Weight,
}

/// Why there are no instructions.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoCode {
    /// The file or the kernel's memory can't be had.
    #[error(transparent)]
    File(#[from] CodeError),
    /// The code is for a machine that is not disassembled.
    #[error(
        "only code for x86 and 64-bit ARM is disassembled, and this is for another machine; try \
         objdump -d"
    )]
    OtherMachine,
    /// The place of the code is unknown.
    #[error("the recording does not say where its code is")]
    Unknown,
}

impl Annotation<'_> {
    /// The instructions of the annotated code, a listing for each physical function, the heaviest
    /// first.
    pub fn code(&self, symbolizer: &Symbolizer, syntax: Syntax) -> Vec<CodeListing> {
        let symbolized = self.symbolized();
        let functions = match &self.target {
            Target::Functions(ids) => ids.iter().map(|&id| &*symbolized[id].name).collect(),
            Target::Files(_) => FxHashSet::default(),
        };
        let disassembly = Disassembly {
            shown: &self.shown,
            target: &self.target,
            functions,
            symbolizer,
            syntax,
        };
        let mut parts = Vec::new();
        for (home, offsets) in disassembly.offsets() {
            parts.extend(disassembly.home(home, &offsets));
        }
        disassembly.weighed(parts)
    }
}

/// The data for finding and symbolizing instructions.
struct Disassembly<'a> {
    shown: &'a FilteredSamples<'a>,
    target: &'a Target,
    /// The names of the target's functions.
    functions: FxHashSet<&'a str>,
    symbolizer: &'a Symbolizer,
    syntax: Syntax,
}

/// A listing that still lacks weights.
struct Part {
    listing: CodeListing,
    /// The start and end of each instruction in its home.
    places: Vec<(Home, u64, u64)>,
}

/// The place of code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Home {
    /// A file; places in it are offsets.
    File(ModuleId),
    /// The kernel; places are absolute addresses.
    Kernel,
    /// Run-time code of a process; places are absolute addresses.
    Jit(Pid),
    /// Nothing that is known.
    Nowhere,
}

impl Home {
    fn of(frame: Frame) -> (Self, FileOffset) {
        match frame {
            Frame::Module { module, offset } => (Self::File(module), offset),
            Frame::Kernel(address) => (Self::Kernel, FileOffset(address)),
            Frame::Jit { pid, address } => (Self::Jit(pid), FileOffset(address)),
            _ => (Self::Nowhere, FileOffset(0)),
        }
    }
}

impl Disassembly<'_> {
    /// The addresses of the target.
    fn offsets(&self) -> BTreeMap<Home, Vec<(FileOffset, Arc<str>)>> {
        let symbolized = self.shown.symbolized();
        let mut offsets: BTreeMap<Home, Vec<_>> = BTreeMap::new();
        for (id, frame) in symbolized.profile().frames.iter() {
            let locations = self.shown.locations(id);
            let is_wanted = locations.iter().any(|l| self.target.key(l).is_some());
            let Some(physical) = locations.last().filter(|_| is_wanted) else {
                continue;
            };
            let name = Arc::clone(&symbolized[physical.function].name);
            let (home, offset) = Home::of(frame);
            offsets.entry(home).or_default().push((offset, name));
        }
        offsets
    }

    /// The listings for one home.
    fn home(&self, home: Home, places: &[(FileOffset, Arc<str>)]) -> Vec<Part> {
        let offsets = places.iter().map(|(offset, _)| *offset);
        let codes = match home {
            Home::File(id) => self
                .symbolizer
                .code(self.module(id), &offsets.collect::<Vec<_>>()),
            Home::Kernel => {
                let addresses: Vec<u64> = offsets.map(|offset| offset.0).collect();
                self.symbolizer.kernel_code(&addresses)
            }
            Home::Jit(pid) => {
                let addresses: Vec<u64> = offsets.map(|offset| offset.0).collect();
                self.symbolizer.jit_code(pid, &addresses)
            }
            Home::Nowhere => return without_code(places, "", &NoCode::Unknown),
        };
        match codes {
            Ok(codes) => codes.iter().map(|code| self.part(home, code)).collect(),
            Err(error) => without_code(places, &self.name(home), &error.into()),
        }
    }

    fn module(&self, id: ModuleId) -> &Module {
        &self.shown.symbolized().profile().modules[id]
    }

    fn name(&self, home: Home) -> String {
        match home {
            Home::File(id) => self.module(id).short_name(),
            Home::Kernel => KERNEL.into(),
            Home::Jit(_) => JIT.into(),
            Home::Nowhere => String::new(),
        }
    }

    /// The instructions of one physical function that are the target's.
    fn part(&self, home: Home, code: &Code) -> Part {
        let decoded = decode(code, self.syntax);
        let known = decoded.is_some();
        let instructions = decoded.unwrap_or_default();
        let offsets: Vec<u64> = instructions.iter().map(|i| i.offset).collect();
        let query = Query {
            source: match home {
                Home::File(id) => Source::File(self.module(id)),
                Home::Jit(pid) => Source::Jit { pid },
                Home::Kernel | Home::Nowhere => Source::Kernel,
            },
            addresses: &offsets,
        };
        let answers = self.symbolizer.resolve(&[query]);
        let mut part = Part {
            listing: CodeListing {
                function: Arc::from(format!("{:#x}", code.address.0)),
                module: Arc::from(self.name(home)),
                own: Weight::default(),
                total: Weight::default(),
                instructions: Err(NoCode::OtherMachine),
                left_out: code.left_out,
            },
            places: Vec::new(),
        };
        if known {
            let mut listed = Vec::new();
            for (index, decoded) in instructions.into_iter().enumerate() {
                let frames = answers.first().map(|answer| answer.frames(index));
                let frames = frames.unwrap_or_default();
                if let Some(physical) = frames.last() {
                    part.listing.function = Arc::clone(&physical.function);
                }
                // Archived symbols cover sampled addresses only; all others are unknown.
                let is_unknown = frames.is_empty();
                if is_unknown || frames.iter().any(|frame| self.is_wanted(frame)) {
                    part.places.push((home, decoded.offset, decoded.end));
                    listed.push(Instruction {
                        address: decoded.address,
                        text: decoded.text,
                        places: frames.to_vec(),
                        own: Weight::default(),
                        total: Weight::default(),
                    });
                }
            }
            part.listing.instructions = Ok(listed);
        }
        part
    }

    fn is_wanted(&self, place: &SymbolFrame) -> bool {
        match self.target {
            Target::Functions(_) => self.functions.contains(&*place.function),
            Target::Files(files) => place.file.as_ref().is_some_and(|f| files.contains(f)),
        }
    }

    /// The listings with their weights, the heaviest first.
    fn weighed(&self, parts: Vec<Part>) -> Vec<CodeListing> {
        let places = parts.iter().enumerate().flat_map(|(part, listing)| {
            let places = listing.places.iter();
            places.map(move |&(home, start, end)| (home, start, end, part))
        });
        let places: Vec<(Home, u64, u64, usize)> = places.collect();
        let spots = self.spots(&places);
        let mut instructions = Tally::new(places.len());
        let mut wholes = Tally::new(parts.len());
        for (stack, weight) in self.shown.weighted_stacks() {
            instructions.start(weight);
            wholes.start(weight);
            for (depth, frame) in self.shown.frames(stack).enumerate() {
                if let Some(number) = spots[frame.index()] {
                    instructions.add(number, depth == 0);
                    wholes.add(places[number].3, depth == 0);
                }
            }
        }
        let mut number = 0;
        let mut listings: Vec<CodeListing> = Vec::with_capacity(parts.len());
        for (index, mut part) in parts.into_iter().enumerate() {
            part.listing.own = wholes.own[index];
            part.listing.total = wholes.total[index];
            for instruction in part.listing.instructions.iter_mut().flatten() {
                instruction.own = instructions.own[number];
                instruction.total = instructions.total[number];
                number += 1;
            }
            listings.push(part.listing);
        }
        listings.sort_by_key(|listing| std::cmp::Reverse((listing.total, listing.own)));
        listings
    }

    /// By frame: the number of the place that it is in.
    fn spots(&self, places: &[(Home, u64, u64, usize)]) -> Vec<Option<usize>> {
        let mut by_start: Vec<usize> = (0..places.len()).collect();
        by_start.sort_unstable_by_key(|&number| places[number]);
        let find = |(home, FileOffset(offset)): (Home, FileOffset)| {
            let starts_before = |&number: &usize| {
                let (of, start, ..) = places[number];
                (of, start) <= (home, offset)
            };
            let after = by_start.partition_point(starts_before);
            let number = by_start[after.checked_sub(1)?];
            let (of, _, end, _) = places[number];
            (of == home && offset < end).then_some(number)
        };
        let frames = self.shown.symbolized().profile().frames.iter();
        frames.map(|(_, frame)| find(Home::of(frame))).collect()
    }
}

/// A listing for each function that there is no code of.
fn without_code(places: &[(FileOffset, Arc<str>)], module: &str, why: &NoCode) -> Vec<Part> {
    let mut names: Vec<&Arc<str>> = places.iter().map(|(_, name)| name).collect();
    names.sort_unstable();
    names.dedup();
    let part = |name: &Arc<str>| Part {
        listing: CodeListing {
            function: Arc::clone(name),
            module: Arc::from(module),
            own: Weight::default(),
            total: Weight::default(),
            instructions: Err(why.clone()),
            left_out: 0,
        },
        places: Vec::new(),
    };
    names.into_iter().map(part).collect()
}
