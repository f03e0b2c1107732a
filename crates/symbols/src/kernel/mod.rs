//! The kernel's addresses: from its own list of symbols, and from `vmlinux` where that is found.
//!
//! ```text
//!   recorded address ── − (recorded _text − running _text) ──▶ address in this boot ─▶ kallsyms
//!                    └─ − (recorded _text − vmlinux's _text) ─▶ ElfAddress ──────────▶ vmlinux
//! ```

mod code;
mod kallsyms;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use object::read::elf::NoteIterator;
use object::{Endianness, Object, ObjectSymbol, elf};
use prof_model::{BuildId, ElfAddress, FileOffset};

use crate::code::{Code, CodeError, Machine};
use crate::demangling::SharedNames;
use crate::files::SymbolFiles;
use crate::files::locate;
use crate::image::Image;
use crate::module;
use crate::options::SymbolOptions;
use crate::query::{Detail, Resolved, SymbolFrame};
use crate::status::ModuleStatus;
use code::KernelMemory;
use kallsyms::{KernelError, KernelSymbols};

/// The kernel's symbols, read when its first address is requested.
#[derive(Default)]
pub(crate) struct Kernel {
    symbols: OnceLock<Result<KernelSymbols, KernelError>>,
}

impl Kernel {
    /// Names absolute addresses of the kernel that was recorded.
    pub(crate) fn resolve(&self, addresses: &[u64], options: &SymbolOptions) -> Resolved {
        let recorded = options.recorded_kernel;
        if let Some(status) = other_kernel(options) {
            let known = recorded.text.zip(recorded.build_id);
            let detailed = known.and_then(|(text, id)| by_vmlinux(addresses, text, id, options));
            return detailed.unwrap_or_else(|| Resolved::unnamed(status, addresses.len()));
        }
        let symbols = self
            .symbols
            .get_or_init(|| KernelSymbols::read(&options.kallsyms));
        let here = by_kallsyms(addresses, symbols, options);
        let running_text = symbols.as_ref().ok().and_then(KernelSymbols::text);
        let text = recorded.text.or(running_text);
        let id = (recorded.build_id).or_else(|| running_build_id(&options.kernel_notes));
        match text
            .zip(id)
            .and_then(|(text, id)| by_vmlinux(addresses, text, id, options))
        {
            Some(detailed) => merged(detailed, here),
            None => here,
        }
    }

    /// The functions that hold these addresses of the kernel that was recorded, each once, by
    /// address, as they are in the memory of the running one. "Offsets" are recorded addresses.
    pub(crate) fn code(
        &self,
        addresses: &[u64],
        options: &SymbolOptions,
    ) -> Result<Vec<Code>, CodeError> {
        if let Some(status) = other_kernel(options) {
            return Err(CodeError::File(status));
        }
        let symbols = self
            .symbols
            .get_or_init(|| KernelSymbols::read(&options.kallsyms));
        let symbols = symbols.as_ref().map_err(|error| {
            let status = unreadable(error, &options.kallsyms);
            CodeError::File(status)
        })?;
        let memory =
            KernelMemory::open(&options.kcore).map_err(|error| CodeError::KernelMemory {
                path: options.kcore.clone(),
                reason: error.to_string(),
            })?;
        let shift = shift(symbols, options);
        let here = addresses.iter().map(|address| address.wrapping_add(shift));
        let ranges: BTreeMap<u64, u64> = here
            .filter_map(|address| symbols.range(address))
            .map(|range| (range.start, range.end))
            .collect();
        if ranges.is_empty() {
            return Err(CodeError::NoSymbol);
        }
        let code = |(start, end): (u64, u64)| {
            let size = (end - start).min(Code::LONGEST);
            let bytes = memory.read(start, size).ok()?;
            Some(Code {
                offset: FileOffset(start.wrapping_sub(shift)),
                address: ElfAddress(start),
                left_out: (end - start).saturating_sub(bytes.len() as u64),
                bytes,
                machine: Machine::of_this_machine(),
            })
        };
        let codes: Vec<Code> = ranges.into_iter().filter_map(code).collect();
        match codes.is_empty() {
            true => Err(CodeError::NoBytes),
            false => Ok(codes),
        }
    }
}

/// The offset to add to recorded addresses: the kernel is elsewhere after each boot.
fn shift(symbols: &KernelSymbols, options: &SymbolOptions) -> u64 {
    match (options.recorded_kernel.text, symbols.text()) {
        (Some(recorded), Some(running)) => running.wrapping_sub(recorded),
        _ => 0,
    }
}

fn unreadable(error: &KernelError, path: &Path) -> ModuleStatus {
    match error {
        KernelError::Hidden => ModuleStatus::KernelHidden,
        KernelError::Io(error) => locate::io_status(path, error.kind(), error),
    }
}

/// The status if the recording is of another kernel than the running one: by their build ids, or by
/// their releases if one of these is unknown.
fn other_kernel(options: &SymbolOptions) -> Option<ModuleStatus> {
    let recorded = options.recorded_kernel.build_id;
    match recorded.zip(running_build_id(&options.kernel_notes)) {
        Some((recorded, found)) => {
            (recorded != found).then_some(ModuleStatus::OtherKernel { recorded, found })
        }
        None => options.other_kernel(),
    }
}

/// The running kernel's build id, from the ELF notes that it shows.
fn running_build_id(notes: &Path) -> Option<BuildId> {
    let notes = fs::read(notes).ok()?;
    let endian = Endianness::default();
    let mut notes = NoteIterator::<elf::FileHeader64<Endianness>>::new(endian, 4, &notes).ok()?;
    while let Ok(Some(note)) = notes.next() {
        if note.name() == elf::ELF_NOTE_GNU && note.n_type(endian) == elf::NT_GNU_BUILD_ID {
            return BuildId::new(note.desc());
        }
    }
    None
}

fn by_kallsyms(
    addresses: &[u64],
    symbols: &Result<KernelSymbols, KernelError>,
    options: &SymbolOptions,
) -> Resolved {
    let path = &options.kallsyms;
    let symbols = match symbols {
        Ok(symbols) => symbols,
        Err(error) => return Resolved::unnamed(unreadable(error, path), addresses.len()),
    };
    let shift = shift(symbols, options);
    let mut names = SharedNames::new(options.demangle);
    let mut resolved = Resolved::unnamed(ModuleStatus::Named, 0);
    resolved.detail = Detail::Functions;
    resolved.file = Some(path.clone());
    for &address in addresses {
        let name = symbols.find(address.wrapping_add(shift));
        // The kernel loads modules anywhere: their addresses in another boot are unknown.
        let name = name.filter(|name| shift == 0 || !name.ends_with(']'));
        resolved.push(name.map(|name| SymbolFrame {
            function: names.function(name.as_bytes()),
            file: None,
            line: None,
            inlined: false,
        }));
    }
    resolved
}

/// With lines and inlined functions, if there is a `vmlinux` of this very build.
fn by_vmlinux(
    addresses: &[u64],
    text: u64,
    id: BuildId,
    options: &SymbolOptions,
) -> Option<Resolved> {
    let mut paths = options.vmlinux.iter();
    let main = paths.find_map(|path| locate::checked(path, Some(id)).ok())?;
    let own_text = text_address(&Image::parse(&main.bytes).ok()?)?;
    let files = SymbolFiles::find(main, options);
    let to_elf =
        |_: &Image<'_>, address: u64| Some(address.wrapping_sub(text).wrapping_add(own_text));
    Some(module::resolve_by(
        &files,
        addresses,
        to_elf,
        options,
        &|_| {},
    ))
}

fn text_address(vmlinux: &Image<'_>) -> Option<u64> {
    let mut symbols = vmlinux.object().symbols();
    let text = symbols.find(|symbol| symbol.name_bytes() == Ok(b"_text"))?;
    Some(text.address())
}

/// `vmlinux` first; it knows nothing of modules and BPF programs.
fn merged(detailed: Resolved, here: Resolved) -> Resolved {
    let mut merged = Resolved::unnamed(ModuleStatus::Named, 0);
    merged.detail = detailed.detail;
    merged.file = detailed.file.clone();
    for index in 0..detailed.len() {
        let frames = match detailed.frames(index) {
            [] => here.frames(index),
            frames => frames,
        };
        merged.push_all(frames.iter().cloned(), None);
    }
    merged
}
