//! Addresses of a process to places in files, by the text of its /proc/PID/maps.

use prof_model::{FileOffset, Module, ModuleKind};
use prof_procfs::Maps;

use crate::profile::{Frame, Profile};

/// The mapped code of a process.
pub(super) struct MappedCode(Vec<Mapped>);

struct Mapped {
    start: u64,
    end: u64,
    file_offset: u64,
    path: String,
}

impl MappedCode {
    /// Lines that are no mappings are skipped.
    pub(super) fn parse(text: &[u8]) -> Self {
        let maps = Maps::parse(text);
        let mut mapped: Vec<Mapped> = (maps.iter())
            .filter(|entry| !entry.path.is_empty())
            .map(|entry| Mapped {
                start: entry.addresses.start,
                end: entry.addresses.end,
                file_offset: entry.file_offset,
                path: entry.path.to_string_lossy().into_owned(),
            })
            .collect();
        mapped.sort_by_key(|mapped| mapped.start);
        Self(mapped)
    }

    /// The frame at an address in code: inside of the instruction that ran or called.
    pub(super) fn frame(&self, address: u64, profile: &mut Profile) -> Frame {
        let after = self.0.partition_point(|mapped| mapped.start <= address);
        let mapped = after.checked_sub(1).and_then(|at| self.0.get(at));
        let Some(mapped) = mapped.filter(|mapped| address < mapped.end) else {
            return Frame::Unknown(address);
        };
        let module = Module::from_path(&mapped.path);
        if module.kind != ModuleKind::File {
            return Frame::Unknown(address);
        }
        let offset = (address - mapped.start).wrapping_add(mapped.file_offset);
        Frame::Module {
            module: profile.modules.intern(module),
            offset: FileOffset(offset),
        }
    }
}
