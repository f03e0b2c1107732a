//! The signatures of instances of generic methods.

use crate::bytes::Cursor;

/// The method of a signature, as the metadata numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MethodToken {
    /// A row of the table of methods, or of that of members of other files.
    pub(super) row: u32,
    pub(super) is_reference: bool,
    pub(super) owner: Owner,
}

/// The type that has a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// The one that the file's own table of methods names.
    OfMethod,
    /// By its table and row.
    Token(u32),
    /// Of another file, whose methods have other numbers.
    Elsewhere,
}

impl MethodToken {
    /// The method of this row of the file's own methods.
    pub(super) fn defined(row: u32) -> Self {
        Self {
            row,
            is_reference: false,
            owner: Owner::OfMethod,
        }
    }
}

/// `READYTORUN_METHOD_SIG_...`
mod flag {
    pub(super) const METHOD_INSTANTIATION: u32 = 0x04;
    pub(super) const SLOT_INSTEAD_OF_TOKEN: u32 = 0x08;
    pub(super) const MEMBER_REFERENCE: u32 = 0x10;
    pub(super) const CONSTRAINED: u32 = 0x20;
    pub(super) const OWNER_TYPE: u32 = 0x40;
    pub(super) const UPDATE_CONTEXT: u32 = 0x80;
}

/// Types in types, and arguments of one.
const DEEPEST: u32 = 64;

/// Reads a signature. `None`: it cannot be read. `Some(None)`: the method is one of another file.
pub(super) fn method(signature: &mut Cursor<'_>) -> Option<Option<MethodToken>> {
    let flags = signature.compressed()?;
    let is_elsewhere = flags & flag::UPDATE_CONTEXT != 0;
    if is_elsewhere {
        signature.compressed()?;
    }
    let owner = match flags & flag::OWNER_TYPE {
        0 => Owner::OfMethod,
        _ => read_type(signature, DEEPEST)?.map_or(Owner::Elsewhere, Owner::Token),
    };
    if flags & flag::SLOT_INSTEAD_OF_TOKEN != 0 {
        return None;
    }
    let row = signature.compressed()?;
    if flags & flag::METHOD_INSTANTIATION != 0 {
        for _ in 0..signature.compressed()? {
            read_type(signature, DEEPEST)?;
        }
    }
    if flags & flag::CONSTRAINED != 0 {
        read_type(signature, DEEPEST)?;
    }
    Some((!is_elsewhere).then_some(MethodToken {
        row,
        is_reference: flags & flag::MEMBER_REFERENCE != 0,
        owner,
    }))
}

/// Reads a type (`ELEMENT_TYPE_...`: ECMA-335, II.23.1.16, and `corhdr.h`). `Some(None)`: it has no
/// name of its own in this file.
fn read_type(signature: &mut Cursor<'_>, deepest: u32) -> Option<Option<u32>> {
    let deeper = deepest.checked_sub(1)?;
    let inner = |signature: &mut Cursor<'_>| read_type(signature, deeper);
    match signature.byte()? {
        // Primitive types, `System.__Canon`.
        0x01..=0x0e | 0x16 | 0x18 | 0x19 | 0x1c | 0x3e => Some(None),
        // Pointers, arrays of one dimension, pinned types, value types as native ones.
        0x0f | 0x10 | 0x1d | 0x3d | 0x45 => inner(signature).map(|_| None),
        0x11 | 0x12 => Some(Some(signature.compressed()?)),
        // Parameters of types and methods.
        0x13 | 0x1e | 0x3b => signature.compressed().map(|_| None),
        0x14 => {
            inner(signature)?;
            signature.compressed()?;
            // Sizes and lower bounds.
            for _ in 0..2 {
                for _ in 0..signature.compressed()? {
                    signature.compressed()?;
                }
            }
            Some(None)
        }
        0x15 => {
            let generic = inner(signature)?;
            for _ in 0..signature.compressed()? {
                inner(signature)?;
            }
            Some(generic)
        }
        // Modifiers.
        0x1f | 0x20 => {
            signature.compressed()?;
            inner(signature)
        }
        // A type of another file.
        0x3f => {
            signature.compressed()?;
            inner(signature).map(|_| None)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::Bytes;

    #[track_caller]
    fn check(bytes: &[u8], expected: Option<Option<MethodToken>>) {
        let mut cursor = Cursor {
            bytes: Bytes(bytes),
            at: 0,
        };
        assert_eq!(method(&mut cursor), expected);
        if expected.is_some() {
            assert_eq!(cursor.at, bytes.len());
        }
    }

    #[test]
    fn methods_of_generic_types_have_an_owner() {
        let token = |row, owner| {
            Some(Some(MethodToken {
                row,
                is_reference: false,
                owner,
            }))
        };
        // List<int[,]>, and its method 7.
        check(
            &[0x40, 0x15, 0x12, 0x08, 1, 0x14, 0x08, 2, 0, 2, 0, 0, 7],
            token(7, Owner::Token(8)),
        );
        // A method 5 of <__Canon, !0>.
        check(&[0x04, 5, 2, 0x3e, 0x13, 0], token(5, Owner::OfMethod));
        // A method 7 of a type of another file, <int>.
        let elsewhere = [0x40, 0x15, 0x3f, 1, 0x12, 8, 1, 0x08, 7];
        check(&elsewhere, token(7, Owner::Elsewhere));
        let elsewhere = [0x40, 0x3f, 1, 0x15, 0x12, 8, 1, 0x08, 7];
        check(&elsewhere, token(7, Owner::Elsewhere));
        // One of another file.
        check(&[0x80, 0xc0, 3, 0x3f, 1, 0x12, 4, 9], Some(None));
        // A type that does not end.
        check(&[0x40, 0x1d, 0x1d], None);
        check(
            &[[0x40].as_slice(), &[0x1d; 100], &[0x08, 1]].concat(),
            None,
        );
    }
}
