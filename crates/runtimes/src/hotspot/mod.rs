//! The compiled code and the running methods of HotSpot, the usual Java virtual machine.
//!
//! HotSpot publishes the layout of its structures (`vmStructs.cpp`), for debuggers that read its
//! memory:
//!
//! ```text
//!   libjvm.so: gHotSpotVMStructs, gHotSpotVMTypes ──> offsets of fields, sizes of types
//!                                                                       tables.rs, layout.rs
//!   CodeCache::_heaps ──> CodeHeap: segment map ──> HeapBlock           code_heap.rs
//!                                                   │ CodeBlob: bounds of its code, size of its
//!   address ────────────────────────────────────────┘ frames, name      blob.rs
//!   frame of the interpreter ──> Method ──> ConstMethod: bytecodes      method.rs
//!   method ────────────────────> Method ──> ConstMethod ──> Symbol: its name
//!                                                                       symbols.rs, names.rs
//! ```
//! A compiled method has frames of one size. So their callers are found without frame pointers,
//! which its code does not keep.

mod blob;
mod code_heap;
mod layout;
mod library;
mod method;
mod names;
mod symbols;
mod tables;
mod vm;

pub use blob::{Code, Frames};
pub use library::Library;
pub use vm::HotSpot;

#[cfg(test)]
mod tests;
