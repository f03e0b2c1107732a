//! The groups that views are split into: threads, processes, CPUs, with their names.

use std::borrow::Cow;

use prof_model::{Pid, Tid};
use rustc_hash::FxHashMap;

use crate::calltree::Split;
use crate::filter::Filter;
use crate::profile::{Profile, Sample, ThreadNameId, is_unnamed};

/// The groups of a profile, in the order of their first sample.
pub(crate) struct Groups<'p> {
    profile: &'p Profile,
    split: Split,
    /// Whether threads whose names have become one are one.
    merges: bool,
    /// By thread name id: the first name that becomes equal by merging.
    groups: Vec<ThreadNameId>,
    /// By thread name id: the merged name.
    names: Vec<Cow<'p, str>>,
    numbers: FxHashMap<Key, u32>,
    parts: Vec<Part>,
}

/// The key of a group.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    All,
    Name(ThreadNameId),
    Thread(Pid, Tid),
    /// Threads of one process that are merged.
    Threads(Pid, ThreadNameId),
    Process(Pid),
    Cpu(Option<u32>),
}

struct Part {
    key: Key,
    name: ThreadNameId,
}

impl<'p> Groups<'p> {
    pub(crate) fn new(profile: &'p Profile, filter: &Filter, split: Split) -> Self {
        let merged = |name: &'p str| match &filter.merge_threads {
            Some(pattern) => pattern.replace_all(name, "*"),
            None => Cow::Borrowed(name),
        };
        let names: Vec<Cow<'p, str>> = profile.names.iter().map(|(_, n)| merged(n)).collect();
        let mut first: FxHashMap<&str, ThreadNameId> = FxHashMap::default();
        let ids = profile.names.iter().map(|(id, _)| id);
        let groups = ids.map(|id| *first.entry(&names[id.index()]).or_insert(id));
        Self {
            profile,
            split,
            merges: filter.merge_threads.is_some(),
            groups: groups.collect(),
            names,
            numbers: FxHashMap::default(),
            parts: Vec::new(),
        }
    }

    /// The index of a sample's group, from zero in the order of first samples.
    pub(crate) fn number(&mut self, sample: &Sample) -> u32 {
        let key = self.key(sample);
        let name = sample.name;
        let is_named = !is_unnamed(&self.profile.names[name], sample.tid);
        let parts = &mut self.parts;
        let number = *self.numbers.entry(key).or_insert_with(|| {
            parts.push(Part { key, name });
            parts.len() as u32 - 1
        });
        // The last name: the first ones are often those of the parent.
        if is_named {
            parts[number as usize].name = name;
        }
        number
    }

    fn key(&self, sample: &Sample) -> Key {
        let group = self.groups[sample.name.index()];
        match self.split {
            Split::Nothing => Key::All,
            Split::Name => Key::Name(group),
            Split::Thread if self.merges => Key::Threads(sample.pid, group),
            Split::Thread => Key::Thread(sample.pid, sample.tid),
            Split::Process => Key::Process(sample.pid),
            Split::Cpu => Key::Cpu(sample.cpu),
        }
    }

    /// The names of all groups, by index (`cc1`, `worker 123/456`, `CPU 3`).
    pub(crate) fn into_names(self) -> Vec<String> {
        let processes = match self.split {
            Split::Process => self.profile.process_names(),
            _ => FxHashMap::default(),
        };
        let name = |part: &Part| {
            let name = &self.names[part.name.index()];
            match part.key {
                Key::All => "all".into(),
                Key::Name(_) => name.to_string(),
                Key::Thread(pid, tid) => format!("{name} {pid}/{tid}"),
                Key::Threads(pid, _) => format!("{name} {pid}"),
                Key::Process(pid) => {
                    let name = processes.get(&pid).copied().unwrap_or(part.name);
                    format!("{} {pid}", &self.profile.names[name])
                }
                Key::Cpu(Some(cpu)) => format!("CPU {cpu}"),
                Key::Cpu(None) => "CPU unknown".into(),
            }
        };
        self.parts.iter().map(name).collect()
    }
}
