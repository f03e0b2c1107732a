//! The layouts of Ruby's structures: vm_core.h, ractor_core.h, iseq.h and the public headers.

/// Where the structures of a version have their fields, where versions differ.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// As `ruby_api_version` has it, before a third number, which stays 0.
    version: [u32; 2],
    /// The size of `pthread_mutex_t`, which depends on the target's ABI.
    mutex: u64,
    /// `rb_ractor_t`, `threads.set`: the head of a list of threads, which begin with their place in
    /// it. There is a mutex before it.
    pub(super) threads: u64,
    /// `rb_thread_t`, `ec`.
    pub(super) context: u64,
    /// `rb_execution_context_t`, `machine.stack_start`: the outer end of the native stack.
    pub(super) stack_start: u16,
    pub(super) stack_max_size: u16,
    /// The size of `rb_control_frame_t`.
    pub(super) frame: usize,
    /// `struct rb_iseq_constant_body`, `insns_info`: entries, how many there are, and their index.
    pub(super) lines: u16,
    pub(super) line_count: u16,
    pub(super) line_index: u16,
    /// Whether the first line is an object, not a number of C.
    pub(super) is_line_object: bool,
    /// Where a string is that its object contains.
    pub(super) text: u16,
    /// Whether the length of such a string is among the object's flags, not in the field for it.
    pub(super) is_length_in_flags: bool,
}

const fn v3_1(mutex: u64) -> Layout {
    Layout {
        version: [3, 1],
        mutex,
        threads: 264 + mutex,
        context: 40,
        stack_start: 144,
        stack_max_size: 160,
        frame: 64,
        lines: 120,
        line_count: 136,
        line_index: 144,
        is_line_object: true,
        text: 16,
        is_length_in_flags: true,
    }
}

const fn v3_3(mutex: u64) -> Layout {
    Layout {
        version: [3, 3],
        mutex,
        threads: 216 + mutex,
        context: 48,
        stack_start: 152,
        stack_max_size: 168,
        frame: 56,
        lines: 112,
        line_count: 128,
        line_index: 136,
        is_line_object: false,
        text: 24,
        is_length_in_flags: false,
    }
}

/// By version, for the sizes that mutexes have.
static ALL: [Layout; 4] = [v3_1(40), v3_1(48), v3_3(40), v3_3(48)];

impl Layout {
    /// That of a version, by the contents of `ruby_api_version`, where mutexes have this size.
    pub(super) fn read(version: &[u8], mutex: u64) -> Option<&'static Self> {
        let (numbers, _) = version.as_chunks();
        let mut numbers = numbers.iter().map(|&it| u32::from_le_bytes(it));
        Self::of([numbers.next()?, numbers.next()?], mutex)
    }

    pub(super) fn of(version: [u32; 2], mutex: u64) -> Option<&'static Self> {
        let mut all = ALL.iter();
        all.find(|layout| (layout.version, layout.mutex) == (version, mutex))
    }

    /// Whether stripped files of this version have no symbol of the evaluation loop.
    pub(super) fn may_hide_loop(&self) -> bool {
        self.version != [3, 1]
    }
}

/// `rb_vm_t`.
pub(super) mod vm {
    /// `ractor.main_ractor`.
    pub(in crate::ruby) const RACTOR: u64 = 32;
}

/// `rb_execution_context_t`.
pub(super) mod context {
    pub(in crate::ruby) const VM_STACK: u16 = 0;
    /// In words.
    pub(in crate::ruby) const VM_STACK_SIZE: u16 = 8;
    pub(in crate::ruby) const FRAME: u16 = 16;
    /// Of what is needed.
    pub(in crate::ruby) const SIZE: usize = 176;
}

/// `rb_control_frame_t`.
pub(super) mod frame {
    /// Of the next instruction.
    pub(in crate::ruby) const PC: u16 = 0;
    /// 0 for functions in C.
    pub(in crate::ruby) const ISEQ: u16 = 16;
    /// The address of the flags, among others.
    pub(in crate::ruby) const ENVIRONMENT: u16 = 32;
    /// `VM_FRAME_MAGIC_MASK`.
    pub(in crate::ruby) const KIND: u64 = 0x7fff_0001;
    /// `VM_FRAME_MAGIC_CFUNC`, `_IFUNC` and `_DUMMY`: frames that run nothing in Ruby.
    pub(in crate::ruby) const OTHERS: [u64; 3] = [0x5555_0001, 0x6666_0001, 0x7999_0001];
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
    /// Of what is needed.
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
    /// Of the smallest ones.
    pub(in crate::ruby) const SIZE: usize = 40;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_versions_are_unknown() {
        let read = |minor, mutex| {
            let version = [3, 0, 0, 0, minor, 0, 0, 0, 0, 0, 0, 0];
            Layout::read(&version, mutex).map(|layout| layout.threads)
        };
        assert_eq!([read(1, 40), read(3, 40)], [Some(304), Some(256)]);
        // 64-bit ARM.
        assert_eq!([read(1, 48), read(3, 48)], [Some(312), Some(264)]);
        assert_eq!([read(2, 40), read(3, 44)], [None; 2]);
        assert_eq!(Layout::read(&[3, 0, 0, 0], 40), None);
    }
}
