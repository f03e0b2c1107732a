//! Addresses to interned frames and stacks.

use prof_model::{
    AbsoluteAddress, InterpretedFunction, ModuleKind, Pid, Process, Processes, StackEnd,
    short_file_name,
};
use prof_symbols::SymbolFrame;
use rustc_hash::FxHashMap;

use super::chain::Chain;
use crate::profile::{Frame, FrameId, FunctionKind, NamedFrame, Profile, StackId};

/// Remembers what addresses of each process stand for, as long as its mappings stay.
#[derive(Clone, Debug, Default)]
pub(in crate::load) struct Interner {
    processes: FxHashMap<Pid, Known>,
}

/// The frames of a process's addresses.
#[derive(Clone, Debug, Default)]
struct Known {
    /// The [version](Process::version) of the process, if anything was heard of it.
    version: u64,
    frames: FxHashMap<u64, FrameId>,
    /// How the last stack began.
    path: Path,
}

/// The outer part of a process's last user stack, outermost frame first: the next one mostly begins
/// like it, which saves looking everything up again.
#[derive(Clone, Debug, Default)]
struct Path {
    /// The stack outside of it.
    base: Option<StackId>,
    addresses: Vec<u64>,
    stacks: Vec<StackId>,
}

/// Whose stack it is.
#[derive(Clone, Copy)]
pub(in crate::load) struct Owner<'a> {
    pub(in crate::load) pid: Pid,
    /// Its mappings.
    pub(in crate::load) process: Option<&'a Process>,
}

impl Path {
    /// Shortens it to what it has in common with a stack on this base, innermost frame first;
    /// returns how many frames that is.
    fn common(&mut self, base: Option<StackId>, user: &[u64]) -> usize {
        if self.base != base {
            *self = Self {
                base,
                ..Self::default()
            };
        }
        let pairs = self.addresses.iter().zip(user.iter().rev());
        let common = pairs
            .take_while(|(known, address)| known == address)
            .count();
        self.addresses.truncate(common);
        self.stacks.truncate(common);
        common
    }
}

impl Interner {
    /// Forgets a process that is no more.
    pub(in crate::load) fn forget(&mut self, pid: Pid) {
        self.processes.remove(&pid);
    }

    /// Forgets the processes that are no more, or have other mappings now.
    pub(in crate::load) fn forget_old(&mut self, processes: &Processes) {
        self.processes
            .retain(|&pid, known| version(processes.get(pid)) == known.version);
    }

    /// A process with its present mappings.
    fn known(&mut self, pid: Pid, process: Option<&Process>) -> &mut Known {
        let known = self.processes.entry(pid).or_default();
        let version = version(process);
        if known.version != version {
            *known = Known {
                version,
                ..Known::default()
            };
        }
        known
    }

    /// The stack of a chain: user frames, then kernel frames, from the outermost inwards, with
    /// marks where frames are missing. All of it stands on `root`, if there is one.
    pub(in crate::load) fn stack(
        &mut self,
        root: Option<Frame>,
        chain: &Chain,
        owner: Owner<'_>,
        profile: &mut Profile,
    ) -> StackId {
        let note = chain.note;
        let root = root.map(|root| mark(profile, None, root));
        let mut stack = root;
        if note.end.counts() && !note.end.is_whole() {
            let outer = match note.end {
                // The gap is further in.
                StackEnd::SkippedCaller => StackEnd::FramePointersEnded,
                end => end,
            };
            stack = Some(mark(profile, stack, Frame::Cut(outer)));
        }
        stack = match note.elided {
            0 => self.user_part(stack, &chain.user, owner, profile),
            _ => self.user_part_with_gap(stack, chain, owner, profile),
        };
        for &address in chain.kernel.iter().rev() {
            stack = Some(mark(profile, stack, Frame::Kernel(address)));
        }
        match stack {
            Some(stack) if Some(stack) != root => stack,
            _ if note.end == StackEnd::NotSeen => mark(profile, root, Frame::Cut(note.end)),
            _ => mark(profile, root, Frame::Cut(StackEnd::NoUserState)),
        }
    }

    fn user_part(
        &mut self,
        base: Option<StackId>,
        user: &[u64],
        Owner { pid, process }: Owner<'_>,
        profile: &mut Profile,
    ) -> Option<StackId> {
        if user.is_empty() {
            // Nothing to remember: the kernel alone also runs for processes that have just ended.
            return base;
        }
        let known = self.known(pid, process);
        let common = known.path.common(base, user);
        let mut stack = known.path.stacks.last().copied().or(base);
        for &address in user.iter().rev().skip(common) {
            let frame = known.frame(pid, process, address, profile);
            let next = profile.stacks.intern(stack, frame);
            known.path.addresses.push(address);
            known.path.stacks.push(next);
            stack = Some(next);
        }
        stack
    }

    /// The same for a stack with frames left out of its middle.
    fn user_part_with_gap(
        &mut self,
        mut stack: Option<StackId>,
        chain: &Chain,
        Owner { pid, process }: Owner<'_>,
        profile: &mut Profile,
    ) -> Option<StackId> {
        let note = chain.note;
        for (index, &address) in chain.user.iter().enumerate().rev() {
            let frame = self.user_frame(pid, process, address, profile);
            stack = Some(profile.stacks.intern(stack, frame));
            if index == note.elided_at as usize {
                stack = Some(mark(profile, stack, Frame::LeftOut(note.elided)));
            }
        }
        stack
    }

    /// The code that an address of a process stands for.
    pub(in crate::load) fn user_frame(
        &mut self,
        pid: Pid,
        process: Option<&Process>,
        address: u64,
        profile: &mut Profile,
    ) -> FrameId {
        let known = self.known(pid, process);
        known.frame(pid, process, address, profile)
    }
}

impl Known {
    fn frame(
        &mut self,
        pid: Pid,
        process: Option<&Process>,
        address: u64,
        profile: &mut Profile,
    ) -> FrameId {
        if let Some(&known) = self.frames.get(&address) {
            return known;
        }
        let frame = locate(pid, process, address, profile);
        let frame = profile.frames.intern(frame);
        self.frames.insert(address, frame);
        frame
    }
}

fn version(process: Option<&Process>) -> u64 {
    process.map_or(0, Process::version)
}

fn mark(profile: &mut Profile, stack: Option<StackId>, frame: Frame) -> StackId {
    let frame = profile.frames.intern(frame);
    profile.stacks.intern(stack, frame)
}

fn locate(pid: Pid, process: Option<&Process>, address: u64, profile: &mut Profile) -> Frame {
    let at = AbsoluteAddress(address);
    let mapping = process.and_then(|process| process.space().find(at));
    // A garbage frame pointer leads to data.
    let Some(mapping) = mapping.filter(|mapping| mapping.executable) else {
        return Frame::Unknown(address);
    };
    let module = &profile.modules[mapping.module];
    if InterpretedFunction::holds(address)
        && let Some(function) = module.path.to_str().and_then(InterpretedFunction::of_path)
    {
        let frame = interpreted_frame(function, mapping.file_offset_of(at).0);
        return Frame::Named(profile.named.intern(frame));
    }
    match module.kind {
        // The kernel's copies of probed instructions are no run-time code.
        ModuleKind::Anonymous if module.path.as_os_str() == PROBES => {
            Frame::Named(profile.named.intern(probed_instruction()))
        }
        ModuleKind::Anonymous => Frame::Jit { pid, address },
        _ => Frame::Module {
            module: mapping.module,
            offset: mapping.file_offset_of(at),
        },
    }
}

/// The kernel's page of a process in which a tool has set probes.
const PROBES: &str = "[uprobes]";

fn probed_instruction() -> NamedFrame {
    NamedFrame {
        module: PROBES.into(),
        kind: FunctionKind::User,
        functions: vec![SymbolFrame {
            function: PROBES.into(),
            file: None,
            line: None,
            inlined: false,
        }],
    }
}

/// An interpreted function at a line; 0 if that is not known.
fn interpreted_frame(function: InterpretedFunction, line: u64) -> NamedFrame {
    if function.is_missing() {
        let language = function.language.name();
        let name = format!("[no {language} frames: {}]", function.file);
        return NamedFrame {
            module: function.language.prefix().into(),
            kind: FunctionKind::Missing,
            functions: vec![SymbolFrame {
                function: name.into(),
                file: None,
                line: None,
                inlined: false,
            }],
        };
    }
    NamedFrame {
        module: short_file_name(&function.file).into(),
        kind: FunctionKind::Interpreted(function.language),
        functions: vec![SymbolFrame {
            function: function.name.into(),
            line: u32::try_from(line).ok().filter(|&line| line > 0),
            file: Some(function.file.as_str().into()),
            inlined: false,
        }],
    }
}
