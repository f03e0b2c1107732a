//! Several profiles as one.

use prof_model::ModuleId;
use prof_symbols::RecordedKernel;

use super::{Event, Frame, FrameId, NameId, Profile, Sample, StackId};

impl Profile {
    /// Adds the samples of `other`. Events of one name and unit become one, as do frames, stacks
    /// and names; samples are in time order again, by the clocks that the recordings have.
    pub fn append(&mut self, other: Self) {
        if self.is_blank() {
            *self = other;
            return;
        }
        let map = Map::new(self, &other);
        for sample in other.samples.iter() {
            self.samples.push(map.sample(sample));
        }
        self.samples.sort_by_time();
        self.lives.append(other.lives);
        self.quality.add(&other.quality);
        self.symbols = self.symbols.take().or(other.symbols);
        self.lacks.times |= other.lacks.times;
        self.lacks.threads |= other.lacks.threads;
        self.lacks.quality |= other.lacks.quality;
        if self.header != other.header {
            // What two recordings do not agree on is true of neither alone.
            self.header = super::Header {
                arch: self
                    .header
                    .arch
                    .take()
                    .filter(|arch| other.header.arch.as_ref() == Some(arch)),
                ..super::Header::default()
            };
        }
    }

    fn is_blank(&self) -> bool {
        self.events.is_empty() && self.samples.is_empty()
    }

    fn event(&mut self, event: &Event) -> u16 {
        let known = self.events.iter().position(|known| known == event);
        let index = known.unwrap_or_else(|| {
            self.events.push(event.clone());
            self.events.len() - 1
        });
        u16::try_from(index).unwrap_or(u16::MAX)
    }
}

/// From the numbers of one profile to those of another.
struct Map {
    events: Vec<u16>,
    names: Vec<NameId>,
    stacks: Vec<StackId>,
}

impl Map {
    fn new(into: &mut Profile, other: &Profile) -> Self {
        let modules = other.modules.iter();
        let modules: Vec<ModuleId> = modules
            .map(|(_, module)| into.modules.intern(module.clone()))
            .collect();
        let kernel = (into.kernel, other.kernel);
        let mut frames: Vec<FrameId> = Vec::with_capacity(other.frames.len());
        for (_, frame) in other.frames.iter() {
            let frame = match frame {
                Frame::Module { module, offset } => Frame::Module {
                    module: modules[module.index()],
                    offset,
                },
                Frame::Kernel(address) => same_kernel(kernel, address),
                Frame::Named(id) => Frame::Named(into.named.intern(other.named[id].clone())),
                frame => frame,
            };
            frames.push(into.frames.intern(frame));
        }
        let mut stacks: Vec<StackId> = Vec::with_capacity(other.stacks.len());
        for stack in other.stacks.iter() {
            // A stack comes after the one that it extends.
            let prefix = other.stacks.prefix(stack).map(|id| stacks[id.index()]);
            let frame = frames[other.stacks.frame(stack).index()];
            stacks.push(into.stacks.intern(prefix, frame));
        }
        let names = other.names.iter();
        Self {
            events: other.events.iter().map(|event| into.event(event)).collect(),
            names: names.map(|(_, name)| into.names.intern(name)).collect(),
            stacks,
        }
    }

    fn sample(&self, sample: Sample) -> Sample {
        let event = self.events.get(usize::from(sample.event));
        Sample {
            event: event.copied().unwrap_or(u16::MAX),
            name: self.names[sample.name.index()],
            stack: self.stacks[sample.stack.index()],
            ..sample
        }
    }
}

/// Where code of one boot's kernel is in another's: kernels of one build are moved as a whole from
/// boot to boot. Of another build nothing can be said.
fn same_kernel((into, other): (RecordedKernel, RecordedKernel), address: u64) -> Frame {
    if into == other {
        return Frame::Kernel(address);
    }
    match (into.text, other.text) {
        (Some(to), Some(from)) if into.build_id == other.build_id => {
            Frame::Kernel(address.wrapping_sub(from).wrapping_add(to))
        }
        _ => Frame::Unknown(address),
    }
}
