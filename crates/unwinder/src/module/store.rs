//! The tables of the modules that are in use, and their code bytes.

use std::time::Instant;

use prof_model::{Mapping, ModuleId, ModuleKind, Modules, Pid};

use crate::arch::RegisterLayout;
use crate::module::files::{ModuleFiles, TablesRead};
use crate::module::{ModuleError, ModuleTables, Source};

/// Tables by module, read when first needed, and again if they were dropped: short-lived programs
/// (a build runs thousands) must not fill memory, or use up the file descriptors.
pub(crate) struct ModuleStore {
    files: Box<dyn ModuleFiles + Send>,
    slots: Vec<Slot>,
    pages: Vec<Page>,
    limits: Limits,
    /// Counts calls of `load`.
    clock: u64,
}

/// The limits, which do not include the module that was read last.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Each has an open file: half of the usual limit for processes.
    modules: usize,
    /// Bytes of tables. Those of a large browser take 80 MB, those of rustc 25.
    bytes: usize,
}

const LIMITS: Limits = Limits {
    modules: 512,
    bytes: 256 << 20,
};

#[derive(Default)]
enum Slot {
    #[default]
    Unseen,
    Ready {
        tables: Box<ModuleTables>,
        /// The clock when they were last used.
        used: u64,
    },
    Failed {
        attempts: u8,
        pid: Pid,
        /// It has a file, which could not be opened or was another one.
        lacks_file: bool,
    },
}

/// Another process may still have a file that was mapped by one that has ended.
const ATTEMPTS: u8 = 3;

/// A page of a module's code, as last read from its file.
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
            limits: LIMITS,
            clock: 0,
            pages: std::iter::repeat_with(page).take(PAGES).collect(),
        }
    }

    /// Limits the bytes of tables.
    pub(crate) fn limit_bytes(&mut self, bytes: usize) {
        self.limits.bytes = bytes;
    }

    /// The tables of the module with this mapping; reads them if necessary.
    pub(crate) fn load(
        &mut self,
        pid: Pid,
        modules: &Modules,
        mapping: &Mapping,
        layout: &RegisterLayout,
    ) -> Option<&mut ModuleTables> {
        let index = mapping.module.index();
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, Slot::default);
        }
        let slot = self.slots.get_mut(index)?;
        let attempts = match slot {
            Slot::Ready { .. } => 0,
            Slot::Unseen => 1,
            Slot::Failed {
                attempts,
                pid: tried,
                ..
            } if *attempts < ATTEMPTS && *tried != pid => *attempts + 1,
            Slot::Failed { .. } => return None,
        };
        self.clock += 1;
        let now = self.clock;
        if attempts > 0 {
            let module = &modules[mapping.module];
            *slot = match read(self.files.as_mut(), pid, module, mapping, layout) {
                Ok(tables) => Slot::Ready {
                    tables: Box::new(tables),
                    used: now,
                },
                Err(error) => Slot::Failed {
                    attempts,
                    pid,
                    lacks_file: module.kind == ModuleKind::File
                        && matches!(error, ModuleError::Io(_) | ModuleError::BuildIdDiffers),
                },
            };
            self.forget_oldest(index);
        }
        match self.slots.get_mut(index)? {
            Slot::Ready { tables, used } => {
                *used = now;
                Some(tables)
            }
            _ => None,
        }
    }

    /// Whether a module has no tables because its file could not be opened, or was another one.
    pub(crate) fn lacks_file(&self, module: ModuleId) -> bool {
        let slot = self.slots.get(module.index());
        matches!(slot, Some(Slot::Failed { lacks_file, .. }) if *lacks_file)
    }

    /// Drops the least recently used ones until the rest is within the limits; but not these.
    fn forget_oldest(&mut self, newest: usize) {
        let ready = |(index, slot): (usize, &Slot)| match slot {
            Slot::Ready { tables, used } => Some((*used, index, tables.size())),
            _ => None,
        };
        let mut held: Vec<_> = self.slots.iter().enumerate().filter_map(ready).collect();
        let (mut count, mut bytes) = (held.len(), held.iter().map(|it| it.2).sum::<usize>());
        if count <= self.limits.modules && bytes <= self.limits.bytes {
            return;
        }
        held.sort_unstable();
        for (_, index, size) in held {
            if count <= self.limits.modules && bytes <= self.limits.bytes {
                break;
            }
            if index != newest
                && let Some(slot) = self.slots.get_mut(index)
            {
                *slot = Slot::Unseen;
                count -= 1;
                bytes -= size;
            }
        }
    }

    /// The tables of a module, if they have been read.
    pub(crate) fn get(&mut self, module: ModuleId) -> Option<&mut ModuleTables> {
        match self.slots.get_mut(module.index())? {
            Slot::Ready { tables, .. } => Some(tables),
            _ => None,
        }
    }

    /// Copies a module's code from the file; returns how many bytes there are.
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
        let Some(Slot::Ready { tables, .. }) = self.slots.get(module.index()) else {
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
    layout: &RegisterLayout,
) -> Result<ModuleTables, ModuleError> {
    let source = match module.kind {
        ModuleKind::File => Source::File(files.open(pid, module, mapping)?),
        ModuleKind::Vdso => Source::Image(files.vdso(pid, mapping)?),
        ModuleKind::Anonymous | ModuleKind::Kernel => return Err(ModuleError::NotElf),
    };
    let (most, begun) = (files.most_bytes(pid), Instant::now());
    let expected = module.build_id.as_ref();
    let tables = ModuleTables::load(source, &module.path, layout, expected, most);
    let read = match &tables {
        Ok(tables) => TablesRead::Bytes(tables.bytes_read),
        Err(ModuleError::TooLarge) => TablesRead::TooLarge,
        Err(_) => TablesRead::Bytes(0),
    };
    files.has_read(pid, module, read, begun.elapsed());
    tables
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io;

    use prof_model::{AbsoluteAddress, FileOffset, Module};

    use super::*;
    use crate::arch::Architecture;

    /// Every module is the program that runs this test.
    struct Own;

    impl ModuleFiles for Own {
        fn open(&mut self, _: Pid, _: &Module, _: &Mapping) -> io::Result<File> {
            File::open("/proc/self/exe")
        }
    }

    /// Loads modules in this order; expects which of them are held then.
    fn check(limits: Limits, order: &[usize], expected: &[usize]) {
        let Some(host) = Architecture::host() else {
            return;
        };
        let mut modules = Modules::default();
        let ids: Vec<ModuleId> = (0..=order.iter().copied().max().unwrap_or(0))
            .map(|number| modules.intern(Module::from_path(format!("/bin/{number}"))))
            .collect();
        let mut store = ModuleStore {
            limits,
            ..ModuleStore::new(Box::new(Own))
        };
        for &number in order {
            let mapping = Mapping {
                start: AbsoluteAddress(0x1000),
                end: AbsoluteAddress(0x2000),
                file_offset: FileOffset(0),
                module: ids[number],
                executable: true,
            };
            let tables = store.load(1, &modules, &mapping, host.layout());
            assert!(tables.is_some(), "{number} can be read, and read again");
        }
        let mut held = Vec::new();
        for (number, &id) in ids.iter().enumerate() {
            if store.get(id).is_some() {
                held.push(number);
            }
        }
        assert_eq!(held, expected, "{limits:?}: {order:?}");
    }

    #[test]
    fn the_least_recently_used_is_dropped() {
        let three = Limits {
            modules: 3,
            bytes: usize::MAX,
        };
        check(three, &[0, 1, 2], &[0, 1, 2]);
        check(three, &[0, 1, 2, 0, 3], &[0, 2, 3]);
        check(three, &[0, 1, 2, 3, 4, 5, 0], &[0, 4, 5]);
        let newest = Limits {
            modules: 3,
            bytes: 1,
        };
        check(newest, &[0, 1, 2, 1], &[1]);
    }
}
