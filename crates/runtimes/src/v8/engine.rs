//! V8 in a process, and its functions that were seen.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use prof_model::{Account, Charge};

use super::code::{CompiledCode, words_of};
use super::function::SharedInfo;
use super::layout::Layout;
use super::object::Object;
use super::script::Scripts;
use crate::Memory;
use crate::bounded_map::{BoundedMap, entry};
use crate::read::word;
use crate::synthetic::{Line, SyntheticAddresses};

/// The words below the frame pointer of a frame, the nearest first.
pub type FrameWords = [u64; 4];

/// Where the code is that a frame runs.
#[derive(Clone, Copy, Debug)]
pub enum CodePlace {
    /// At this address: it was compiled at run time.
    RunTime(u64),
    /// At this offset of the file.
    InFile(u64),
}

/// V8 in a process.
///
/// The function of optimized code is found by the code. In other frames, the memory of a function
/// that V8 has moved since the sample may hold another one: it is believed if it has the bytecodes
/// that the frame has.
#[derive(Debug)]
pub struct V8 {
    layout: Layout,
    file_code: FileCode,
    /// Whether code in the file is the interpreter's, by offsets that were seen, if it has no
    /// symbols.
    interprets: BoundedMap<u64, bool>,
    compiled: CompiledCode,
    /// The functions of arrays of bytecodes.
    bytecodes: BoundedMap<u64, Bytecodes>,
    /// By their `SharedFunctionInfo`.
    functions: BoundedMap<Object, Function>,
    scripts: Scripts,
    names: Names,
}

/// Which function has an array of bytecodes.
#[derive(Clone, Copy, Debug)]
struct Bytecodes {
    function: Object,
    /// When it was last read.
    read_at: u64,
}

/// The parts of the file that have V8's own code: V8 may map them twice.
#[derive(Clone, Debug, Default)]
pub struct FileCode {
    /// All of it; `None` if its symbols are unknown.
    pub builtins: Option<Range<u64>>,
    /// That of the interpreter, in which all functions run that are not compiled; `None` if its
    /// symbols are unknown.
    pub interpreter: Option<Range<u64>>,
}

#[derive(Clone, Copy, Debug)]
struct Function {
    info: SharedInfo,
    /// What represents it; `None` if it has no name.
    address: Option<u64>,
    /// When it was last read.
    read_at: u64,
}

/// The names of functions, with the addresses that represent them.
#[derive(Debug)]
struct Names {
    addresses: SyntheticAddresses,
    known: BTreeMap<String, u64>,
    charge: Charge,
}

impl V8 {
    /// What was read is right for this time, in nanoseconds.
    const LASTS: u64 = 1_000_000_000;

    /// V8 with the values of its variables for debuggers, by their names without `v8dbg_`; `None`
    /// if one is missing.
    pub fn new(
        constants: &HashMap<String, i32>,
        file_code: FileCode,
        account: &Account,
    ) -> Option<Self> {
        Some(Self {
            layout: Layout::new(constants)?,
            file_code,
            interprets: BoundedMap::new(account),
            compiled: CompiledCode::new(account),
            bytecodes: BoundedMap::new(account),
            functions: BoundedMap::new(account),
            scripts: Scripts::new(account),
            names: Names {
                addresses: SyntheticAddresses::default(),
                known: BTreeMap::new(),
                charge: account.for_names(),
            },
        })
    }

    /// Whether the code at this offset of the file is V8's own.
    pub fn is_builtin(&self, file_offset: u64) -> bool {
        let builtins = self.file_code.builtins.as_ref();
        builtins.is_some_and(|code| code.contains(&file_offset))
    }

    /// Where the code that was compiled at run time and is at this address begins, at a time in
    /// nanoseconds.
    pub fn code_start(&mut self, memory: &mut impl Memory, address: u64, now: u64) -> Option<u64> {
        let times = (now, Self::LASTS);
        self.compiled.at(&self.layout, memory, address, times).start
    }

    /// The [address](crate::SyntheticCode) that represents, in recordings, the function of a frame
    /// of compiled code or of the interpreter, at a time in nanoseconds; `None` if it is unknown,
    /// or the frame is of something else. `words`: `None` if the frame is incomplete.
    pub fn function(
        &mut self,
        memory: &mut impl Memory,
        code: CodePlace,
        words: Option<&FrameWords>,
        now: u64,
    ) -> Option<u64> {
        let function = match code {
            CodePlace::RunTime(address) => {
                let times = (now, Self::LASTS);
                let code = self.compiled.at(&self.layout, memory, address, times);
                code.function.or_else(|| self.of_frame(memory, words?, now))
            }
            CodePlace::InFile(offset) => {
                let words = words?;
                let bytecodes = *words.get(self.layout.frame.bytecodes)?;
                let interprets = self.interprets_at(memory, offset, bytecodes);
                interprets.then(|| self.of_frame(memory, words, now))?
            }
        };
        self.address_of(memory, function?, now)
    }

    /// The `SharedFunctionInfo` of a frame with bytecodes.
    fn of_frame(
        &mut self,
        memory: &mut impl Memory,
        words: &FrameWords,
        now: u64,
    ) -> Option<Object> {
        let frame = self.layout.frame;
        // Other frames have a number there.
        Object::tagged(*words.get(frame.context)?)?;
        let function = Object::tagged(*words.get(frame.function)?)?;
        let bytecodes = *words.get(frame.bytecodes)?;
        let known = self.bytecodes.get(&bytecodes).copied();
        if let Some(known) = known
            && now.saturating_sub(known.read_at) < Self::LASTS
        {
            return Some(known.function);
        }
        let shared = function.object(memory, self.layout.shared);
        let has_them = shared.is_some_and(|it| self.has(memory, it, bytecodes) == Some(true));
        let function = match (shared.filter(|_| has_them), known) {
            (Some(shared), _) => shared,
            // The function has moved, or the process has ended: what it had then is right for its
            // last samples.
            (None, Some(known)) if self.has(memory, known.function, bytecodes) != Some(false) => {
                known.function
            }
            (None, _) => return None,
        };
        let read_at = now;
        let read = Bytecodes { function, read_at };
        self.bytecodes.insert(bytecodes, read);
        Some(function)
    }

    /// Whether a function has these bytecodes, given its `SharedFunctionInfo`: directly, or in an
    /// object of the interpreter's or of baseline code. `None`: that cannot be read.
    fn has(&self, memory: &mut impl Memory, shared: Object, bytecodes: u64) -> Option<bool> {
        /// What the function runs.
        const DATA: u64 = 8;
        /// The first fields of such objects.
        const PARTS: usize = 2;
        let data = word(memory, shared.at(DATA))?;
        if data == bytecodes {
            return Some(true);
        }
        let Some(data) = Object::tagged(data) else {
            return Some(false);
        };
        let parts = words_of(memory, data);
        Some(parts.iter().take(PARTS).any(|&part| {
            part == bytecodes || {
                // Baseline code of a function that has a copy of the interpreter.
                let part = Object::tagged(part);
                part.is_some_and(|part| words_of(memory, part).first() == Some(&bytecodes))
            }
        }))
    }

    /// Whether this code in the file is the interpreter's, if the word for bytecodes in its frame
    /// is this one.
    fn interprets_at(&mut self, memory: &mut impl Memory, offset: u64, bytecodes: u64) -> bool {
        if let Some(interpreter) = &self.file_code.interpreter {
            return interpreter.contains(&offset);
        }
        if let Some(&known) = self.interprets.get(&offset) {
            return known;
        }
        let interprets = match Object::tagged(bytecodes) {
            Some(object) => match object.instance_type(&self.layout, memory) {
                Some(kind) => kind == self.layout.types.bytecodes,
                None => return false,
            },
            None => false,
        };
        self.interprets.insert(offset, interprets);
        interprets
    }

    /// What represents a function, given its `SharedFunctionInfo`; `None` if it has no name.
    fn address_of(&mut self, memory: &mut impl Memory, shared: Object, now: u64) -> Option<u64> {
        let layout = &self.layout;
        let known = self.functions.get(&shared).copied();
        if let Some(known) = known
            && now.saturating_sub(known.read_at) < Self::LASTS
        {
            return known.address;
        }
        let Some(info) = SharedInfo::read(layout, memory, shared) else {
            return known?.address;
        };
        let known = known.filter(|known| known.info == info);
        let address = match known.and_then(|known| known.address) {
            Some(address) => Some(address),
            None => {
                let name = info.function_name(layout, memory, &mut self.scripts);
                name.and_then(|name| self.names.add(name))
            }
        };
        let read = Function {
            info,
            address,
            read_at: now,
        };
        self.functions.insert(shared, read);
        address
    }

    /// Forgets all names so far.
    pub fn forget_names(&mut self) {
        let account = self.names.charge.account().clone();
        account.leave_out();
        self.functions = BoundedMap::new(&account);
        self.names.known = BTreeMap::new();
        self.names.charge.clear();
    }

    /// Adds the names of the functions that were seen to a perf map: lines of `START SIZE NAME`.
    pub fn write_perf_map(&self, map: &mut String) {
        for (name, &address) in &self.names.known {
            Line::of_function(address, name.clone()).write(map);
        }
    }
}

impl Names {
    /// The address that represents the functions of this name; `None` if there is no room for it.
    fn add(&mut self, name: String) -> Option<u64> {
        if let Some(&address) = self.known.get(&name) {
            return Some(address);
        }
        if !self.charge.add(name.len() + entry::<String, u64>()) {
            self.charge.account().leave_out();
            return None;
        }
        let address = self.addresses.add_function();
        self.known.insert(name, address);
        Some(address)
    }
}
