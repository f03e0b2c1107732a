//! The frames that locations stand for.

use std::sync::Arc;

use prof_model::{BuildId, FileOffset, Module, ModuleId};
use prof_symbols::SymbolFrame;
use rustc_hash::FxHashMap;

use super::text;
use crate::format::pprof::message::{self, Location, Mapping};
use crate::load::imports::imported::{KERNEL, is_missing};
use crate::profile::{Frame, NamedFrame, Profile};
use crate::symbolize::FunctionKind;

/// What locations refer to, by id.
pub(super) struct Locations<'a> {
    message: &'a message::Tables,
    functions: FxHashMap<u64, &'a message::Function>,
    mappings: FxHashMap<u64, &'a Mapping>,
    strings: Strings,
}

impl<'a> Locations<'a> {
    pub(super) fn of(message: &'a message::Tables) -> Self {
        let functions = message.function.iter();
        let mappings = message.mapping.iter();
        Self {
            message,
            functions: functions.map(|function| (function.id, function)).collect(),
            mappings: mappings.map(|mapping| (mapping.id, mapping)).collect(),
            strings: Strings::default(),
        }
    }

    /// All texts that a location refers to.
    pub(super) fn texts(&self, location: &Location) -> impl Iterator<Item = &'a str> {
        let functions = location.line.iter();
        let functions = functions.filter_map(|line| self.functions.get(&line.function_id));
        let names = functions.flat_map(|function| [function.name, function.filename]);
        let mapping = self.mapping(location).map(|mapping| mapping.filename);
        names.chain(mapping).map(|index| text(self.message, index))
    }

    /// The frame of a location.
    pub(super) fn frame(&mut self, location: &Location, profile: &mut Profile) -> Frame {
        match location.line.is_empty() {
            true => self.unnamed(location, profile),
            false => Frame::Named(profile.named.intern(self.named(location))),
        }
    }

    fn mapping(&self, location: &Location) -> Option<&'a Mapping> {
        self.mappings.get(&location.mapping_id).copied()
    }

    fn named(&mut self, location: &Location) -> NamedFrame {
        let (message, mapping) = (self.message, self.mapping(location));
        let last = location.line.len() - 1;
        let functions = location.line.iter().enumerate().map(|(index, line)| {
            let function = self.functions.get(&line.function_id);
            let name = function.map_or(0, |function| function.name);
            let file = function.map_or(0, |function| function.filename);
            let name = self.strings.shared(message, name);
            let file = self.strings.shared(message, file);
            SymbolFrame {
                function: if name.is_empty() {
                    Arc::from("[no name]")
                } else {
                    name
                },
                file: (!file.is_empty()).then_some(file),
                line: u32::try_from(line.line).ok().filter(|&line| line > 0),
                inlined: index < last,
            }
        });
        let functions: Vec<_> = functions.collect();
        let module = mapping.map_or("", |mapping| text(message, mapping.filename));
        let module = Module::from_path(module).short_name();
        let kind = kind(location, &module, &functions);
        let module = match kind {
            FunctionKind::Kernel => KERNEL,
            _ => &module,
        };
        NamedFrame {
            kind,
            module: Arc::from(module),
            functions,
        }
    }

    /// The place of code without a name.
    fn unnamed(&self, location: &Location, profile: &mut Profile) -> Frame {
        let mapping = self.mapping(location);
        let Some(mapping) = mapping.filter(|mapping| mapping.filename != 0) else {
            return Frame::Unknown(location.address);
        };
        let module = Module {
            build_id: build_id(text(self.message, mapping.build_id)),
            ..Module::from_path(text(self.message, mapping.filename))
        };
        let module: ModuleId = profile.modules.intern(module);
        let offset = location.address.wrapping_sub(mapping.memory_start);
        Frame::Module {
            module,
            offset: FileOffset(offset.wrapping_add(mapping.file_offset)),
        }
    }
}

/// Texts by their place in the table, each copied once.
#[derive(Default)]
struct Strings(FxHashMap<i64, Arc<str>>);

impl Strings {
    fn shared(&mut self, message: &message::Tables, index: i64) -> Arc<str> {
        let shared = self.0.entry(index);
        Arc::clone(shared.or_insert_with(|| Arc::from(text(message, index))))
    }
}

fn build_id(hex: &str) -> Option<BuildId> {
    let digits = hex.as_bytes().chunks_exact(2).map(|pair| {
        let pair = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(pair, 16).ok()
    });
    BuildId::new(&digits.collect::<Option<Vec<u8>>>()?)
}

fn kind(location: &Location, module: &str, functions: &[SymbolFrame]) -> FunctionKind {
    /// The kernel's half of the address space begins here.
    const KERNEL: u64 = 1 << 63;
    let physical = functions.last().map_or("", |function| &function.function);
    if is_missing(physical) {
        FunctionKind::Missing
    } else if location.address >= KERNEL || module.starts_with("[kernel") {
        FunctionKind::Kernel
    } else {
        FunctionKind::User
    }
}
