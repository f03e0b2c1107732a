//! The layout of HotSpot's structures, from its own tables.

use super::tables::Tables;

/// Offsets of fields and sizes of types, in bytes; addresses where it says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HotspotLayout {
    /// The address of `CodeCache::_heaps`, a pointer to a `GrowableArray`.
    pub(super) heaps: u64,
    pub(super) array_length: u16,
    pub(super) array_data: u16,
    pub(super) heap: HeapLayout,
    pub(super) blob: BlobLayout,
    pub(super) method: MethodLayout,
    /// `None` if the tables lack something that only names need.
    pub(super) name: Option<NameLayout>,
}

/// `CodeHeap`, with its two `VirtualSpace`s, and `HeapBlock`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HeapLayout {
    pub(super) memory_low: u16,
    pub(super) memory_high: u16,
    pub(super) map_low: u16,
    pub(super) map_high: u16,
    pub(super) segment_log2: u16,
    pub(super) block_header: u16,
    pub(super) block_length: Number,
    pub(super) block_used: u16,
}

/// `CodeBlob`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BlobLayout {
    pub(super) name: u16,
    pub(super) code: CodeBounds,
    pub(super) frame_size: u16,
    pub(super) frame_complete: Number,
}

/// Where a blob says from where to where its code is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CodeBounds {
    /// In fields with addresses.
    Addresses(u16, u16),
    /// In fields of 32 bits with offsets from the blob's start.
    Offsets(u16, u16),
}

impl CodeBounds {
    fn new(tables: &Tables) -> Option<Self> {
        let offset = |name: &str| tables.field(name).and_then(small);
        match offset("CodeBlob::_code_begin") {
            Some(begin) => Some(Self::Addresses(begin, offset("CodeBlob::_code_end")?)),
            // From JDK 23 on. The code ends where the data begin.
            None => Some(Self::Offsets(
                offset("CodeBlob::_code_offset")?,
                offset("CodeBlob::_data_offset")?,
            )),
        }
    }
}

/// A number whose size differs between versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Number {
    pub(super) offset: u16,
    bits: u32,
}

impl Number {
    fn new(tables: &Tables, name: &str) -> Option<Self> {
        let bytes = tables
            .field_size(name)
            .filter(|it| matches!(it, 2 | 4 | 8))?;
        Some(Self {
            offset: tables.field(name).and_then(small)?,
            bits: 8 * u32::try_from(bytes).ok()?,
        })
    }

    /// The same in a structure that holds this one from `start` on.
    fn after(self, start: u16) -> Self {
        let offset = start + self.offset;
        Self { offset, ..self }
    }

    /// The number that is in the lowest bits of a word.
    pub(super) fn of(self, word: u64) -> u64 {
        word & u64::MAX >> (u64::BITS - self.bits)
    }

    /// The number, if it is not negative.
    pub(super) fn positive(self, word: u64) -> Option<u64> {
        Some(self.of(word)).filter(|it| it >> (self.bits - 1) == 0)
    }
}

/// `Method` and `ConstMethod`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MethodLayout {
    pub(super) const_method: u16,
    pub(super) code_size: u16,
    /// Where the bytecodes begin in a `ConstMethod`.
    pub(super) bytecodes: u16,
}

/// What leads from compiled code to the name of its method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NameLayout {
    /// The `Method` of compiled code.
    pub(super) method: u16,
    /// In a `ConstMethod`.
    pub(super) constants: u16,
    pub(super) name_index: u16,
    pub(super) signature_index: u16,
    /// In a `ConstantPool`: its class, and where the constants begin.
    pub(super) holder: u16,
    pub(super) constants_size: u16,
    /// In a `Klass`.
    pub(super) class_name: u16,
    /// In a `Symbol`.
    pub(super) symbol_length: u16,
    pub(super) symbol_body: u16,
}

impl NameLayout {
    fn new(tables: &Tables) -> Option<Self> {
        let offset = |name: &str| tables.field(name).and_then(small);
        Some(Self {
            // From JDK 23 on in the latter.
            method: offset("CompiledMethod::_method").or_else(|| offset("nmethod::_method"))?,
            constants: offset("ConstMethod::_constants")?,
            name_index: offset("ConstMethod::_name_index")?,
            signature_index: offset("ConstMethod::_signature_index")?,
            holder: offset("ConstantPool::_pool_holder")?,
            constants_size: tables.size("ConstantPool").and_then(small)?,
            class_name: offset("Klass::_name")?,
            symbol_length: offset("Symbol::_length")?,
            symbol_body: offset("Symbol::_body")?,
        })
    }
}

/// An offset or size within a structure.
fn small(value: u64) -> Option<u16> {
    /// Structures are smaller than this.
    const LARGEST: u16 = 4096;
    u16::try_from(value).ok().filter(|it| *it < LARGEST)
}

impl HotspotLayout {
    /// `frame::interpreter_frame_sender_sp_offset` on x86-64: a word below the frame pointer.
    const SENDER_SP: u64 = 0xffff_ffff;

    /// The layout from the tables; `None` if they lack something or are implausible.
    pub(super) fn new(tables: &Tables) -> Option<Self> {
        match tables.constant("frame::interpreter_frame_sender_sp_offset") {
            Some(Self::SENDER_SP) => {}
            Some(_) => return None,
            // The same on 64-bit ARM, where the tables do not say so. Builds without compilers,
            // whose frames are others, do not have this.
            None => _ = tables.field("JavaFrameAnchor::_last_Java_fp")?,
        }
        let offset = |name: &str| tables.field(name).and_then(small);
        let memory = offset("CodeHeap::_memory")?;
        let map = offset("CodeHeap::_segmap")?;
        let low = offset("VirtualSpace::_low")?;
        let high = offset("VirtualSpace::_high")?;
        let header = offset("HeapBlock::_header")?;
        Some(Self {
            heaps: tables.field("CodeCache::_heaps")?,
            array_length: offset("GrowableArrayBase::_len")?,
            array_data: offset("GrowableArray<int>::_data")?,
            heap: HeapLayout {
                memory_low: memory + low,
                memory_high: memory + high,
                map_low: map + low,
                map_high: map + high,
                segment_log2: offset("CodeHeap::_log2_segment_size")?,
                block_header: tables.size("HeapBlock").and_then(small)?,
                block_length: Number::new(tables, "HeapBlock::Header::_length")?.after(header),
                block_used: header + offset("HeapBlock::Header::_used")?,
            },
            blob: BlobLayout {
                name: offset("CodeBlob::_name")?,
                code: CodeBounds::new(tables)?,
                frame_size: offset("CodeBlob::_frame_size")?,
                frame_complete: Number::new(tables, "CodeBlob::_frame_complete_offset")?,
            },
            method: MethodLayout {
                const_method: offset("Method::_constMethod")?,
                code_size: offset("ConstMethod::_code_size")?,
                bytecodes: tables.size("ConstMethod").and_then(small)?,
            },
            name: NameLayout::new(tables),
        })
    }
}
