//! Blobs of code: a compiled method, the interpreter, a stub.

use std::collections::HashMap;
use std::ops::Range;

use super::code_heap::Unknown;
use super::layout::{CodeBounds, HotspotLayout};
use super::names::Origin;
use crate::Memory;
use crate::read::word_at;

/// A piece of code that HotSpot has made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// The addresses of its instructions.
    pub range: Range<u64>,
    /// Its frames.
    pub frames: Frames,
}

/// The frames of a piece of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frames {
    /// All have one size.
    Fixed {
        /// In bytes, with the return address, which is the outermost word. The caller's frame
        /// pointer is below it.
        size: u32,
        /// The address from which on frames are complete, if known.
        complete: Option<u64>,
    },
    /// Those of a stub that calls only the virtual machine: all have one size once they are
    /// complete.
    Stub {
        /// As above.
        size: u32,
        /// Whether the stub itself pushes the return address: others jump to it.
        pushes_return_address: bool,
    },
    /// The interpreter's: one frame for each method, to which the frame pointer leads.
    Interpreter,
    /// Those of the stubs that suspend and resume virtual threads. To these, a method of such a
    /// thread returns if its caller is still on the heap.
    Continuation,
    /// Unknown: stubs and adapters, with frames or without.
    Unknown,
}

/// The kind of a blob, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Interpreter,
    /// A compiled method.
    Method,
    /// Finds the handler of an exception, with the return address in rdx
    /// (`OptoRuntime::generate_exception_blob`).
    Exception,
    /// The stubs of virtual threads, from JDK 21 on.
    Continuation,
    Other,
}

/// The kinds for the names at these addresses, which do not move.
pub(super) type Kinds = HashMap<u64, Kind>;

impl Code {
    /// The largest plausible frame. HotSpot's own limit on stacks is of that order.
    const LARGEST_FRAME: u32 = 1 << 20;
    const KINDS: usize = 1024;
    /// The bytes that contain the fields of a blob: 104 in HotSpot 17.
    const BLOB: usize = 256;

    /// The code of the blob in this block, and what names it.
    pub(super) fn read(
        layout: &HotspotLayout,
        memory: &mut impl Memory,
        blob: &Range<u64>,
        kinds: &mut Kinds,
    ) -> Result<(Self, Origin), Unknown> {
        let fields = &layout.blob;
        let mut bytes = [0; Self::BLOB];
        if memory.read(blob.start, &mut bytes) < bytes.len() {
            return Err(Unknown::Unreadable);
        }
        let field = |offset| word_at(&bytes, offset).ok_or(Unknown::NoCode);
        let offset = |at| Ok(blob.start.saturating_add(field(at)? & 0xffff_ffff));
        let range = match fields.code {
            CodeBounds::Addresses(begin, end) => field(begin)?..field(end)?,
            CodeBounds::Offsets(begin, end) => offset(begin)?..offset(end)?,
        };
        let words = field(fields.frame_size)? as u32 as i32;
        let complete = fields.frame_complete;
        let complete = complete.positive(field(complete.offset)?);
        let name = field(fields.name)?;
        if range.start < blob.start || range.end > blob.end || range.is_empty() {
            return Err(Unknown::NoCode);
        }
        let size = u32::try_from(words).ok().and_then(|it| it.checked_mul(8));
        let kind = kind(memory, name, kinds)?;
        let frames = match (kind, size) {
            (Kind::Interpreter, _) => Frames::Interpreter,
            (Kind::Continuation, _) => Frames::Continuation,
            // Return address and frame pointer take two words.
            (Kind::Method, Some(size @ 16..=Self::LARGEST_FRAME)) => Frames::Fixed {
                size,
                complete: complete.and_then(|it| range.start.checked_add(it)),
            },
            (Kind::Exception | Kind::Other, Some(size @ 16..=Self::LARGEST_FRAME)) => {
                Frames::Stub {
                    size,
                    pushes_return_address: kind == Kind::Exception,
                }
            }
            (Kind::Method | Kind::Exception | Kind::Other, _) => Frames::Unknown,
        };
        let origin = match (kind, &layout.name) {
            (Kind::Method, Some(fields)) => Origin::Method(field(fields.method)?),
            _ => Origin::Blob(name),
        };
        Ok((Self { range, frames }, origin))
    }
}

/// The kind for the name at this address.
fn kind(memory: &mut impl Memory, name: u64, kinds: &mut Kinds) -> Result<Kind, Unknown> {
    const INTERPRETER: &[u8] = b"Interpreter\0";
    const EXCEPTION: &[u8] = b"ExceptionBlob\0";
    const METHODS: [&[u8]; 2] = [b"nmethod\0", b"native nmethod\0"];
    /// What follows differs between versions.
    const CONTINUATION: &[u8] = b"StubRoutines (continuation";
    const LONGEST: usize = 32;
    if let Some(&known) = kinds.get(&name) {
        return Ok(known);
    }
    let mut text = [0; LONGEST];
    if memory.read(name, &mut text) == 0 {
        return Err(Unknown::Unreadable);
    }
    let kind = match text.starts_with(INTERPRETER) {
        true => Kind::Interpreter,
        false if METHODS.iter().any(|it| text.starts_with(it)) => Kind::Method,
        false if text.starts_with(EXCEPTION) => Kind::Exception,
        false if text.starts_with(CONTINUATION) => Kind::Continuation,
        false => Kind::Other,
    };
    if kinds.len() >= Code::KINDS {
        kinds.clear();
    }
    kinds.insert(name, kind);
    Ok(kind)
}
