//! The kernel's addresses: from its own list of symbols, and from `vmlinux` where that is found.
//!
//! ```text
//!   recorded address ── − (recorded _text − running _text) ──▶ address in this boot ─▶ kallsyms
//!                    └─ − (recorded _text − vmlinux's _text) ─▶ ElfAddress ──────────▶ vmlinux
//! ```

mod kallsyms;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use object::read::elf::NoteIterator;
use object::{Endianness, Object, ObjectSymbol, elf};
use prof_model::BuildId;

use crate::files::ModuleFiles;
use crate::image::Image;
use crate::locate;
use crate::module;
use crate::names::Names;
use crate::options::SymbolOptions;
use crate::query::{Detail, Resolved, SymbolFrame};
use crate::status::ModuleStatus;
use kallsyms::{KernelError, KernelSymbols};

/// The kernel, read when its first address is asked for.
#[derive(Default)]
pub(crate) struct Kernel {
    symbols: OnceLock<Result<KernelSymbols, KernelError>>,
}

impl Kernel {
    /// Names absolute addresses of the kernel that was recorded.
    pub(crate) fn resolve(&self, addresses: &[u64], options: &SymbolOptions) -> Resolved {
        if let Some(status) = other_kernel(options) {
            let text = options.recorded_kernel.text;
            let detailed = text.and_then(|text| by_vmlinux(addresses, text, options));
            return detailed.unwrap_or_else(|| Resolved::unnamed(status, addresses.len()));
        }
        let symbols = self
            .symbols
            .get_or_init(|| KernelSymbols::read(&options.kallsyms));
        let here = by_kallsyms(addresses, symbols, options);
        let running_text = symbols.as_ref().ok().and_then(KernelSymbols::text);
        let text = options.recorded_kernel.text.or(running_text);
        match text.and_then(|text| by_vmlinux(addresses, text, options)) {
            Some(detailed) => merged(detailed, here),
            None => here,
        }
    }
}

/// The status if the recording is of another kernel than the running one.
fn other_kernel(options: &SymbolOptions) -> Option<ModuleStatus> {
    let recorded = options.recorded_kernel.build_id?;
    let found = running_build_id(&options.kernel_notes)?;
    (recorded != found).then_some(ModuleStatus::OtherKernel { recorded, found })
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
        Err(error) => {
            let status = match error {
                KernelError::Hidden => ModuleStatus::KernelHidden,
                KernelError::Io(error) => locate::io_status(path, error.kind(), error),
            };
            return Resolved::unnamed(status, addresses.len());
        }
    };
    // The kernel lies elsewhere after each boot.
    let shift = match (options.recorded_kernel.text, symbols.text()) {
        (Some(recorded), Some(running)) => running.wrapping_sub(recorded),
        _ => 0,
    };
    let mut names = Names::new(options.demangle);
    let mut resolved = Resolved::unnamed(ModuleStatus::Named, 0);
    resolved.detail = Detail::Functions;
    resolved.file = Some(path.clone());
    for &address in addresses {
        let name = symbols.find(address.wrapping_add(shift));
        // Modules are loaded anywhere: in another boot, nothing tells where they are.
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
fn by_vmlinux(addresses: &[u64], text: u64, options: &SymbolOptions) -> Option<Resolved> {
    let id = options
        .recorded_kernel
        .build_id
        .or_else(|| running_build_id(&options.kernel_notes))?;
    let mut paths = options.vmlinux.iter();
    let main = paths.find_map(|path| locate::checked(path, Some(id)).ok())?;
    let own_text = text_address(&Image::parse(&main.bytes).ok()?)?;
    let files = ModuleFiles::find(main, options);
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
        merged.push_all(frames.iter().cloned());
    }
    merged
}

/// Where distributions put `vmlinux` of the running kernel.
pub(crate) fn usual_vmlinux() -> Vec<PathBuf> {
    let Ok(release) = fs::read_to_string("/proc/sys/kernel/osrelease") else {
        return Vec::new();
    };
    let release = release.trim();
    [
        format!("/usr/lib/debug/boot/vmlinux-{release}"),
        format!("/usr/lib/debug/lib/modules/{release}/vmlinux"),
        format!("/lib/modules/{release}/vmlinux"),
        format!("/lib/modules/{release}/build/vmlinux"),
        format!("/boot/vmlinux-{release}"),
    ]
    .map(PathBuf::from)
    .into()
}
