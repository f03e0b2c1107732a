//! Precompiled methods of .NET: ReadyToRun code, in the `.dll` files of libraries.
//!
//! ```text
//!  PE file ── CLI header ──┬── metadata: names of types and methods           metadata.rs
//!                          └── "RTR": the places of
//!                               ├ runtime functions: addresses of code
//!                               ├ entry points of methods, by token           entry_points.rs
//!                               └ entry points of generic instances, with
//!                                 the signature of each                       signature.rs
//! ```
//! A method is a runtime function, and those after it up to the next method: its handlers of
//! exceptions. Source: dotnet/runtime, docs/design/coreclr/botr/readytorun-format.md; ECMA-335,
//! II.22 to II.25.

mod entry_points;
mod metadata;
mod signature;

use std::collections::BTreeMap;

use object::pe::{IMAGE_FILE_MACHINE_AMD64, IMAGE_FILE_MACHINE_ARM64, Machine};
use object::read::pe::{ImageNtHeaders, PeFile64};
use object::{LittleEndian, Object};

use crate::bytes::{Bytes, Cursor};
use crate::image::Image;
use crate::table::symbol::Symbol;
use metadata::Metadata;
use signature::MethodToken;

/// The precompiled methods of a file, those that hold one of the `addresses`, which are in order.
pub(crate) fn methods<'data>(image: &Image<'data>, addresses: &[u64]) -> Vec<Symbol<'data>> {
    match image.object() {
        object::File::Pe64(file) => File { file }.methods(addresses).unwrap_or_default(),
        _ => Vec::new(),
    }
}

struct File<'a, 'data> {
    file: &'a PeFile64<'data>,
}

/// The methods of a file, by the number of their first runtime function; `None` for one that the
/// file does not name.
struct EntryPoints {
    methods: BTreeMap<u32, Option<MethodToken>>,
    are_complete: bool,
}

impl EntryPoints {
    /// The last runtime function of the method that begins with this one, of so many in all: if
    /// methods are missing, what follows may be one of them.
    fn last_part(&self, first: u32, functions: usize) -> Option<usize> {
        if !self.are_complete {
            return Some(first as usize);
        }
        let next = self.methods.range(first.checked_add(1)?..).next();
        next.map_or(functions, |(&next, _)| next as usize)
            .checked_sub(1)
    }
}

/// `READYTORUN_SECTION_...`
mod section {
    pub(super) const RUNTIME_FUNCTIONS: u32 = 102;
    pub(super) const METHOD_ENTRY_POINTS: u32 = 103;
    pub(super) const INSTANCE_ENTRY_POINTS: u32 = 109;
    pub(super) const HOT_COLD_MAP: u32 = 120;
}

impl<'data> File<'_, 'data> {
    const CLI_HEADER: usize = 14;
    /// Members of `IMAGE_COR20_HEADER`, each an address and a size.
    const METADATA: usize = 8;
    const NATIVE_HEADER: usize = 64;
    const SIGNATURE: u32 = u32::from_le_bytes(*b"RTR\0");

    /// `None`: the file has no such code, or is damaged.
    fn methods(&self, addresses: &[u64]) -> Option<Vec<Symbol<'data>>> {
        let (header, _) = self.file.data_directory(Self::CLI_HEADER)?.address_range();
        let header = self.bytes(header)?;
        let native = self.bytes(header.u32(Self::NATIVE_HEADER)?)?;
        (native.u32(0)? == Self::SIGNATURE).then_some(())?;
        let metadata = Metadata::parse(self.bytes(header.u32(Self::METADATA)?)?)?;
        let functions = self.runtime_functions(native)?;
        let starts = self.entry_points(native, functions.len())?;
        let base = self.file.relative_address_base();
        let address = |relative: u32| base.checked_add(relative.into());
        let symbols = starts.methods.iter().filter_map(|(&function, &method)| {
            let last = starts.last_part(function, functions.len())?;
            let start = address(functions.get(function as usize)?.0)?;
            // Those of a damaged file may overlap.
            let next = functions.get(last + 1).map_or(u32::MAX, |next| next.0);
            let end = address(functions.get(last)?.1.min(next))?;
            let first = addresses.partition_point(|&address| address < start);
            (*addresses.get(first)? < end).then_some(())?;
            Some(Symbol {
                start,
                end,
                limit: start,
                rank: 0,
                name: metadata.method(method?)?.into(),
            })
        });
        Some(symbols.collect())
    }

    /// Those of a file with so many runtime functions.
    fn entry_points(&self, native: Bytes<'_>, most: usize) -> Option<EntryPoints> {
        let (address, _) = self.section(native, section::METHOD_ENTRY_POINTS)?;
        let methods = entry_points::methods(self.cursor(address)?);
        let instances = match self.section(native, section::INSTANCE_ENTRY_POINTS) {
            Some((address, _)) => entry_points::instances(self.cursor(address)?, most),
            None => Some(Vec::new()),
        };
        // Parts of methods that hardly run are elsewhere.
        let has_cold_parts = self.section(native, section::HOT_COLD_MAP).is_some();
        Some(EntryPoints {
            are_complete: instances.is_some() && !has_cold_parts,
            methods: methods
                .into_iter()
                .chain(instances.unwrap_or_default())
                .collect(),
        })
    }

    /// The start and the end of each runtime function, in order.
    fn runtime_functions(&self, native: Bytes<'_>) -> Option<Vec<(u32, u32)>> {
        /// The machine of a file for Linux is combined with it (`IMAGE_FILE_MACHINE_NATIVE_...`).
        const LINUX: u16 = 0x7b79;
        let header = self.file.nt_headers().file_header();
        let machine = Machine(header.machine.get(LittleEndian).0 ^ LINUX);
        let (size, has_end) = match machine {
            IMAGE_FILE_MACHINE_AMD64 => (12, true),
            IMAGE_FILE_MACHINE_ARM64 => (8, false),
            _ => return None,
        };
        let (address, length) = self.section(native, section::RUNTIME_FUNCTIONS)?;
        let table = self.bytes(address)?.0.get(..length as usize)?;
        let entries: Vec<Bytes<'_>> = table.chunks_exact(size).map(Bytes).collect();
        let functions = entries.iter().enumerate().filter_map(|(index, entry)| {
            let start = entry.u32(0)?;
            let next = || {
                entries
                    .get(index + 1)
                    .map_or(Some(start), |next| next.u32(0))
            };
            Some((start, if has_end { entry.u32(4)? } else { next()? }))
        });
        let functions: Vec<_> = functions.collect();
        functions.is_sorted().then_some(functions)
    }

    /// The address and the size of a section of ReadyToRun data.
    fn section(&self, native: Bytes<'_>, kind: u32) -> Option<(u32, u32)> {
        const COUNT: usize = 12;
        const ENTRIES: usize = 16;
        const ENTRY: usize = 12;
        const MOST: u32 = 256;
        (0..native.u32(COUNT)?.min(MOST) as usize).find_map(|index| {
            let at = ENTRIES + ENTRY * index;
            let found = (native.u32(at + 4)?, native.u32(at + 8)?);
            (native.u32(at)? == kind).then_some(found)
        })
    }

    /// What is at an address, up to the end of its section.
    fn bytes(&self, address: u32) -> Option<Bytes<'data>> {
        let sections = self.file.section_table();
        sections.pe_data_at(self.file.data(), address).map(Bytes)
    }

    /// What is at an address, and before it in its section.
    fn cursor(&self, address: u32) -> Option<Cursor<'data>> {
        let sections = self.file.section_table();
        let (data, start) = sections.pe_data_containing(self.file.data(), address)?;
        Some(Cursor {
            bytes: Bytes(data),
            at: address.checked_sub(start)? as usize,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::path::PathBuf;
    use std::process::Command;

    use super::*;

    /// The libraries of .NET, from the package of Python that contains it.
    fn libraries() -> Vec<PathBuf> {
        let code = "import dotnetcore2, glob; print(*glob.glob(
            dotnetcore2.__path__[0] + '/bin/shared/*/*/System*.dll'), sep='\\n')";
        let output = Command::new(prof_needs::python())
            .args(["-c", code])
            .output();
        let text = output.map(|output| String::from_utf8(output.stdout).unwrap());
        text.iter()
            .flat_map(|text| text.lines())
            .map(PathBuf::from)
            .collect()
    }

    /// How many runtime functions a file has, and their names, by address.
    fn named(bytes: &[u8]) -> Option<(usize, HashMap<u64, String>)> {
        let image = Image::parse(bytes).ok()?;
        let object::File::Pe64(file) = image.object() else {
            return None;
        };
        let reader = File { file };
        let (header, _) = file.data_directory(File::CLI_HEADER)?.address_range();
        let native = reader.bytes(header)?.u32(File::NATIVE_HEADER)?;
        let functions = reader.runtime_functions(reader.bytes(native)?)?;
        let address = |function: &(u32, u32)| file.relative_address_base() + u64::from(function.0);
        let addresses: Vec<u64> = functions.iter().map(address).collect();
        let symbols = methods(&image, &addresses);
        let names = addresses.iter().filter_map(|address| {
            let is_in = |symbol: &&Symbol<'_>| (symbol.start..symbol.end).contains(address);
            let last = symbols.partition_point(|symbol| symbol.start <= *address);
            let symbol = symbols.get(last.checked_sub(1)?).filter(is_in)?;
            Some((*address, String::from_utf8(symbol.name.to_vec()).unwrap()))
        });
        let names = names.collect();
        Some((functions.len(), names))
    }

    #[test]
    fn all_code_of_dotnets_libraries_has_names() {
        let libraries = libraries();
        if !prof_needs::met(!libraries.is_empty(), "Python's package dotnetcore2") {
            return;
        }
        let mut compiled = 0;
        for path in &libraries {
            let bytes = std::fs::read(path).unwrap();
            let Some((functions, names)) = named(&bytes) else {
                continue;
            };
            compiled += 1;
            assert_eq!(functions, names.len(), "{}", path.display());
            if path.ends_with("System.Private.CoreLib.dll") {
                let has = |name: &str| names.values().any(|it| it == name);
                assert!(has("System.String::Concat"));
                assert!(has("System.Collections.Generic.Dictionary`2::FindEntry"));
                assert!(has(
                    "System.Collections.Generic.List`1+Enumerator::MoveNext"
                ));
            }
        }
        assert!(compiled > 50, "{compiled} of {libraries:?}");
    }

    /// A small library of all that is read, which fuzzing begins with.
    #[test]
    fn the_seed_of_fuzzing_has_methods_and_instances() {
        let seed = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../fuzz/seeds/symbols_elf/ready_to_run"
        );
        let (functions, names) = named(&std::fs::read(seed).unwrap()).unwrap();
        let mut names: Vec<String> = names.into_values().collect();
        names.sort();
        assert_eq!(
            (functions, &*names),
            (
                3,
                &["Hot::Heavy", "Hot::Heavy", "Hot::Main"].map(String::from)[..]
            )
        );
    }

    #[test]
    fn damaged_libraries_are_survived() {
        let libraries = libraries();
        let small = libraries
            .iter()
            .find(|path| path.ends_with("System.Linq.dll"));
        if !prof_needs::met(small.is_some(), "Python's package dotnetcore2") {
            return;
        }
        let bytes = std::fs::read(small.unwrap()).unwrap();
        let all = named(&bytes).unwrap().1.len();
        for length in (0..bytes.len()).step_by(997) {
            let _ = named(&bytes[..length]);
        }
        for at in (0..bytes.len()).step_by(211) {
            let mut bytes = bytes.clone();
            for byte in bytes.iter_mut().skip(at).take(4) {
                *byte = !*byte;
            }
            assert!(named(&bytes).is_none_or(|(_, names)| names.len() <= all + 1));
        }
    }
}
