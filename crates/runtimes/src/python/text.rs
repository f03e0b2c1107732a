//! Texts: CPython's `str` objects.

use super::layout::PythonLayout;
use crate::Memory;
use crate::read::word_at;

/// The text of a `str`.
#[derive(Debug)]
pub(super) struct Text {
    form: Form,
    /// Up to a limit.
    characters: Vec<u8>,
}

/// How a `str` stores its characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Form {
    /// Where they begin in the object.
    start: u16,
    /// The bytes of each.
    unit: u8,
    /// How many there are.
    length: u64,
}

impl Form {
    /// The bytes of a `str` object before its characters.
    const HEAD: usize = 40;
    /// Longer texts are invalid.
    const CHARACTERS: u64 = 1 << 20;

    fn of(head: &[u8], layout: &PythonLayout) -> Option<Self> {
        let length = word_at(head, 16).filter(|&length| length <= Self::CHARACTERS)?;
        let state = head.get(usize::from(layout.strings.state)..)?;
        let state = u32::from_le_bytes(*state.first_chunk()?);
        // `interned` has two bits up to 3.11, 3.12 and 3.13, then the kind has three.
        let (kind, compact, ascii) = (state >> 2 & 7, state >> 5 & 1 == 1, state >> 6 & 1 == 1);
        if !compact || !matches!(kind, 1 | 2 | 4) {
            return None;
        }
        Some(Self {
            start: match ascii {
                true => layout.strings.ascii,
                false => layout.strings.compact,
            },
            unit: kind as u8,
            length,
        })
    }
}

impl Text {
    /// Reads the text at this address, up to `limit` bytes.
    pub(super) fn read(
        memory: &mut impl Memory,
        layout: &PythonLayout,
        address: u64,
        limit: usize,
    ) -> Option<Self> {
        let mut head = [0; Form::HEAD];
        let count = memory.read(address, &mut head);
        let form = Form::of(head.get(..count)?, layout)?;
        let size = form.length.checked_mul(form.unit.into())?;
        let size = usize::try_from(size).ok()?.min(limit);
        let mut characters = vec![0; size];
        let start = address.checked_add(form.start.into())?;
        let is_read = memory.read(start, &mut characters) == size;
        is_read.then_some(Self { form, characters })
    }

    /// How many bytes from the object's first on are known.
    pub(super) fn end(&self) -> u64 {
        let end = usize::from(self.form.start) + self.characters.len();
        end.max(Form::HEAD) as u64
    }

    /// Whether these bytes are an object with this text.
    pub(super) fn matches(&self, object: &[u8], layout: &PythonLayout) -> bool {
        let characters = object.get(usize::from(self.form.start)..);
        Form::of(object, layout) == Some(self.form)
            && characters.is_some_and(|characters| characters.starts_with(&self.characters))
    }

    /// Bytes of memory that it uses beside itself.
    pub(super) fn footprint(&self) -> usize {
        self.characters.capacity()
    }

    pub(super) fn decoded(&self) -> String {
        let characters = self.characters.chunks_exact(self.form.unit.into());
        let code = |bytes: &[u8]| {
            let bytes = bytes.iter().rev();
            bytes.fold(0, |code, &byte| code << 8 | u32::from(byte))
        };
        let characters = characters.map(|bytes| char::from_u32(code(bytes)));
        characters
            .map(|character| character.unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect()
    }
}
