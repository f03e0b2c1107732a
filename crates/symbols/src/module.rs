//! Naming the addresses of one file.

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use prof_model::FileOffset;
use rayon::prelude::*;

use crate::demangling::SharedNames;
use crate::dwarf::{Dwarf, DwarfContext, Sections, SplitFiles};
use crate::files::SymbolFiles;
use crate::go::GoTable;
use crate::image::Image;
use crate::options::{Demangle, SymbolOptions};
use crate::query::{Detail, Resolved, SymbolFrame};
use crate::status::ModuleStatus;
use crate::table::SymbolTable;
use crate::table::fde::UnwindTables;

/// So many addresses are looked up in one go by one thread: enough that units are hardly ever
/// parsed twice, few enough that all threads have work.
const CHUNK: usize = 256;
/// So many threads at most work on one file: each needs memory for what it knows of all units.
const AT_ONCE: usize = 8;

/// Names the given offsets of a file that was found.
pub(crate) fn resolve(
    files: &SymbolFiles,
    offsets: &[u64],
    options: &SymbolOptions,
    done: &(dyn Fn(usize) + Sync),
) -> Resolved {
    let to_elf = |image: &Image<'_>, offset| Some(image.address_of(FileOffset(offset))?.0);
    resolve_by(files, offsets, to_elf, options, done)
}

/// As [`resolve`], for addresses that `to_elf` turns into those of the file's tables.
pub(crate) fn resolve_by(
    files: &SymbolFiles,
    addresses: &[u64],
    to_elf: impl Fn(&Image<'_>, u64) -> Option<u64>,
    options: &SymbolOptions,
    done: &(dyn Fn(usize) + Sync),
) -> Resolved {
    let images = match files.images() {
        Ok(images) => images,
        Err(status) => return Resolved::unnamed(status, addresses.len()),
    };
    let asked = addresses;
    let addresses: Vec<Option<u64>> = asked
        .iter()
        .map(|&address| to_elf(&images.main, address))
        .collect();
    let mut sorted: Vec<u64> = addresses.iter().flatten().copied().collect();
    sorted.sort_unstable();
    let table = SymbolTable::of_images(images.with_symbols(), &sorted);
    let with_dwarf = images.with_dwarf().filter(|_| options.inlines);
    let sections = with_dwarf.map(Sections::read);
    let sup = with_dwarf.and(images.sup.as_ref()).map(Sections::read);
    let split = SplitFiles::new(files.path(), images.package.as_ref());
    let go = GoTable::of(&images.main).filter(|_| options.inlines);
    let lookup = |units| Lookup {
        table: &table,
        go: go.as_ref(),
        dwarf: sections
            .as_ref()
            .map(|sections| Dwarf::new(sections, sup.as_ref(), &split, units)),
    };
    let undone = AtomicUsize::new(addresses.len());
    let done = |count: usize| {
        let left = |undone: usize| Some(undone.saturating_sub(count));
        let (Ok(undone) | Err(undone)) = undone.fetch_update(Relaxed, Relaxed, left);
        done(count.min(undone));
    };
    let parts = lookup(Some(&sorted)).parts(&addresses, options.demangle, &done);
    // Units refer to each other where a linker optimized across them.
    let parts = parts.or_else(|OtherUnit| lookup(None).parts(&addresses, options.demangle, &done));
    let parts = parts.unwrap_or_default();
    let mut resolved = joined(parts, files.path_of_names());
    if sections.is_none() && go.is_none() {
        let places = asked.iter().zip(&addresses);
        let extents = places.map(|(&asked, &address)| {
            let address = address?;
            let Range { start, end } = table.extent(address)?;
            Some(asked.checked_sub(address - start)?..asked.checked_add(end - address)?)
        });
        resolved.extents = extents.collect();
    }
    if resolved.named() < resolved.len() {
        let tables = UnwindTables::of(&images.main);
        for (index, (&asked, &address)) in asked.iter().zip(&addresses).enumerate() {
            let unnamed = resolved.frames(index).is_empty();
            let start = address.filter(|_| unnamed).and_then(|address| {
                let start = tables.function_start(address)?;
                asked.checked_sub(address.checked_sub(start)?)
            });
            resolved.starts.extend(start.map(|start| (index, start)));
        }
    }
    resolved.detail = match &resolved.frames[..] {
        [] => Detail::Nothing,
        // Debug info that is damaged, or of other parts of the file, is none.
        frames if frames.iter().all(|frame| frame.file.is_none()) => Detail::Functions,
        _ => Detail::Inlines,
    };
    resolved.downloads = files.download_problem().or_else(|| split.problem());
    if sections.is_none() && !images.have_symbol_table() && resolved.named() < resolved.len() {
        resolved.status = files.stripped(&images);
    }
    resolved
}

/// Everything that names addresses of one file.
struct Lookup<'a> {
    table: &'a SymbolTable<'a>,
    go: Option<&'a GoTable<'a>>,
    dwarf: Option<Dwarf<'a>>,
}

/// The query needs units that were left out.
struct OtherUnit;

/// The frames of some consecutive addresses.
#[derive(Default)]
struct Part {
    frames: Vec<SymbolFrame>,
    /// How many of them each address has.
    counts: Vec<usize>,
}

impl Lookup<'_> {
    /// The frames of all addresses, some of them by each thread.
    fn parts(
        &self,
        addresses: &[Option<u64>],
        demangle: Demangle,
        done: &(dyn Fn(usize) + Sync),
    ) -> Result<Vec<Part>, OtherUnit> {
        addresses
            .par_chunks(addresses.len().div_ceil(AT_ONCE).max(CHUNK))
            .map(|chunk| {
                let part = self.part(chunk, SharedNames::new(demangle))?;
                done(chunk.len());
                Ok(part)
            })
            .collect()
    }

    fn part(&self, addresses: &[Option<u64>], mut names: SharedNames) -> Result<Part, OtherUnit> {
        let mut with = |context: Option<&DwarfContext<'_, '_>>| {
            let mut part = Part::default();
            for &address in addresses {
                let before = part.frames.len();
                if let Some(address) = address {
                    self.frames(address, context, &mut names, &mut part.frames)?;
                }
                part.counts.push(part.frames.len() - before);
            }
            Ok(part)
        };
        let part = (self.dwarf.as_ref())
            .and_then(|dwarf| dwarf.with_context(|context| with(Some(context))).ok());
        part.unwrap_or_else(|| with(None))
    }

    fn frames(
        &self,
        address: u64,
        context: Option<&DwarfContext<'_, '_>>,
        names: &mut SharedNames,
        frames: &mut Vec<SymbolFrame>,
    ) -> Result<(), OtherUnit> {
        let symbol = self.table.find(address).map(|symbol| symbol.name.as_ref());
        let start = frames.len();
        if let Some(context) = context {
            match context.frames(address, symbol, names, frames) {
                Ok(()) if frames.len() > start => return Ok(()),
                Ok(()) => {}
                Err(_) if !self.is_whole() => return Err(OtherUnit),
                // A damaged unit: what it said so far is not to be trusted.
                Err(_) => frames.truncate(start),
            }
        }
        let by_go = self.go.map(|go| go.frames(address)).unwrap_or_default();
        if !by_go.is_empty() {
            let text = String::from_utf8_lossy;
            frames.extend(by_go.into_iter().map(|frame| SymbolFrame {
                function: names.function(frame.function),
                file: frame.file.map(|file| names.file(&text(file))),
                line: frame.line,
                inlined: frame.inlined,
            }));
            return Ok(());
        }
        if let Some(name) = symbol {
            frames.push(SymbolFrame {
                function: names.function(name),
                file: None,
                line: None,
                inlined: false,
            });
        }
        Ok(())
    }

    fn is_whole(&self) -> bool {
        self.dwarf.as_ref().is_none_or(Dwarf::is_whole)
    }
}

fn joined(parts: Vec<Part>, file: &Path) -> Resolved {
    let mut resolved = Resolved::unnamed(ModuleStatus::Named, 0);
    resolved.file = Some(file.into());
    let mut end = 0_usize;
    for part in parts {
        resolved.frames.extend(part.frames);
        for count in part.counts {
            end += count;
            resolved.ends.push(u32::try_from(end).unwrap_or(u32::MAX));
        }
    }
    resolved
}
