//! A recording that is still being made: what was sampled lately and since the start. The stacks
//! and names that are held are bounded; the list of files that were ever mapped is not.
//!
//! ```text
//!   whole records ──> Loader ──samples──> SampleWeights: of each distinct sample, which decay
//!                       └─ frames, stacks, names: made anew of what samples need
//! ```

mod sample_weights;

use std::time::Duration;

use prof_filemap::MappedFile;
use prof_model::{Pid, Tid};
use prof_perfdata::{Error, Recording};
use rustc_hash::FxHashSet;

use super::{LoadOptions, Loader, StackCopies};
use crate::profile::{Profile, StackId, Weight};

pub use sample_weights::Span;

use sample_weights::SampleWeights;

/// A recording that is read while it is made.
pub struct StreamingProfile {
    recording: Recording,
    loader: Loader,
    weights: SampleWeights,
    /// With so many stacks and names, those that nothing has any more are dropped.
    most_stacks: usize,
}

impl StreamingProfile {
    /// So many stacks are no reason to look for such that can be dropped.
    const FEW_STACKS: usize = 20_000;

    /// Begins with what comes before the records, in pipe form.
    ///
    /// # Errors
    /// It is not the start of a recording.
    pub fn new(start: Vec<u8>) -> Result<Self, Error> {
        let recording = Recording::from_file(MappedFile::from(start))?;
        let options = LoadOptions {
            stack_copies: StackCopies::Ignore,
            ..LoadOptions::default()
        };
        Ok(Self {
            loader: Loader::new(&options, &recording),
            recording,
            weights: SampleWeights::default(),
            most_stacks: Self::FEW_STACKS,
        })
    }

    /// Takes in whole records.
    pub fn push(&mut self, records: Vec<u8>) {
        let loader = &mut self.loader;
        self.recording.go_on(records);
        loop {
            loader.learn_events(&self.recording);
            loader.learn_build_ids(&self.recording);
            let Some(record) = self.recording.next() else {
                break;
            };
            // Stacks are not unwound here, so no sample has to wait.
            loader.push(&record);
        }
        let samples = std::mem::take(&mut loader.collector.profile.samples);
        samples.iter().for_each(|sample| self.weights.add(&sample));
        loader.collector.profile.thread_lifetimes = Default::default();
        self.weights.drop_lightest();
        if self.size() > self.most_stacks {
            self.drop_unused();
        }
    }

    /// So much time passes: what was sampled lately weighs less.
    pub fn pass(&mut self, time: Duration) {
        self.weights.decay(time);
    }

    /// The samples of this span, and the total of the recording so far.
    pub fn profile(&self, span: Span) -> Profile {
        let profile = Profile {
            samples: self.weights.samples(span),
            ..self.loader.collector.profile.clone()
        };
        self.loader.complete(profile, &self.recording)
    }

    /// The total since the start of stacks that are not held any more, because they are
    /// rare and there were too many.
    pub fn left_out(&self) -> Weight {
        self.weights.left_out()
    }

    /// How many stacks and names there are.
    fn size(&self) -> usize {
        let Loader {
            collector,
            current_names,
            ..
        } = &self.loader;
        let profile = &collector.profile;
        profile.stacks.len() + profile.names.iter().count() + current_names.ended()
    }

    /// Makes all tables anew of what samples need.
    fn drop_unused(&mut self) {
        let profile = &mut self.loader.collector.profile;
        let stacks = std::mem::take(&mut profile.stacks);
        let frames = std::mem::take(&mut profile.frames);
        let names = std::mem::take(&mut profile.names);
        let mut used = vec![false; stacks.len()];
        for stack in self.weights.stacks() {
            used[stack.index()] = true;
        }
        for stack in stacks.iter().rev() {
            if let Some(prefix) = stacks.prefix(stack)
                && used[stack.index()]
            {
                used[prefix.index()] = true;
            }
        }
        let mut renamed: Vec<Option<StackId>> = Vec::with_capacity(stacks.len());
        for stack in stacks.iter() {
            let number = used[stack.index()].then(|| {
                let prefix = stacks.prefix(stack);
                let prefix = prefix.and_then(|prefix| renamed[prefix.index()]);
                let frame = profile.frames.intern(frames[stacks.frame(stack)]);
                profile.stacks.intern(prefix, frame)
            });
            renamed.push(number);
        }
        self.weights.rename(|stack, name| {
            let stack = renamed[stack.index()].unwrap_or(stack);
            (stack, profile.names.intern(&names[name]))
        });
        let threads = self.weights.threads();
        let threads: FxHashSet<(Pid, Tid)> = threads
            .flat_map(|(pid, tid)| [(pid, tid), (pid, pid)])
            .collect();
        self.loader
            .renumber(|pid, tid| threads.contains(&(pid, tid)));
        self.most_stacks = Self::FEW_STACKS.max(2 * self.size());
    }
}

#[cfg(test)]
mod tests;
