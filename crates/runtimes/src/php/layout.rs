//! The layout of PHP's structures: Zend/zend_globals.h, zend_compile.h and zend_types.h.

/// Offsets of fields, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PhpLayout {
    /// `zend_executor_globals.current_execute_data`.
    pub(super) current: u16,
    pub(super) code: CodeLayout,
    pub(super) generator: GeneratorLayout,
}

/// `zend_generator`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GeneratorLayout {
    pub(super) execute_data: u16,
    /// `node.parent`: the generator that this one delegates to.
    pub(super) parent: u16,
    pub(super) execute_fake: u16,
}

/// `zend_op_array`, without what it shares with functions of C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CodeLayout {
    /// How many instructions it has.
    pub(super) last: u16,
    pub(super) opcodes: u16,
    pub(super) filename: u16,
    pub(super) line_start: u16,
}

/// `zend_execute_data`, the same in all versions.
pub(super) mod frame {
    pub(in crate::php) const OPLINE: u16 = 0;
    pub(in crate::php) const FUNC: u16 = 24;
    /// `This.value`: the object whose method runs, or the generator.
    pub(in crate::php) const THIS: u16 = 32;
    /// `This.u1.type_info`.
    pub(in crate::php) const CALL_INFO: u16 = 40;
    pub(in crate::php) const PREVIOUS: u16 = 48;
    pub(in crate::php) const SIZE: usize = 56;
    /// `ZEND_CALL_TOP`: C code has called the function.
    pub(in crate::php) const CALLED_BY_C: u64 = 1 << 17;
}

/// The begin of all variants of `zend_function`.
pub(super) mod function {
    pub(in crate::php) const NAME: u16 = 8;
    /// The class.
    pub(in crate::php) const SCOPE: u16 = 16;
    /// The values of the first byte, `ZEND_INTERNAL_FUNCTION`, `ZEND_USER_FUNCTION` and
    /// `ZEND_EVAL_CODE`.
    pub(in crate::php) const INTERNAL: u8 = 1;
    pub(in crate::php) const USER: u8 = 2;
    pub(in crate::php) const EVAL: u8 = 4;
}

/// `zend_op`.
pub(super) mod instruction {
    pub(in crate::php) const LINE: usize = 24;
    pub(in crate::php) const SIZE: usize = 32;
}

/// `zend_class_entry`.
pub(super) mod class {
    pub(in crate::php) const NAME: u64 = 8;
}

/// `zend_string`: its hash, its length and its bytes.
pub(super) mod string {
    pub(in crate::php) const HASH: u64 = 8;
    pub(in crate::php) const BYTES: u64 = 24;
}

/// Bytes of a `zend_op_array` up to its last field that is read.
pub(super) const CODE_SIZE: usize = 184;

/// The layout of a version by its `ZEND_MODULE_API_NO`; `None` if it is unknown.
pub(super) fn layout_of(api: u32) -> Option<PhpLayout> {
    match api {
        API_8_2 => Some(V8_2),
        API_8_4 => Some(V8_4),
        _ => None,
    }
}

/// PHP 8.2.
pub(super) const API_8_2: u32 = 20_220_829;
/// PHP 8.4.
const API_8_4: u32 = 20_240_924;

const V8_2: PhpLayout = PhpLayout {
    current: 488,
    code: CodeLayout {
        last: 80,
        opcodes: 88,
        filename: 152,
        line_start: 160,
    },
    generator: GeneratorLayout {
        execute_data: 56,
        parent: 152,
        execute_fake: 184,
    },
};

/// The result of a C compiler for the headers of 8.4.27.
const V8_4: PhpLayout = PhpLayout {
    code: CodeLayout {
        last: 96,
        opcodes: 104,
        filename: 168,
        line_start: 176,
    },
    ..V8_2
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_read_up_to_its_last_field() {
        for api in [API_8_2, API_8_4] {
            let code = layout_of(api).unwrap().code;
            assert!(usize::from(code.line_start) + 8 <= CODE_SIZE, "{code:?}");
        }
        assert_eq!(layout_of(20_230_831), None);
    }
}
