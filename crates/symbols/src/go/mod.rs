//! Functions, lines and inlined calls of Go programs, by the tables of Go's own runtime: `strip`
//! leaves them, because Go walks its stacks by them.
//!
//! ```text
//!  pclntab ── header ──┬── names, files: texts                              header.rs
//!                      ├── functions: by address, a record for each
//!                      │     ├ numbers that change along its code           values.rs
//!                      │     │  (file, line, inlined call)
//!                      │     └ its tree of inlined calls, as an offset ──┐
//!                      └── units: which file a number means              │
//!  module data ── where the code begins, and those trees ────────────────┘  module_data.rs
//! ```
//! The layouts are those of Go 1.18 (1.18 and 1.19) and 1.20 (that and all later ones), of 64 bits.
//! Sources: `src/runtime/{symtab,symtabinl,runtime2}.go`, `src/cmd/link/internal/ld/pcln.go`.

mod find;
mod header;
mod module_data;
#[cfg(test)]
mod synthetic;
mod values;

use std::ops::Range;

use crate::bytes::Bytes;
use crate::image::Image;
use header::Header;
use module_data::{InlinedCalls, ModuleData};
use values::Values;

/// The tables of a Go program.
pub(crate) struct GoTable<'data> {
    header: Header<'data>,
    /// The address that offsets of functions begin at.
    text: u64,
    inlined: Option<InlinedCalls<'data>>,
    values: Values<'data>,
}

/// A function in the code of a program.
#[derive(Clone, Copy)]
struct Function {
    start: u64,
    end: u64,
    /// The place of its record.
    record: usize,
}

/// A function at an address, innermost first: inlined ones, then the one that has the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GoFrame<'data> {
    pub(crate) function: &'data [u8],
    pub(crate) file: Option<&'data [u8]>,
    pub(crate) line: Option<u32>,
    pub(crate) inlined: bool,
}

impl<'data> GoTable<'data> {
    /// The most functions that are inlined into each other.
    const DEEPEST: usize = 256;

    /// The tables of a file; `None` if it is no Go program, or of a version before 1.18.
    pub(crate) fn of(image: &Image<'data>) -> Option<Self> {
        /// A damaged file may have any number, and the whole file is searched for what each needs.
        const MOST: usize = 4;
        let headers = find::tables(image)
            .filter_map(|(address, bytes)| Some((address, Header::parse(bytes)?)));
        headers.take(MOST).find_map(|(address, header)| {
            let data = ModuleData::find(image, address, &header);
            let text = match &data {
                Some(data) => data.text,
                None => find::start_of_text(image, &header)?,
            };
            Some(Self {
                values: Values::new(header.values, header.quantum),
                inlined: data.and_then(|data| data.inlined_calls(image, &header)),
                header,
                text,
            })
        })
    }

    /// The bounds and the name of the function that has the code at an address.
    pub(crate) fn function(&self, address: u64) -> Option<(Range<u64>, &'data [u8])> {
        let function = self.find(address)?;
        Some((function.start..function.end, self.name(function)?))
    }

    /// The functions at an address. Empty if it is in no function of Go.
    pub(crate) fn frames(&self, address: u64) -> Vec<GoFrame<'data>> {
        let mut frames = Vec::new();
        let Some(function) = self.find(address) else {
            return frames;
        };
        let Some(own) = self.name(function) else {
            return frames;
        };
        let mut at = address;
        while frames.len() < Self::DEEPEST {
            let call = self.inlined_call(function, at);
            let (file, line) = match call {
                // Lines are those of a call that is not known.
                Call::Unknown => (None, None),
                _ => (self.file(function, at), self.line(function, at)),
            };
            let (name, inlined) = match call {
                Call::Inlined { name, .. } => (name, true),
                _ => (own, false),
            };
            frames.push(GoFrame {
                function: name,
                file,
                line,
                inlined,
            });
            match call {
                Call::Inlined { called_at, .. } => at = called_at,
                _ => return frames,
            }
        }
        // A damaged table, whose calls are in a circle.
        Vec::new()
    }

    fn find(&self, address: u64) -> Option<Function> {
        let offset = u32::try_from(address.checked_sub(self.text)?).ok()?;
        let (mut low, mut high) = (0, self.header.count);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.header.entry(middle)? <= offset {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        let index = low.checked_sub(1)?;
        let end = self.header.entry(low)?;
        let start = self.header.entry(index)?;
        (start..end).contains(&offset).then_some(())?;
        let address = |offset: u32| self.text.checked_add(offset.into());
        Some(Function {
            start: address(start)?,
            end: address(end)?,
            record: self.header.record(index)?,
        })
    }

    fn name(&self, function: Function) -> Option<&'data [u8]> {
        let offset = self.header.functions.u32(function.record.checked_add(4)?)?;
        self.header.name(offset)
    }

    /// The value of a function's table, which its record names at this offset.
    fn value(&self, function: Function, table: usize, address: u64) -> Option<i32> {
        let place = function.record.checked_add(table)?;
        let table = self.header.functions.u32(place)?;
        self.values.at(table, address.checked_sub(function.start)?)
    }

    fn file(&self, function: Function, address: u64) -> Option<&'data [u8]> {
        const FILE: usize = 20;
        const UNIT: usize = 32;
        let number = u32::try_from(self.value(function, FILE, address)?).ok()?;
        let unit = self
            .header
            .functions
            .u32(function.record.checked_add(UNIT)?)?;
        self.header.file(unit.checked_add(number)?)
    }

    fn line(&self, function: Function, address: u64) -> Option<u32> {
        const LINE: usize = 24;
        let line = u32::try_from(self.value(function, LINE, address)?).ok()?;
        (line > 0).then_some(line)
    }

    /// The inlined call that an address is in.
    fn inlined_call(&self, function: Function, address: u64) -> Call<'data> {
        /// `PCDATA_InlTreeIndex`
        const INDEX: u32 = 2;
        let Some(record) = self.header.tables_of(function.record) else {
            return Call::None;
        };
        if record.values <= INDEX {
            return Call::None;
        }
        let place = record.first + 4 * INDEX as usize;
        let index = self.value(function, place - function.record, address);
        let Some(index) = index.and_then(|index| usize::try_from(index).ok()) else {
            return Call::None;
        };
        let call = || {
            let call = self
                .inlined
                .as_ref()?
                .call(record.inline_tree(&self.header)?, index)?;
            let name = self.header.name(call.name)?;
            let called_at = function.start.checked_add(call.called_at.into())?;
            Some(Call::Inlined { name, called_at })
        };
        call().unwrap_or(Call::Unknown)
    }
}

/// The inlined call that an address is in.
#[derive(Clone, Copy)]
enum Call<'data> {
    /// The function's own code.
    None,
    /// The called function, and where the call was.
    Inlined { name: &'data [u8], called_at: u64 },
    /// There is one, but nothing says which.
    Unknown,
}
