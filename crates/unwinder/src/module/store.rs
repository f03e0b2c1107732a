//! The tables of all modules met so far, and their code bytes.

use prof_model::{Mapping, ModuleId, ModuleKind, Modules, Pid};

use crate::arch::Layout;
use crate::module::files::ModuleFiles;
use crate::module::{ModuleError, ModuleTables, Source};

/// Tables by module, read when first needed.
pub(crate) struct ModuleStore {
    files: Box<dyn ModuleFiles + Send>,
    slots: Vec<Slot>,
    pages: Vec<Page>,
}

#[derive(Default)]
enum Slot {
    #[default]
    Unseen,
    Ready(Box<ModuleTables>),
    Failed {
        attempts: u8,
        pid: Pid,
    },
}

/// Another process may still have the file that one which ended took along.
const ATTEMPTS: u8 = 3;

/// A part of a module's code, as last read from its file.
struct Page {
    module: Option<ModuleId>,
    number: u64,
    filled: usize,
    bytes: Box<[u8; PAGE]>,
}

const PAGE: usize = 1 << 10;
const PAGES: usize = 64;

impl ModuleStore {
    pub(crate) fn new(files: Box<dyn ModuleFiles + Send>) -> Self {
        let page = || Page {
            module: None,
            number: 0,
            filled: 0,
            bytes: Box::new([0; PAGE]),
        };
        Self {
            files,
            slots: Vec::new(),
            pages: std::iter::repeat_with(page).take(PAGES).collect(),
        }
    }

    /// The tables of the module that is mapped so, read now if they were not before.
    pub(crate) fn load(
        &mut self,
        pid: Pid,
        modules: &Modules,
        mapping: &Mapping,
        layout: &Layout,
    ) -> Option<&mut ModuleTables> {
        let index = mapping.module.index();
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, Slot::default);
        }
        let slot = self.slots.get_mut(index)?;
        let attempts = match slot {
            Slot::Ready(_) => 0,
            Slot::Unseen => 1,
            Slot::Failed {
                attempts,
                pid: tried,
                ..
            } if *attempts < ATTEMPTS && *tried != pid => *attempts + 1,
            Slot::Failed { .. } => return None,
        };
        if attempts > 0 {
            let module = &modules[mapping.module];
            *slot = match read(self.files.as_mut(), pid, module, mapping, layout) {
                Ok(tables) => Slot::Ready(Box::new(tables)),
                Err(_) => Slot::Failed { attempts, pid },
            };
        }
        match slot {
            Slot::Ready(tables) => Some(tables),
            _ => None,
        }
    }

    /// The tables of a module, if they have been read.
    pub(crate) fn get(&mut self, module: ModuleId) -> Option<&mut ModuleTables> {
        match self.slots.get_mut(module.index())? {
            Slot::Ready(tables) => Some(tables),
            _ => None,
        }
    }

    /// Copies a module's code from the file; returns how many bytes there were.
    pub(crate) fn read_code(&mut self, module: ModuleId, address: u64, buffer: &mut [u8]) -> usize {
        let mut copied = 0;
        while copied < buffer.len() {
            let at = address.wrapping_add(copied as u64);
            let Some(page) = self.page(module, at / PAGE as u64) else {
                break;
            };
            let skip = (at % PAGE as u64) as usize;
            let Some(bytes) = page.bytes.get(skip..page.filled) else {
                break;
            };
            let count = bytes.len().min(buffer.len() - copied);
            if count == 0 {
                break;
            }
            buffer[copied..copied + count].copy_from_slice(&bytes[..count]);
            copied += count;
        }
        copied
    }

    fn page(&mut self, module: ModuleId, number: u64) -> Option<&Page> {
        let slot = (number as usize).wrapping_add(module.index() * 7) % PAGES;
        let Some(Slot::Ready(tables)) = self.slots.get(module.index()) else {
            return None;
        };
        let page = self.pages.get_mut(slot)?;
        if page.module != Some(module) || page.number != number {
            page.module = Some(module);
            page.number = number;
            page.filled = tables.read_code_page(number * PAGE as u64, &mut page.bytes[..]);
        }
        Some(page)
    }
}

fn read(
    files: &mut dyn ModuleFiles,
    pid: Pid,
    module: &prof_model::Module,
    mapping: &Mapping,
    layout: &Layout,
) -> Result<ModuleTables, ModuleError> {
    let source = match module.kind {
        ModuleKind::File => Source::File(files.open(pid, module, mapping)?),
        ModuleKind::Vdso => Source::Image(files.vdso(pid, mapping)?),
        ModuleKind::Anonymous | ModuleKind::Kernel => return Err(ModuleError::NotElf),
    };
    ModuleTables::load(source, layout, module.build_id.as_ref())
}
