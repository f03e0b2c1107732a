//! Lines and inlined functions, from DWARF.

mod split;
mod units;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use addr2line::{Context, LookupContinuation, LookupResult};
use gimli::{
    AbbreviationsCacheStrategy, AttributeValue, DwarfSections, EndianSlice, RunTimeEndian,
    SectionId, UnitOffset,
};
use object::Object;
use rayon::prelude::*;

use crate::demangling::SharedNames;
use crate::image::Image;
use crate::query::SymbolFrame;

pub(crate) use split::SplitFiles;
use split::SplitUnits;

type Reader<'a> = EndianSlice<'a, RunTimeEndian>;

/// The sections that functions and lines need.
const NEEDED: [SectionId; 10] = [
    SectionId::DebugAbbrev,
    SectionId::DebugAddr,
    SectionId::DebugAranges,
    SectionId::DebugInfo,
    SectionId::DebugLine,
    SectionId::DebugLineStr,
    SectionId::DebugRanges,
    SectionId::DebugRngLists,
    SectionId::DebugStr,
    SectionId::DebugStrOffsets,
];

/// The DWARF sections of one file, decompressed.
pub(crate) struct Sections<'data> {
    sections: DwarfSections<Cow<'data, [u8]>>,
    endian: RunTimeEndian,
}

impl<'data> Sections<'data> {
    /// Reads the sections that functions and lines need, at once: they may be compressed.
    pub(crate) fn read(image: &Image<'data>) -> Self {
        let section = |&id: &SectionId| (id, image.section(id.name()));
        let mut contents: HashMap<_, _> = NEEDED.par_iter().map(section).collect();
        let load = |id| Ok::<_, gimli::Error>(contents.remove(&id).unwrap_or_default());
        Self {
            // The loader has no error to give.
            sections: DwarfSections::load(load).unwrap_or_default(),
            endian: endian(image),
        }
    }

    /// Reads those of a `.dwo` file, into memory of our own.
    fn read_split(image: &Image<'_>) -> Sections<'static> {
        let load = |id: SectionId| {
            let section = id.dwo_name().map(|name| image.section(name));
            Ok::<_, gimli::Error>(Cow::Owned(section.unwrap_or_default().into_owned()))
        };
        Sections {
            sections: DwarfSections::load(load).unwrap_or_default(),
            endian: endian(image),
        }
    }

    fn dwarf(&self) -> gimli::Dwarf<Reader<'_>> {
        self.sections
            .borrow(|section| EndianSlice::new(section, self.endian))
    }
}

fn endian(image: &Image<'_>) -> RunTimeEndian {
    if image.object().is_little_endian() {
        RunTimeEndian::Little
    } else {
        RunTimeEndian::Big
    }
}

/// DWARF lookups of addresses, for many threads.
///
/// `addr2line` parses a unit when its first address is requested and keeps it, but not across
/// threads: so each thread takes a context of its own from the pool.
pub(crate) struct Dwarf<'a> {
    sections: Arc<gimli::Dwarf<Reader<'a>>>,
    contexts: Mutex<Vec<Context<Reader<'a>>>>,
    split_files: &'a SplitFiles<'a>,
    split_units: SplitUnits<'a>,
    is_whole: bool,
}

impl<'a> Dwarf<'a> {
    /// Over these sections and, if there is one, the supplementary file they refer to.
    ///
    /// With `addresses`, which are sorted, only units that may hold one of these are parsed, and
    /// what refers to others is an error; without, all are.
    pub(crate) fn new(
        sections: &'a Sections<'_>,
        sup: Option<&'a Sections<'_>>,
        split_files: &'a SplitFiles<'a>,
        addresses: Option<&[u64]>,
    ) -> Self {
        let mut dwarf = sections.dwarf();
        let selected = addresses.map(|addresses| units::select(&mut dwarf, addresses));
        // Each thread's context parses all units' roots: share the most costly part of that.
        if !matches!(selected, Some(Ok(_))) {
            dwarf.populate_abbreviations_cache(AbbreviationsCacheStrategy::All);
        }
        if let Some(sup) = sup {
            let mut sup = sup.dwarf();
            sup.populate_abbreviations_cache(AbbreviationsCacheStrategy::All);
            dwarf.set_sup(sup);
        }
        Self {
            sections: Arc::new(dwarf),
            contexts: Mutex::default(),
            split_files,
            split_units: SplitUnits::default(),
            is_whole: !matches!(selected, Some(Ok(true))),
        }
    }

    /// Whether no units were left out.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Calls `work` with a context that no other thread uses meanwhile.
    ///
    /// # Errors
    /// When the units' headers can't be read.
    pub(crate) fn with_context<T>(
        &self,
        work: impl FnOnce(&DwarfContext<'_, 'a>) -> T,
    ) -> Result<T, gimli::Error> {
        let pooled = self.pool().pop();
        let context = match pooled {
            Some(context) => context,
            None => Context::from_arc_dwarf(Arc::clone(&self.sections))?,
        };
        let context = DwarfContext {
            context,
            dwarf: self,
        };
        let result = work(&context);
        self.pool().push(context.context);
        Ok(result)
    }

    fn pool(&self) -> std::sync::MutexGuard<'_, Vec<Context<Reader<'a>>>> {
        self.contexts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One thread's view of [`Dwarf`].
pub(crate) struct DwarfContext<'d, 'a> {
    context: Context<Reader<'a>>,
    dwarf: &'d Dwarf<'a>,
}

impl DwarfContext<'_, '_> {
    /// Appends the frames at `address`, innermost first. `symbol` is the symbol table's name
    /// for the physical function. Appends nothing if DWARF doesn't know the address.
    ///
    /// # Errors
    /// When the unit that holds the address is damaged.
    pub(crate) fn frames(
        &self,
        address: u64,
        symbol: Option<&[u8]>,
        names: &mut SharedNames,
        frames: &mut Vec<SymbolFrame>,
    ) -> Result<(), gimli::Error> {
        // addr2line looks up to the next address; this one is in no code.
        if address == u64::MAX {
            return Ok(());
        }
        let mut found = self.context.find_frames(address);
        let mut chain = loop {
            match found {
                LookupResult::Output(result) => break result?,
                LookupResult::Load { load, continuation } => {
                    let files = self.dwarf.split_files;
                    found = continuation.resume(self.dwarf.split_units.find(&load, files));
                }
            }
        };
        let mut next = chain.next()?;
        while let Some(frame) = next {
            next = chain.next()?;
            let inlined = next.is_some();
            let dwarf = frame.function.as_ref().map(|name| name.name.slice());
            let name = if inlined {
                dwarf
            } else {
                physical(dwarf, symbol)
            };
            let Some(name) = name else { continue };
            let own = || self.own_name(address, frame.dw_die_offset?);
            let location = frame.location.as_ref();
            let file = location.and_then(|location| location.file);
            frames.push(SymbolFrame {
                function: names.function_of_kind(name, own),
                file: file.map(|file| names.file(file)),
                line: location
                    .and_then(|place| place.line)
                    .filter(|&line| line != 0),
                inlined,
            });
        }
        Ok(())
    }
}

impl<'a> DwarfContext<'_, 'a> {
    /// The name that the debug info itself gives to a function at `address`: unlike the linker's,
    /// it distinguishes an async function from a closure.
    fn own_name(&self, address: u64, offset: UnitOffset) -> Option<Reader<'a>> {
        // All it needs was loaded when the frames were looked up.
        let unit = self.context.find_dwarf_and_unit(address).skip_all_loads()?;
        let mut offset = offset;
        // A function refers to what it is a copy of; more steps than two are not seen.
        for _ in 0..4 {
            let entry = unit.entry(offset).ok()?;
            if let Some(name) = entry.attr_value(gimli::DW_AT_name) {
                return unit.attr_string(name).ok();
            }
            let origin = entry
                .attr_value(gimli::DW_AT_abstract_origin)
                .or_else(|| entry.attr_value(gimli::DW_AT_specification));
            match origin {
                Some(AttributeValue::UnitRef(origin)) => offset = origin,
                _ => return None,
            }
        }
        None
    }
}

/// Which name a physical function goes by.
///
/// DWARF's where that is the linker's name. It is not for C, where the symbol table knows the
/// public one of several aliases (`malloc`, not `__GI___libc_malloc`), nor for C++ functions of
/// internal linkage, where it lacks namespace and parameters.
fn physical<'a>(dwarf: Option<&'a [u8]>, symbol: Option<&'a [u8]>) -> Option<&'a [u8]> {
    match dwarf {
        Some(name) if is_mangled(name) => Some(name),
        _ => symbol.or(dwarf),
    }
}

fn is_mangled(name: &[u8]) -> bool {
    name.starts_with(b"_Z") || name.starts_with(b"_R")
}
