//! framehop, the unwinder that others use, on the same samples.

use std::collections::HashMap;

use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, Module, Unwinder};
use object::{Object, ObjectSection, ObjectSegment};

use super::{Samples, UserSample};

const SP: u32 = 7;
const BP: u32 = 6;
const IP: u32 = 8;

/// One framehop unwinder per process, as framehop wants it, and a cache for all.
pub struct Framehop {
    processes: HashMap<(u64, usize), UnwinderX86_64<Vec<u8>>>,
    cache: CacheX86_64,
}

impl Framehop {
    pub fn new() -> Self {
        Self {
            processes: HashMap::new(),
            cache: CacheX86_64::new(),
        }
    }

    /// Makes the unwinders for all processes of the samples.
    pub fn load(samples: &Samples) -> Self {
        let mut framehop = Self::new();
        for sample in &samples.samples {
            framehop
                .processes
                .entry(key(sample))
                .or_insert_with(|| unwinder(samples, sample));
        }
        framehop
    }

    /// Forgets all cached rules.
    pub fn clear_cache(&mut self) {
        self.cache = CacheX86_64::new();
    }

    /// The frames as lookup addresses, and whether framehop says that the stack's end was reached.
    pub fn unwind(&mut self, sample: &UserSample, frames: &mut Vec<u64>) -> bool {
        let Some(unwinder) = self.processes.get(&key(sample)) else {
            return false;
        };
        let register = |number| sample.registers.get(number).expect("register");
        let mut read = |address: u64| {
            let offset = address.wrapping_sub(sample.stack_start) as usize;
            let bytes = sample.stack.get(offset..).and_then(<[u8]>::first_chunk);
            bytes.map(|bytes| u64::from_le_bytes(*bytes)).ok_or(())
        };
        let registers = UnwindRegsX86_64::new(register(IP), register(SP), register(BP));
        let mut iter = unwinder.iter_frames(register(IP), registers, &mut self.cache, &mut read);
        for _ in 0..20_000 {
            match iter.next() {
                Ok(Some(frame)) => frames.push(frame.address_for_lookup()),
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
        false
    }
}

fn key(sample: &UserSample) -> (u64, usize) {
    let process = &sample.process;
    (process.generation(), process.space().iter().count())
}

fn unwinder(samples: &Samples, sample: &UserSample) -> UnwinderX86_64<Vec<u8>> {
    let mut unwinder = UnwinderX86_64::new();
    for mapping in sample.process.space().iter().filter(|m| m.executable) {
        let path = &samples.modules[mapping.module].path;
        let Ok(bytes) = std::fs::read(path) else {
            continue;
        };
        let Ok(file) = object::File::parse(&*bytes) else {
            continue;
        };
        let Some(segment) = file.segments().find(|segment| {
            let (start, size) = segment.file_range();
            (start..start + size).contains(&mapping.file_offset.0)
                || start & !0xfff == mapping.file_offset.0 && size > 0
        }) else {
            continue;
        };
        let first = mapping.start.0.wrapping_sub(mapping.file_offset.0);
        let base = first
            .wrapping_add(segment.file_range().0)
            .wrapping_sub(segment.address());
        let section = |name| {
            let section = file.section_by_name(name)?;
            let range = section.address()..section.address() + section.size();
            Some((range, section.uncompressed_data().ok()?.into_owned()))
        };
        let (text, hdr, eh) = (
            section(".text"),
            section(".eh_frame_hdr"),
            section(".eh_frame"),
        );
        let info = ExplicitModuleSectionInfo {
            base_svma: 0,
            text_svma: text.as_ref().map(|(range, _)| range.clone()),
            text: text.map(|(_, bytes)| bytes),
            eh_frame_svma: eh.as_ref().map(|(range, _)| range.clone()),
            eh_frame: eh.map(|(_, bytes)| bytes),
            eh_frame_hdr_svma: hdr.as_ref().map(|(range, _)| range.clone()),
            eh_frame_hdr: hdr.map(|(_, bytes)| bytes),
            debug_frame: section(".debug_frame").map(|(_, bytes)| bytes),
            ..Default::default()
        };
        let range = mapping.start.0..mapping.end.0;
        unwinder.add_module(Module::new(path.display().to_string(), range, base, info));
    }
    unwinder
}
