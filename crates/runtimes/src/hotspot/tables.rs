//! The tables that HotSpot publishes: arrays of entries, ended by an entry without a name.

use std::collections::HashMap;

use crate::Memory;

/// Symbols of libjvm.so: names, and addresses in the process.
pub(super) type Symbols<'a> = [(&'a str, u64)];

fn symbol(symbols: &Symbols<'_>, name: &str) -> Option<u64> {
    let mut symbols = symbols.iter();
    symbols.find_map(|&(known, address)| (known == name).then_some(address))
}

/// The content of the tables.
#[derive(Debug, Default)]
pub(super) struct Tables {
    /// `Type::field`.
    fields: HashMap<String, Field>,
    /// The sizes of types.
    sizes: HashMap<String, u64>,
    constants: HashMap<String, u64>,
}

impl Tables {
    /// Reads the tables whose symbols are at these addresses.
    pub(super) fn read(symbols: &Symbols<'_>, memory: &mut impl Memory) -> Option<Self> {
        let mut pages = Pages::new(memory);
        let mut tables = Self::default();
        let fields = Table::find(symbols, &mut pages, "Struct")?;
        let mut at = |field| fields.offset(symbols, &mut pages, field);
        let (owner, name, kind) = (at("TypeName")?, at("FieldName")?, at("TypeString")?);
        let (is_static, offset, address) = (at("IsStatic")?, at("Offset")?, at("Address")?);
        fields.each(&mut pages, owner, |pages, entry, owner| {
            let name = pages.text_of(entry, name)?;
            let is_static = pages.word(entry.checked_add(is_static)?)? & 0xffff_ffff != 0;
            let field = if is_static { address } else { offset };
            let at = pages.word(entry.checked_add(field)?)?;
            // Some have none.
            let kind = pages.text_of(entry, kind).unwrap_or_default();
            (tables.fields).insert(format!("{owner}::{name}"), Field { at, kind });
            Some(())
        })?;
        let types = Table::find(symbols, &mut pages, "Type")?;
        let name = types.offset(symbols, &mut pages, "TypeName")?;
        let size = types.offset(symbols, &mut pages, "Size")?;
        types.each(&mut pages, name, |pages, entry, name| {
            let value = pages.word(entry.checked_add(size)?)?;
            tables.sizes.insert(name, value);
            Some(())
        })?;
        let constants = Table::find(symbols, &mut pages, "IntConstant")?;
        let name = constants.offset(symbols, &mut pages, "Name")?;
        let value = constants.offset(symbols, &mut pages, "Value")?;
        constants.each(&mut pages, name, |pages, entry, name| {
            let value = pages.word(entry.checked_add(value)?)? & 0xffff_ffff;
            tables.constants.insert(name, value);
            Some(())
        })?;
        Some(tables)
    }

    /// The offset of a field, or its address if it is static.
    pub(super) fn field(&self, name: &str) -> Option<u64> {
        Some(self.fields.get(name)?.at)
    }

    /// The size of a field.
    pub(super) fn field_size(&self, name: &str) -> Option<u64> {
        self.size(&self.fields.get(name)?.kind)
    }

    /// The size of a type.
    pub(super) fn size(&self, name: &str) -> Option<u64> {
        self.sizes.get(name).copied()
    }

    /// A constant of 32 bits.
    pub(super) fn constant(&self, name: &str) -> Option<u64> {
        self.constants.get(name).copied()
    }
}

#[derive(Debug)]
struct Field {
    /// Its offset, or its address if it is static.
    at: u64,
    kind: String,
}

/// One of the arrays.
struct Table<'a> {
    kind: &'a str,
    start: u64,
    stride: u64,
}

impl<'a> Table<'a> {
    /// The most entries; HotSpot 17 has 789 fields.
    const ENTRIES: usize = 8192;
    /// The most bytes of an entry.
    const STRIDE: u64 = 256;

    fn find(
        symbols: &Symbols<'_>,
        pages: &mut Pages<'_, impl Memory>,
        kind: &'a str,
    ) -> Option<Self> {
        let start = symbol(symbols, &format!("gHotSpotVM{kind}s"))?;
        let stride = symbol(symbols, &format!("gHotSpotVM{kind}EntryArrayStride"))?;
        let (start, stride) = (pages.word(start)?, pages.word(stride)?);
        (start != 0 && (8..=Self::STRIDE).contains(&stride)).then_some(Self {
            kind,
            start,
            stride,
        })
    }

    /// The offset of the field with this name in each entry.
    fn offset(
        &self,
        symbols: &Symbols<'_>,
        pages: &mut Pages<'_, impl Memory>,
        field: &str,
    ) -> Option<u64> {
        let name = format!("gHotSpotVM{}Entry{field}Offset", self.kind);
        let offset = pages.word(symbol(symbols, &name)?)?;
        (offset < self.stride).then_some(offset)
    }

    /// Passes on each entry, with its name.
    fn each<M: Memory>(
        &self,
        pages: &mut Pages<'_, M>,
        name: u64,
        mut found: impl FnMut(&mut Pages<'_, M>, u64, String) -> Option<()>,
    ) -> Option<()> {
        for index in 0..Self::ENTRIES as u64 {
            let entry = self.start.checked_add(index * self.stride)?;
            match pages.word(entry.checked_add(name)?)? {
                0 => return Some(()),
                at => {
                    let name = pages.text(at)?;
                    found(pages, entry, name)?;
                }
            }
        }
        None
    }
}

/// A cache of pages: names are close to each other.
struct Pages<'m, M> {
    memory: &'m mut M,
    read: HashMap<u64, Vec<u8>>,
}

impl<'m, M: Memory> Pages<'m, M> {
    const SIZE: u64 = 4096;
    const PAGES: usize = 4096;
    /// The longest name.
    const TEXT: u64 = 256;

    fn new(memory: &'m mut M) -> Self {
        Self {
            memory,
            read: HashMap::new(),
        }
    }

    fn byte(&mut self, address: u64) -> Option<u8> {
        let page = address / Self::SIZE;
        if !self.read.contains_key(&page) {
            if self.read.len() >= Self::PAGES {
                return None;
            }
            let mut bytes = vec![0; Self::SIZE as usize];
            let count = self.memory.read(page * Self::SIZE, &mut bytes);
            bytes.truncate(count);
            self.read.insert(page, bytes);
        }
        let bytes = self.read.get(&page)?;
        bytes.get((address % Self::SIZE) as usize).copied()
    }

    fn word(&mut self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        for (offset, byte) in (0..).zip(&mut bytes) {
            *byte = self.byte(address.checked_add(offset)?)?;
        }
        Some(u64::from_le_bytes(bytes))
    }

    /// The text at an address, ended by a zero.
    fn text(&mut self, address: u64) -> Option<String> {
        let mut bytes = Vec::new();
        for offset in 0..Self::TEXT {
            match self.byte(address.checked_add(offset)?)? {
                0 => return String::from_utf8(bytes).ok(),
                byte => bytes.push(byte),
            }
        }
        None
    }

    /// The text that a field of an entry points to.
    fn text_of(&mut self, entry: u64, field: u64) -> Option<String> {
        let at = self.word(entry.checked_add(field)?)?;
        self.text(at)
    }
}
