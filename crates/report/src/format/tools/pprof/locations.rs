//! Locations, functions and mappings of a pprof profile.

use std::cmp::max;

use prof_model::{Module, ModuleId};
use rustc_hash::FxHashMap;

use crate::filter::filtered_samples::FilteredSamples;
use crate::profile::{Frame, FrameId, StackId};
use crate::symbolize::Location as Place;

use super::message::{Function, Line, Location, Mapping};
use crate::format::tools::strings::StringTable;

/// Locations by frame, functions by name and file, mappings by module.
pub(super) struct Locations<'a, 'p> {
    shown: &'a FilteredSamples<'p>,
    locations: Vec<(FrameId, Location)>,
    /// By frame id: the location's id, 0 if there is none yet.
    location_ids: Vec<u64>,
    functions: Vec<Function>,
    function_ids: FxHashMap<(i64, i64), u64>,
    /// By module, in the order of first use: the offset after its last sampled byte.
    modules: Vec<(ModuleId, u64)>,
}

/// The tables of the profile.
pub(super) struct Tables {
    pub(super) mappings: Vec<Mapping>,
    pub(super) locations: Vec<Location>,
    pub(super) functions: Vec<Function>,
}

impl<'a, 'p> Locations<'a, 'p> {
    pub(super) fn new(shown: &'a FilteredSamples<'p>) -> Self {
        Self {
            shown,
            locations: Vec::new(),
            location_ids: vec![0; shown.symbolized().profile().frames.len()],
            functions: Vec::new(),
            function_ids: FxHashMap::default(),
            modules: Vec::new(),
        }
    }

    /// The locations of a stack, innermost first.
    pub(super) fn of_stack(&mut self, stack: StackId, strings: &mut StringTable) -> Vec<u64> {
        let shown = self.shown;
        let frames = shown.frames(stack);
        let mut ids: Vec<u64> = Vec::new();
        for frame in frames {
            if self.location_ids[frame.index()] == 0 {
                self.add(frame, strings);
            }
            ids.push(self.location_ids[frame.index()]);
        }
        ids
    }

    fn add(&mut self, frame: FrameId, strings: &mut StringTable) {
        let id = self.locations.len() as u64 + 1;
        let places = self.shown.locations(frame);
        let line = places.iter().map(|place| self.line(place, strings));
        let line = line.collect();
        if let Frame::Module { module, offset } = self.shown.symbolized().profile().frames[frame] {
            self.touch(module, offset.0.saturating_add(1));
        }
        self.location_ids[frame.index()] = id;
        let location = Location {
            id,
            line,
            ..Location::default()
        };
        self.locations.push((frame, location));
    }

    fn line(&mut self, place: &Place, strings: &mut StringTable) -> Line {
        let function = &self.shown.symbolized()[place.function];
        let mut string = |text: &str| strings.index(text) as i64;
        let name = string(&function.name);
        let filename = place.file.as_deref().map_or(0, string);
        let functions = &mut self.functions;
        let id = self
            .function_ids
            .entry((name, filename))
            .or_insert_with(|| {
                let id = functions.len() as u64 + 1;
                functions.push(Function {
                    id,
                    name,
                    system_name: name,
                    filename,
                });
                id
            });
        Line {
            function_id: *id,
            line: place.line.map_or(0, i64::from),
        }
    }

    fn touch(&mut self, module: ModuleId, end: u64) {
        match self.modules.iter_mut().find(|(id, _)| *id == module) {
            Some((_, known)) => *known = max(*known, end),
            None => self.modules.push((module, end)),
        }
    }

    /// Places each module and with it its locations.
    pub(super) fn finish(mut self, strings: &mut StringTable) -> Tables {
        let profile = self.shown.symbolized().profile();
        let is_library = |module: ModuleId| {
            let name = profile.modules[module].short_name();
            name.contains(".so") || name.starts_with('[')
        };
        // The first mapping gives the profile its name.
        self.modules.sort_by_key(|&(module, _)| is_library(module));
        let mut mappings = Vec::new();
        let mut ids = FxHashMap::default();
        let mut start = FIRST_START;
        for &(module, end) in &self.modules {
            let id = mappings.len() as u64 + 1;
            let limit = start + end.min(LARGEST).next_multiple_of(PAGE);
            mappings.push(mapping(id, start..limit, &profile.modules[module], strings));
            ids.insert(module, (id, start));
            start = limit.next_multiple_of(ALIGNMENT) + ALIGNMENT;
        }
        let mut located = Vec::with_capacity(self.locations.len());
        for (frame, mut location) in self.locations {
            match profile.frames[frame] {
                Frame::Module { module, offset } => {
                    let (id, start) = ids.get(&module).copied().unwrap_or_default();
                    location.mapping_id = id;
                    location.address = start + offset.0.min(LARGEST - 1);
                    describe(&mut mappings, id, &location, self.shown.locations(frame));
                }
                Frame::Kernel(address) | Frame::Jit { address, .. } | Frame::Unknown(address) => {
                    location.address = address;
                }
                Frame::Named(_)
                | Frame::Cut(_)
                | Frame::LeftOut(_)
                | Frame::OnCpu
                | Frame::OffCpu => {}
            }
            located.push(location);
        }
        Tables {
            mappings,
            locations: located,
            functions: self.functions,
        }
    }
}

/// The address of the first module: programs are linked to it, and zero means none.
const FIRST_START: u64 = 0x40_0000;
const PAGE: u64 = 0x1000;
const ALIGNMENT: u64 = 0x10_0000;
/// No position in a file is beyond this; 256 modules of this size fit below the kernel's half.
const LARGEST: u64 = 1 << 38;

fn mapping(
    id: u64,
    range: std::ops::Range<u64>,
    module: &Module,
    strings: &mut StringTable,
) -> Mapping {
    let mut string = |text: &str| strings.index(text) as i64;
    Mapping {
        id,
        memory_start: range.start,
        memory_limit: range.end,
        filename: string(&module.path.to_string_lossy()),
        build_id: module.build_id.map_or(0, |id| string(&id.to_string())),
        ..Mapping::default()
    }
}

/// Readers look names up themselves unless a mapping says that it has them.
fn describe(mappings: &mut [Mapping], id: u64, location: &Location, places: &[&Place]) {
    let index = (id as usize).wrapping_sub(1);
    let Some(mapping) = mappings.get_mut(index) else {
        return;
    };
    mapping.has_functions = true;
    mapping.has_filenames |= places.iter().any(|place| place.file.is_some());
    mapping.has_line_numbers |= places.iter().any(|place| place.line.is_some());
    mapping.has_inline_frames |= location.line.len() > 1;
}
