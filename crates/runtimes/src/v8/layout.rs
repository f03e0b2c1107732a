//! The layout of V8's objects and frames.

use std::collections::HashMap;

/// The values of the variables of V8 for debuggers, by their names without `v8dbg_`.
pub(super) type Constants = HashMap<String, i32>;

/// The layout of objects and frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) frame: FrameLayout,
    /// The offset of the type in a `Map`.
    pub(super) instance_type: u64,
    pub(super) types: InstanceTypes,
    /// `JSFunction::shared`.
    pub(super) shared: u64,
    pub(super) shared_info: SharedInfoLayout,
    pub(super) script: ScriptLayout,
    pub(super) scope: ScopeLayout,
    pub(super) code: CodeLayout,
    pub(super) string: StringLayout,
}

/// Which of the words below the frame pointer are what, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameLayout {
    pub(super) context: usize,
    pub(super) function: usize,
    pub(super) bytecodes: usize,
}

/// The numbers of types of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InstanceTypes {
    pub(super) shared_info: u16,
    pub(super) scope_info: u16,
    pub(super) script: u16,
    pub(super) bytecodes: u16,
    pub(super) code: u16,
    /// Of the object that begins where code does.
    pub(super) code_header: u16,
    /// Types from this one on are no strings.
    pub(super) first_not_string: u16,
}

/// Offsets in a `SharedFunctionInfo`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SharedInfoLayout {
    pub(super) name_or_scope: u64,
    pub(super) script: u64,
}

/// Offsets in a `Script`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ScriptLayout {
    pub(super) name: u64,
    pub(super) source: u64,
}

/// The words of a `ScopeInfo` after its map, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ScopeLayout {
    pub(super) local_count: usize,
    pub(super) first_local: usize,
}

/// Offsets in compiled code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CodeLayout {
    /// Whether the instructions have a header of their own, besides the `Code`.
    pub(super) has_header: bool,
    /// Where the instructions begin.
    pub(super) instructions: u64,
    /// Where the elements of arrays begin.
    pub(super) elements: u64,
    /// The index of the function in the array of data for deoptimization.
    pub(super) function_index: u64,
}

/// Offsets in strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StringLayout {
    pub(super) length: u64,
    /// The characters of a `SeqString`.
    pub(super) characters: u64,
    /// `ConsString::first` and `second`.
    pub(super) parts: (u64, u64),
    /// `SlicedString::parent` and `offset`.
    pub(super) slice: (u64, u64),
    /// `ThinString::actual`.
    pub(super) actual: u64,
    /// `ExternalString::resource`; the address of the characters follows it.
    pub(super) resource: u64,
}

impl Layout {
    /// The layout by these constants; `None` if one is missing, or says that V8 is built with
    /// compressed pointers, which Node is not.
    pub(super) fn new(constants: &Constants) -> Option<Self> {
        let value = |name: &str| constants.get(name).copied();
        let offset = |name: &str| value(name).and_then(|it| u64::try_from(it).ok());
        // The type of a field is a part of the name, and differs between releases.
        let field = |name: &str| {
            let prefix = format!("class_{name}__");
            let mut fields = constants.iter();
            let found =
                fields.find_map(|(name, &value)| name.starts_with(&prefix).then_some(value));
            found.and_then(|it| u64::try_from(it).ok())
        };
        let number = |name: &str| value(name).and_then(|it| u16::try_from(it).ok());
        let index = |name: &str| value(name).and_then(|it| usize::try_from(it).ok());
        let code = number("type_Code__CODE_TYPE")?;
        let code_header = number("type_InstructionStream__INSTRUCTION_STREAM_TYPE");
        let instructions = field("InstructionStream__instruction_start");
        /// In releases that do not publish it.
        const FUNCTION_INDEX: u64 = 6;
        let function_index = offset("DeoptimizationDataSharedFunctionInfoIndex")
            .or_else(|| offset("DeoptimizationDataWrappedSharedFunctionInfoIndex"))
            .unwrap_or(FUNCTION_INDEX);
        if value("TaggedSize") != Some(8) || value("SmiShiftSize") != Some(31) {
            return None;
        }
        Some(Self {
            frame: FrameLayout {
                context: word_below(value("off_fp_context")?)?,
                function: word_below(value("off_fp_function")?)?,
                bytecodes: word_below(value("off_fp_bytecode_array")?)?,
            },
            instance_type: offset("class_Map__instance_type__uint16_t")?,
            types: InstanceTypes {
                shared_info: number("type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE")?,
                scope_info: number("type_ScopeInfo__SCOPE_INFO_TYPE")?,
                script: number("type_Script__SCRIPT_TYPE")?,
                bytecodes: number("type_BytecodeArray__BYTECODE_ARRAY_TYPE")?,
                code,
                code_header: code_header.unwrap_or(code),
                first_not_string: number("FirstNonstringType")?,
            },
            shared: field("JSFunction__shared")?,
            shared_info: SharedInfoLayout {
                name_or_scope: field("SharedFunctionInfo__name_or_scope_info")?,
                script: field("SharedFunctionInfo__script")
                    .or_else(|| field("SharedFunctionInfo__script_or_debug_info"))?,
            },
            script: ScriptLayout {
                name: field("Script__name")?,
                source: field("Script__source")?,
            },
            scope: ScopeLayout {
                local_count: index("scopeinfo_idx_ncontextlocals")?,
                first_local: index("scopeinfo_idx_first_vars")?,
            },
            code: CodeLayout {
                has_header: code_header.is_some(),
                instructions: instructions.or_else(|| field("Code__instruction_start"))?,
                elements: offset("class_FixedArray__data__uintptr_t")?,
                function_index,
            },
            string: StringLayout {
                length: field("String__length")?,
                characters: field("SeqOneByteString__chars")?,
                parts: (field("ConsString__first")?, field("ConsString__second")?),
                slice: (
                    field("SlicedString__parent")?,
                    field("SlicedString__offset")?,
                ),
                actual: field("ThinString__actual")?,
                resource: field("ExternalString__resource")?,
            },
        })
    }
}

/// Which of the words below the frame pointer this offset from it is.
fn word_below(offset: i32) -> Option<usize> {
    let below = usize::try_from(offset.checked_neg()?).ok()?;
    (below % 8 == 0).then_some(below / 8)?.checked_sub(1)
}
