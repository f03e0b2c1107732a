//! Which modules have samples.

use std::ffi::OsString;

use prof_model::{AbsoluteAddress, AddressSpace, Mapping, ModuleKind, Modules};
use prof_perfdata::{CpuMode, ModuleBuildId};

use crate::output::synthesize::kernel_build_id;

/// Which modules have samples: only those are needed later.
#[derive(Debug, Default)]
pub(crate) struct ModuleHits {
    /// By the module's index.
    modules: Vec<bool>,
    /// Whether the kernel has samples.
    pub(crate) kernel: bool,
}

impl ModuleHits {
    /// Marks the modules of these frames, and passes their mappings to `each`.
    pub(crate) fn mark(
        &mut self,
        space: &AddressSpace,
        frames: &[u64],
        mut each: impl FnMut(&Mapping),
    ) {
        // Neighbouring frames are mostly in the same module.
        let (mut start, mut length) = (0, 0);
        for &frame in frames {
            if frame.wrapping_sub(start) < length {
                continue;
            }
            let Some(mapping) = space.find(AbsoluteAddress(frame)) else {
                continue;
            };
            start = mapping.start.0;
            length = mapping.end.0 - start;
            each(mapping);
            let index = mapping.module.index();
            if self.modules.len() <= index {
                self.modules.resize(index + 1, false);
            }
            if let Some(hit) = self.modules.get_mut(index) {
                *hit = true;
            }
        }
    }

    /// The build ids of the marked modules, if they have one.
    pub(crate) fn build_ids(&self, modules: &Modules) -> Vec<ModuleBuildId> {
        let hit = |index: usize| self.modules.get(index).copied().unwrap_or(false);
        let users = modules
            .iter()
            .filter(|(id, module)| module.kind == ModuleKind::File && hit(id.index()))
            .filter_map(|(_, module)| {
                Some(ModuleBuildId {
                    mode: CpuMode::User,
                    pid: -1,
                    build_id: module.build_id?,
                    path: module.path.clone().into(),
                })
            });
        let kernel = self.kernel.then(kernel_build_id).flatten();
        let kernel = kernel.map(|build_id| ModuleBuildId {
            mode: CpuMode::Kernel,
            pid: -1,
            build_id,
            path: OsString::from("[kernel.kallsyms]"),
        });
        kernel.into_iter().chain(users).collect()
    }
}

#[cfg(test)]
mod tests {
    use prof_model::{BuildId, FileOffset, Module};

    use super::*;

    #[test]
    fn only_modules_that_were_hit_are_listed() {
        let (mut modules, mut space) = (Modules::default(), AddressSpace::default());
        for (number, path) in ["/a", "/b", "/c"].into_iter().enumerate() {
            let mut module = Module::from_path(path);
            module.build_id = BuildId::new(&[number as u8 + 1; 20]);
            let start = 0x1000 * (number as u64 + 1);
            space.insert(Mapping {
                start: AbsoluteAddress(start),
                end: AbsoluteAddress(start + 0x1000),
                file_offset: FileOffset(0),
                module: modules.intern(module),
                executable: true,
            });
        }
        let mut hits = ModuleHits::default();
        hits.mark(&space, &[0x1001, 0x1fff, 0x3000, 0x1000, 0x9000], |_| {});
        let paths: Vec<_> = hits
            .build_ids(&modules)
            .into_iter()
            .map(|id| id.path)
            .collect();
        assert_eq!(paths, ["/a", "/c"]);
    }
}
