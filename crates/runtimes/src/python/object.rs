//! Objects: their types, and what strings and bytes hold.

use super::PythonError;
use super::layout::Layout;
use super::symbols::Symbols;
use crate::memory::{Memory, Reader};

/// Reads objects of one process, and checks the type of each.
pub(super) struct Objects<'a, M> {
    pub(super) reader: Reader<'a, M>,
    pub(super) layout: &'a Layout,
    pub(super) symbols: &'a Symbols,
}

/// The parts of a string's state (`PyASCIIObject.state`).
struct StringState(u32);

impl StringState {
    /// Bytes of a character.
    fn width(&self) -> Option<usize> {
        let width = (self.0 >> 2 & 7) as usize;
        matches!(width, 1 | 2 | 4).then_some(width)
    }

    fn is_compact(&self) -> bool {
        self.0 & 1 << 5 != 0
    }

    fn is_ascii(&self) -> bool {
        self.0 & 1 << 6 != 0
    }
}

impl<M: Memory> Objects<'_, M> {
    /// The most bytes of a line table or of a string's characters.
    const LARGEST: u64 = 1 << 20;

    fn check_type(&mut self, object: u64, expected: u64) -> Result<(), PythonError> {
        let field = object.wrapping_add(self.layout.object_type);
        match self.reader.word(field)? == expected {
            true => Ok(()),
            false => Err(PythonError::WrongType(object)),
        }
    }

    pub(super) fn check_code(&mut self, object: u64) -> Result<(), PythonError> {
        self.check_type(object, self.symbols.code_type)
    }

    /// The text of a string object, of at most so many characters: names are cut there.
    pub(super) fn text(&mut self, object: u64, most: usize) -> Result<String, PythonError> {
        self.check_type(object, self.symbols.unicode_type)?;
        let at = |offset: u64| object.wrapping_add(offset);
        let length = self.reader.word(at(self.layout.unicode_length))?;
        let state = self.reader.bytes(at(self.layout.unicode_state))?;
        let state = StringState(u32::from_le_bytes(state));
        let width = state.width().ok_or(PythonError::WrongType(object))?;
        if !state.is_compact() {
            return Err(PythonError::WrongType(object));
        }
        let data = match state.is_ascii() {
            true => self.layout.ascii_data,
            false => self.layout.compact_data,
        };
        let kept = usize::try_from(length).unwrap_or(usize::MAX).min(most);
        let bytes = self.reader.block(at(data), kept.saturating_mul(width))?;
        let characters = bytes.chunks_exact(width).map(|bytes| {
            let code = bytes.iter().rev();
            let code = code.fold(0_u32, |code, &byte| code << 8 | u32::from(byte));
            char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
        });
        let mut text: String = characters.collect();
        if length > kept as u64 {
            text.push('…');
        }
        Ok(text)
    }

    /// How many bytes a bytes object has, and where they are.
    pub(super) fn bytes_at(&mut self, object: u64) -> Result<(u64, u64), PythonError> {
        self.check_type(object, self.symbols.bytes_type)?;
        let size = object.wrapping_add(self.layout.object_size);
        let data = object.wrapping_add(self.layout.bytes_data);
        Ok((self.reader.word(size)?, data))
    }

    /// What a bytes object holds.
    pub(super) fn bytes(&mut self, object: u64) -> Result<Vec<u8>, PythonError> {
        let (size, data) = self.bytes_at(object)?;
        if size > Self::LARGEST {
            return Err(PythonError::TooLarge(object));
        }
        Ok(self.reader.block(data, size as usize)?)
    }
}
