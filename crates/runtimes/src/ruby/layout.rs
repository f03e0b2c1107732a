//! The layout of the structures of Ruby 3.1: vm_core.h, ractor_core.h, iseq.h and the public
//! headers.

/// The version whose layout this is, as `ruby_api_version` has it: major, minor and a third number
/// that stays 0.
pub(super) const VERSION: [u32; 2] = [3, 1];

/// `rb_vm_t`.
pub(super) mod vm {
    /// `ractor.main_ractor`.
    pub(in crate::ruby) const RACTOR: u64 = 32;
}

/// `rb_ractor_t`.
pub(super) mod ractor {
    /// `threads.set`: the head of a list of threads, which begin with their place in it.
    pub(in crate::ruby) const THREADS: u64 = 304;
}

/// `rb_thread_t`.
pub(super) mod thread {
    pub(in crate::ruby) const CONTEXT: u64 = 40;
}

/// `rb_execution_context_t`.
pub(super) mod context {
    pub(in crate::ruby) const VM_STACK: u16 = 0;
    /// In words.
    pub(in crate::ruby) const VM_STACK_SIZE: u16 = 8;
    pub(in crate::ruby) const FRAME: u16 = 16;
    /// `machine.stack_start`: the outer end of the native stack.
    pub(in crate::ruby) const STACK_START: u16 = 144;
    pub(in crate::ruby) const STACK_MAX_SIZE: u16 = 160;
    pub(in crate::ruby) const SIZE: usize = 168;
}

/// `rb_control_frame_t`.
pub(super) mod frame {
    /// Of the next instruction.
    pub(in crate::ruby) const PC: u16 = 0;
    /// 0 for functions in C.
    pub(in crate::ruby) const ISEQ: u16 = 16;
    /// The address of the flags, among others.
    pub(in crate::ruby) const ENVIRONMENT: u16 = 32;
    pub(in crate::ruby) const SIZE: usize = 64;
    /// `VM_FRAME_MAGIC_MASK` and `VM_FRAME_MAGIC_DUMMY`.
    pub(in crate::ruby) const KIND: u64 = 0x7fff_0001;
    pub(in crate::ruby) const DUMMY: u64 = 0x7999_0001;
    /// `VM_FRAME_FLAG_FINISH`: the loop ends with this frame.
    pub(in crate::ruby) const FINISH: u64 = 0x20;
}

/// `rb_iseq_t`.
pub(super) mod iseq {
    pub(in crate::ruby) const BODY: u64 = 16;
}

/// `struct rb_iseq_constant_body`.
pub(super) mod body {
    /// `iseq_size`, in words, 4 bytes.
    pub(in crate::ruby) const LENGTH: u16 = 4;
    pub(in crate::ruby) const CODE: u16 = 8;
    /// `location.pathobj`: a string, or an array of the path and the absolute one.
    pub(in crate::ruby) const PATH: u16 = 64;
    pub(in crate::ruby) const LABEL: u16 = 80;
    pub(in crate::ruby) const FIRST_LINE: u16 = 88;
    /// `insns_info`: entries, how many there are, and their index.
    pub(in crate::ruby) const LINES: u16 = 120;
    pub(in crate::ruby) const LINE_COUNT: u16 = 136;
    pub(in crate::ruby) const LINE_INDEX: u16 = 144;
    pub(in crate::ruby) const SIZE: usize = 152;
}

/// An object: its flags, and where it stores a short string or array itself.
pub(super) mod object {
    pub(in crate::ruby) const TYPE: u64 = 0x1f;
    pub(in crate::ruby) const STRING: u64 = 5;
    pub(in crate::ruby) const ARRAY: u64 = 7;
    /// `RSTRING_NOEMBED`.
    pub(in crate::ruby) const ELSEWHERE: u64 = 0x2000;
    /// The length of a string that the object contains.
    pub(in crate::ruby) const LENGTH_SHIFT: u32 = 14;
    pub(in crate::ruby) const LENGTH_MASK: u64 = 0x1f;
    pub(in crate::ruby) const EMBEDDED: u16 = 16;
    pub(in crate::ruby) const LENGTH: u16 = 16;
    pub(in crate::ruby) const POINTER: u16 = 24;
    pub(in crate::ruby) const SIZE: usize = 40;
}
