//! Source lines and machine instructions with their weights.

mod code;
mod decode;
mod tally;
mod target;

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::error::Error;
use crate::filter::Filter;
use crate::filter::filtered_samples::FilteredSamples;
use crate::profile::{Event, FrameId, Weight};
use crate::source::Sources;
use crate::symbolize::{FunctionId, Location, SymbolizedProfile};

pub use code::{CodeListing, Instruction, NoCode};
pub use decode::Syntax;
use tally::Tally;
use target::Target;

/// The source lines of functions, or of source files, with their weights.
pub struct Annotation<'p> {
    shown: FilteredSamples<'p>,
    target: Target,
    /// The weight of everything that the filter lets through.
    pub total: Weight,
    /// A listing for each function and file, the heaviest first.
    pub listings: Vec<Listing>,
}

/// Lines of one source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// Their function; `None` if all of the file's lines are listed.
    pub function: Option<FunctionId>,
    /// The file, by the compiler's path; `None` if unknown.
    pub file: Option<Arc<str>>,
    /// Samples in these lines.
    pub own: Weight,
    /// Samples with any of these lines on their stacks.
    pub total: Weight,
    /// Lines with samples, by number.
    pub lines: Vec<SourceLine>,
}

/// A source line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// Its number, from 1; `None` for code without a known line.
    pub number: Option<u32>,
    /// Samples in code of this line, without functions inlined there.
    pub own: Weight,
    /// Samples with this line anywhere on their stacks, each once: in the line or its callees.
    pub total: Weight,
}

/// What to annotate.
#[derive(Clone, Copy, Debug)]
pub enum Wanted<'a> {
    /// A function by its name; a source file by its path or the end of that; or functions by a
    /// regular expression.
    Named(&'a str),
    /// The function with the most self weight; if its source is not there, the function whose
    /// source is and that led to the most such code.
    Hottest(&'a Sources),
}

impl<'p> Annotation<'p> {
    /// The lines of what is `wanted`, with the samples that pass `filter`.
    ///
    /// A line of an inlined function belongs to that function and its file; the line of the call
    /// has the weight in its total.
    ///
    /// # Errors
    /// [`Error::NoSuchFunction`], [`Error::InvalidPattern`], [`Error::NoSamples`],
    /// [`Error::NoSuchEvent`].
    pub fn new(
        symbolized: &'p SymbolizedProfile,
        filter: &Filter,
        wanted: Wanted<'_>,
    ) -> Result<Self, Error> {
        let shown = FilteredSamples::new(symbolized, filter)?;
        let target = match wanted {
            Wanted::Named(given) => Target::find(&shown, given)?,
            Wanted::Hottest(sources) => Target::hottest(&shown, sources),
        };
        let Weighed { total, listings } = weigh(&shown, &target);
        Ok(Self {
            shown,
            target,
            total,
            listings,
        })
    }

    /// The profile that it is of.
    pub fn symbolized(&self) -> &'p SymbolizedProfile {
        self.shown.symbolized()
    }

    /// The event whose samples these are.
    pub fn event(&self) -> &'p Event {
        self.shown.event()
    }
}

/// The key of a listing: a function's lines in one file, or a file's.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    function: Option<FunctionId>,
    file: Option<Arc<str>>,
}

/// The key of a line.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct LineKey {
    /// The position of its listing.
    listing: usize,
    number: Option<u32>,
}

/// What samples say of a target.
struct Weighed {
    /// The weight of everything.
    total: Weight,
    listings: Vec<Listing>,
}

fn weigh(shown: &FilteredSamples<'_>, target: &Target) -> Weighed {
    let spots = Spots::new(shown, target);
    let mut lines = Tally::new(spots.lines.len());
    let mut wholes = Tally::new(spots.keys.len());
    let mut total = Weight::default();
    for (stack, weight) in shown.weighted_stacks() {
        total += weight;
        lines.start(weight);
        wholes.start(weight);
        for (depth, frame) in shown.frames(stack).enumerate() {
            for spot in &spots.by_frame[frame.index()] {
                let is_own = depth == 0 && spot.innermost;
                lines.add(spot.line, is_own);
                wholes.add(spot.listing, is_own);
            }
        }
    }
    let mut listings: Vec<Listing> = spots
        .keys
        .into_iter()
        .enumerate()
        .map(|(index, key)| Listing {
            function: key.function,
            file: key.file,
            own: wholes.own[index],
            total: wholes.total[index],
            lines: Vec::new(),
        })
        .collect();
    for (key, &index) in &spots.lines {
        listings[key.listing].lines.push(SourceLine {
            number: key.number,
            own: lines.own[index],
            total: lines.total[index],
        });
    }
    listings.retain_mut(|listing| {
        listing.lines.retain(|line| line.total.samples > 0);
        !listing.lines.is_empty()
    });
    // Stable: listings of equal weight keep their order.
    listings.sort_by_key(|listing| std::cmp::Reverse((listing.total, listing.own)));
    Weighed { total, listings }
}

/// The frames of the target's lines.
struct Spots {
    keys: Vec<Key>,
    /// The positions of the lines of all listings.
    lines: BTreeMap<LineKey, usize>,
    by_frame: Vec<Vec<Spot>>,
}

/// A line of the target in a frame.
struct Spot {
    listing: usize,
    line: usize,
    /// Whether it is the innermost location of its frame.
    innermost: bool,
}

impl Spots {
    fn new(shown: &FilteredSamples<'_>, target: &Target) -> Self {
        let mut spots = Self {
            keys: Vec::new(),
            lines: BTreeMap::new(),
            by_frame: Vec::new(),
        };
        let mut ids: FxHashMap<Key, usize> = FxHashMap::default();
        for (frame, _) in shown.symbolized().profile().frames.iter() {
            let found = spots.of_frame(shown, target, frame, &mut ids);
            spots.by_frame.push(found);
        }
        spots
    }

    fn of_frame(
        &mut self,
        shown: &FilteredSamples<'_>,
        target: &Target,
        frame: FrameId,
        ids: &mut FxHashMap<Key, usize>,
    ) -> Vec<Spot> {
        let spot = |(depth, location): (usize, &&Location)| {
            let key = target.key(location)?;
            let keys = &mut self.keys;
            let listing = *ids.entry(key.clone()).or_insert_with(|| {
                keys.push(key);
                keys.len() - 1
            });
            let key = LineKey {
                listing,
                number: location.line,
            };
            let next = self.lines.len();
            let line = *self.lines.entry(key).or_insert(next);
            Some(Spot {
                listing,
                line,
                innermost: depth == 0,
            })
        };
        let locations = shown.locations(frame).iter();
        locations.enumerate().filter_map(spot).collect()
    }
}
