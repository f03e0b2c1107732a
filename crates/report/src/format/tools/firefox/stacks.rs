//! From our stacks to the shared tables.

use prof_model::{BuildId, Module, ModuleId};
use rustc_hash::FxHashMap;

use crate::filter::filtered_samples::FilteredSamples;
use crate::profile::{Frame, FrameId, StackId};
use crate::symbolize::{FunctionId, FunctionKind, Language, Languages, Location};

use super::tables::{
    Category, FrameRow, FrameTable, FuncTable, Lib, NativeSymbols, ResourceTable, SourceTable,
    StackTable, Tables,
};
use crate::format::tools::strings::StringTable;

/// Fills the shared tables with the samples' data.
pub(super) struct Stacks<'a, 'p> {
    shown: &'a FilteredSamples<'p>,
    languages: Languages,
    /// By stack id: its index in `stack_table`; the outer `None` if it was not processed.
    stack_places: Vec<Option<Option<usize>>>,
    stacks: FxHashMap<(Option<usize>, usize), usize>,
    stack_table: StackTable,
    frames: FxHashMap<FrameRow, usize>,
    frame_table: FrameTable,
    funcs: FxHashMap<FunctionId, usize>,
    func_table: FuncTable,
    func_files: Vec<Option<&'p str>>,
    sources: FxHashMap<&'p str, usize>,
    source_table: SourceTable,
    resources: FxHashMap<ModuleId, usize>,
    resource_table: ResourceTable,
    libs: Vec<Lib>,
    strings: StringTable,
}

impl<'a, 'p> Stacks<'a, 'p> {
    pub(super) fn new(shown: &'a FilteredSamples<'p>) -> Self {
        Self {
            shown,
            languages: Languages::of(shown.symbolized()),
            stack_places: vec![None; shown.symbolized().profile().stacks.len()],
            stacks: FxHashMap::default(),
            stack_table: StackTable::default(),
            frames: FxHashMap::default(),
            frame_table: FrameTable::default(),
            funcs: FxHashMap::default(),
            func_table: FuncTable::default(),
            func_files: shown.files(),
            sources: FxHashMap::default(),
            source_table: SourceTable::default(),
            resources: FxHashMap::default(),
            resource_table: ResourceTable::default(),
            libs: Vec::new(),
            strings: StringTable::default(),
        }
    }

    /// The index of a stack, `None` if nothing of it is shown.
    pub(super) fn index(&mut self, stack: StackId) -> Option<usize> {
        let symbolized = self.shown.symbolized();
        let mut pending = Vec::new();
        let mut place = None;
        let mut next = Some(stack);
        while let Some(id) = next {
            if let Some(known) = self.stack_places[id.index()] {
                place = known;
                break;
            }
            pending.push(id);
            next = symbolized.prefix(id);
        }
        for id in pending.into_iter().rev() {
            place = self.call(place, symbolized.profile().stacks.frame(id));
            self.stack_places[id.index()] = Some(place);
        }
        place
    }

    /// The stack of `callers` with a frame and the functions inlined there.
    fn call(&mut self, callers: Option<usize>, frame: FrameId) -> Option<usize> {
        let shown = self.shown;
        let mut stack = callers;
        for (depth, location) in shown.locations(frame).iter().rev().enumerate() {
            let frame = self.frame(frame, location, depth);
            let stacks = &mut self.stack_table;
            let new = || stacks.push(stack, frame);
            stack = Some(*self.stacks.entry((stack, frame)).or_insert_with(new));
        }
        stack
    }

    fn frame(&mut self, frame: FrameId, location: &'p Location, depth: usize) -> usize {
        let kind = self.shown.symbolized()[location.function].kind;
        let func = self.func(frame, location.function);
        // The file belongs to the function; a line of another file would be misread.
        let is_there = location.file.as_deref() == self.func_files[location.function.index()];
        let row = FrameRow {
            func,
            category: category(kind, self.languages.get(location.function)),
            line: location.line.filter(|_| is_there),
            inline_depth: depth,
        };
        let frames = &mut self.frame_table;
        *self.frames.entry(row).or_insert_with(|| frames.push(row))
    }

    fn func(&mut self, frame: FrameId, function: FunctionId) -> usize {
        if let Some(&known) = self.funcs.get(&function) {
            return known;
        }
        let symbolized = self.shown.symbolized();
        let resource = match symbolized.profile().frames[frame] {
            Frame::Module { module, .. } => self.resource(module) as i64,
            _ => -1,
        };
        let source = self.func_files[function.index()].map(|file| self.source(file));
        let name = self.strings.index(&symbolized[function].name);
        let func = self.func_table.push(name, resource, source);
        self.funcs.insert(function, func);
        func
    }

    fn source(&mut self, file: &'p str) -> usize {
        let sources = &mut self.source_table;
        let strings = &mut self.strings;
        let new = || sources.push(strings.index(file));
        *self.sources.entry(file).or_insert_with(new)
    }

    fn resource(&mut self, id: ModuleId) -> usize {
        if let Some(&known) = self.resources.get(&id) {
            return known;
        }
        let profile = self.shown.symbolized().profile();
        let lib = lib(&profile.modules[id], profile.header.arch.as_deref());
        let name = self.strings.index(&lib.name);
        let resource = self.resource_table.push(self.libs.len(), name);
        self.libs.push(lib);
        self.resources.insert(id, resource);
        resource
    }

    /// The number of a string in the table that all share.
    pub(super) fn string(&mut self, text: &str) -> usize {
        self.strings.index(text)
    }

    pub(super) fn finish(self) -> (Tables, Vec<Lib>) {
        let tables = Tables {
            stack_table: self.stack_table,
            frame_table: self.frame_table,
            func_table: self.func_table,
            resource_table: self.resource_table,
            native_symbols: NativeSymbols::default(),
            sources: self.source_table,
            string_array: self.strings.into_strings(),
        };
        (tables, self.libs)
    }
}

/// The categories of code without a language. The profiler needs a grey one; markers have the
/// first.
const WITHOUT_LANGUAGE: [(&str, &str); 5] = [
    ("Other", "grey"),
    ("Missing", "grey"),
    ("Kernel", "orange"),
    ("Run-time code", "green"),
    ("No name", "darkgrey"),
];

/// All categories.
pub(super) fn categories() -> Vec<Category> {
    let of = |(name, color)| Category {
        name,
        color,
        subcategories: ["Other"],
    };
    let languages = Language::ALL.map(|language| (language.name(), color(language)));
    WITHOUT_LANGUAGE
        .into_iter()
        .chain(languages)
        .map(of)
        .collect()
}

/// One of the colours that the profiler has.
fn color(language: Language) -> &'static str {
    match language {
        Language::C => "yellow",
        Language::Cpp => "lightblue",
        Language::Rust => "brown",
        Language::Python => "blue",
        Language::Java | Language::JavaScript | Language::CSharp => "green",
        Language::Go | Language::Php | Language::Julia => "purple",
        Language::Ruby | Language::Erlang => "red",
        Language::Lua => "magenta",
    }
}

/// The index in [`categories`].
fn category(kind: FunctionKind, language: Option<Language>) -> usize {
    match (language, kind) {
        (Some(language), _) => WITHOUT_LANGUAGE.len() + language as usize,
        (None, FunctionKind::State) => 0,
        (None, FunctionKind::Missing) => 1,
        (None, FunctionKind::Kernel) => 2,
        (None, FunctionKind::Jit | FunctionKind::Interpreted(_)) => 3,
        (None, FunctionKind::User) => 4,
    }
}

fn lib(module: &Module, arch: Option<&str>) -> Lib {
    let name = module.short_name();
    let path = module.path.to_string_lossy().into_owned();
    Lib {
        arch: arch.unwrap_or_default().to_owned(),
        debug_name: name.clone(),
        debug_path: path.clone(),
        name,
        path,
        breakpad_id: breakpad_id(module.build_id.as_ref().map_or(&[], BuildId::as_bytes)),
        code_id: module.build_id.map(|id| id.to_string()),
    }
}

/// A build id as a debug id of Breakpad: the first 16 bytes as a little-endian GUID, and an age of
/// 0.
fn breakpad_id(build_id: &[u8]) -> String {
    const ORDER: [usize; 16] = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
    let byte = |index: usize| build_id.get(index).copied().unwrap_or(0);
    let mut text: String = ORDER.iter().map(|&i| format!("{:02X}", byte(i))).collect();
    text.push('0');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_ids_are_guids() {
        let build_id: Vec<u8> = (1..=20).collect();
        let expected = "0403020106050807090A0B0C0D0E0F100";
        assert_eq!(breakpad_id(&build_id), expected);
        assert_eq!(breakpad_id(&[]), "0".repeat(33));
    }
}
