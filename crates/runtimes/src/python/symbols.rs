//! Where an interpreter's file has its objects.

use object::{Object, ObjectSymbol};

/// Addresses, as the ELF file states them, of the objects that a walk needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbols {
    /// `_PyRuntime`.
    pub runtime: u64,
    /// `PyCode_Type`.
    pub code_type: u64,
    /// `PyUnicode_Type`.
    pub unicode_type: u64,
    /// `PyBytes_Type`.
    pub bytes_type: u64,
    /// `Py_Version`, which CPython 3.11 and later have.
    pub version: Option<u64>,
}

impl Symbols {
    /// The symbols of an interpreter, if this is the file of one. They are in `.dynsym`, because
    /// extension modules need them, so also in stripped files.
    pub fn of_elf(file: &[u8]) -> Option<Self> {
        let file = object::File::parse(file).ok()?;
        if !file.is_64() || !file.is_little_endian() {
            return None;
        }
        let (mut runtime, mut code_type, mut unicode_type, mut bytes_type) =
            (None, None, None, None);
        let mut version = None;
        for symbol in file.dynamic_symbols().chain(file.symbols()) {
            let place = match symbol.name_bytes().unwrap_or_default() {
                b"_PyRuntime" => &mut runtime,
                b"PyCode_Type" => &mut code_type,
                b"PyUnicode_Type" => &mut unicode_type,
                b"PyBytes_Type" => &mut bytes_type,
                b"Py_Version" => &mut version,
                _ => continue,
            };
            if symbol.is_definition() && symbol.address() != 0 {
                place.get_or_insert(symbol.address());
            }
        }
        Some(Self {
            runtime: runtime?,
            code_type: code_type?,
            unicode_type: unicode_type?,
            bytes_type: bytes_type?,
            version,
        })
    }

    /// The addresses in a process, where the file's address 0 is at `bias`.
    pub(crate) fn at(self, bias: u64) -> Self {
        let at = |address: u64| address.wrapping_add(bias);
        Self {
            runtime: at(self.runtime),
            code_type: at(self.code_type),
            unicode_type: at(self.unicode_type),
            bytes_type: at(self.bytes_type),
            version: self.version.map(at),
        }
    }
}
