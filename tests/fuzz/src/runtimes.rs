//! Made-up memory of language runtimes.

use std::ops::Range;

use prof_model::{Account, Budget};
use prof_runtimes::hotspot::HotSpot;
use prof_runtimes::v8::{CodePlace, FileCode, FrameWords, V8};
use prof_runtimes::{
    InterpretedStack, Interpreter, InterpreterCache, InterpreterThread, Language, Memory,
    NativeStack, SyntheticCode, php, python, ruby,
};

/// The address of the first byte.
const BASE: u64 = 0x1_0000;
/// Where the evaluation loop is.
const EVALUATION: Range<u64> = BASE + 64..BASE + 128;

/// Memory without an end: the bytes over and over.
struct Image<'a>(&'a [u8]);

impl Memory for Image<'_> {
    fn read(&mut self, address: u64, buffer: &mut [u8]) -> usize {
        let mut start = (address.wrapping_sub(BASE) % self.0.len() as u64) as usize;
        let mut rest = &mut *buffer;
        while !rest.is_empty() {
            let length = rest.len().min(self.0.len() - start);
            let (now, later) = rest.split_at_mut(length);
            now.copy_from_slice(&self.0[start..start + length]);
            (rest, start) = (later, 0);
        }
        buffer.len()
    }
}

/// Lets `run` keep things of a process in little memory, which it has to itself or shares; checks
/// that it keeps no more, and gives all of it back.
fn within_budget(run: impl Fn(&Account)) {
    const BYTES: usize = 4096;
    for others_use in [0, BYTES / 4 * 3] {
        let budget = Budget::new(BYTES);
        let mut others = budget.account(1).for_names();
        while others.add(1) && budget.used() < others_use {}
        run(&budget.account(2));
        assert!(budget.used() <= BYTES);
        drop(others);
        assert_eq!(budget.used(), 0, "all is given back");
    }
}

/// Any bytes as the memory of CPython, whose version the first byte chooses.
pub fn python(bytes: &[u8]) {
    let Some((&choice, image)) = bytes.split_first() else {
        return;
    };
    if image.is_empty() {
        return;
    }
    let versions = [
        0x030b_07f0,
        0x030c_01f0,
        0x030d_00f0,
        0x0308_12f0,
        0x030a_0df0,
        0x030e_0af0,
    ];
    let version = versions[usize::from(choice) % versions.len()];
    let mut memory = Image(image);
    let native = NativeStack {
        start: BASE,
        bytes: image,
        is_whole: choice < 0x80,
        registers: &[BASE],
        instruction_pointer: None,
    };
    let python = python::Interpreter::new(version, BASE, &mut memory);
    let interpreter = Interpreter::new(Language::Python(python), Vec::new());
    within_budget(|account| {
        let mut cache = InterpreterCache::new(account);
        // The image says of which thread it is, somewhere.
        for is_main in [true, false] {
            let thread = InterpreterThread { tid: 77, is_main };
            if let Ok(stack) = interpreter.stack(&mut Image(image), thread, &native, &mut cache) {
                check_activations(&stack);
            }
        }
    });
}

/// Any bytes as the memory of PHP 8.2, and as the stack of its thread.
pub fn php(bytes: &[u8]) {
    const GLOBALS: u64 = BASE - 488;
    let php = php::Interpreter::new(20_220_829, GLOBALS);
    read_twice(bytes, Language::Php(php));
}

/// Any bytes as the memory of Ruby 3.1 and 3.3, and as the stack of its thread.
pub fn ruby(bytes: &[u8]) {
    for minor in [1, 3] {
        let ruby = ruby::Interpreter::new(BASE, [3, minor]);
        read_twice(bytes, Language::Ruby(ruby));
    }
}

/// Reads a stack twice: the second time, functions are known.
fn read_twice(bytes: &[u8], language: Language) {
    if bytes.is_empty() {
        return;
    }
    let native = NativeStack {
        start: BASE,
        bytes,
        is_whole: true,
        registers: &[BASE],
        instruction_pointer: Some(BASE),
    };
    let interpreter = Interpreter::new(language, vec![EVALUATION]);
    let thread = InterpreterThread {
        tid: 77,
        is_main: true,
    };
    within_budget(|account| {
        let mut cache = InterpreterCache::new(account);
        for _ in 0..2 {
            if let Ok(stack) = interpreter.stack(&mut Image(bytes), thread, &native, &mut cache) {
                check_activations(&stack);
            }
        }
    });
}

/// Each has frames, which are there.
fn check_activations(stack: &InterpretedStack) {
    for (number, activation) in stack.activations.iter().enumerate() {
        assert!(activation.end <= stack.frames.len());
        assert!(!stack.of_activation(number).is_empty());
    }
}

/// Any bytes as the memory of HotSpot, with the symbols of its tables at their start.
pub fn hotspot(bytes: &[u8]) {
    const SYMBOLS: [&str; 16] = [
        "gHotSpotVMStructs",
        "gHotSpotVMStructEntryArrayStride",
        "gHotSpotVMStructEntryTypeNameOffset",
        "gHotSpotVMStructEntryFieldNameOffset",
        "gHotSpotVMStructEntryTypeStringOffset",
        "gHotSpotVMStructEntryIsStaticOffset",
        "gHotSpotVMStructEntryOffsetOffset",
        "gHotSpotVMStructEntryAddressOffset",
        "gHotSpotVMTypes",
        "gHotSpotVMTypeEntryArrayStride",
        "gHotSpotVMTypeEntryTypeNameOffset",
        "gHotSpotVMTypeEntrySizeOffset",
        "gHotSpotVMIntConstants",
        "gHotSpotVMIntConstantEntryArrayStride",
        "gHotSpotVMIntConstantEntryNameOffset",
        "gHotSpotVMIntConstantEntryValueOffset",
    ];
    if bytes.is_empty() {
        return;
    }
    let symbols = SYMBOLS.into_iter().zip((BASE..).step_by(8));
    let symbols: Vec<_> = symbols.collect();
    within_budget(|account| {
        if let Some(machine) = HotSpot::new(&symbols, &mut Image(bytes), account) {
            run_hotspot(machine, bytes);
        }
    });
}

fn run_hotspot(mut machine: HotSpot, bytes: &[u8]) {
    let mut memory = Image(bytes);
    for (now, address) in (BASE..)
        .step_by(997)
        .take(bytes.len() / 997 + 1)
        .enumerate()
    {
        let now = now as u64 * 100_000_000;
        if let Some(code) = machine.code_at(&mut memory, address, now) {
            assert!(code.range.contains(&address));
        }
        if let Some(bytecodes) = machine.bytecodes(&mut memory, address & !7, now) {
            assert!(bytecodes.start <= bytecodes.end);
        }
        machine.interpreted(&mut memory, address & !7, now);
        machine.move_replacing(&mut [address]);
    }
    machine.write_perf_map(&mut String::new());
}

/// Any bytes as the heap of V8, with the words of a frame at their start, over and over.
pub fn v8(bytes: &[u8]) {
    /// Those of Node 20 that matter; the other constants are offsets of 16.
    const CONSTANTS: [(&str, i32); 22] = [
        ("TaggedSize", 8),
        ("SmiShiftSize", 31),
        ("off_fp_context", -8),
        ("off_fp_function", -16),
        ("off_fp_bytecode_array", -32),
        ("class_Map__instance_type__uint16_t", 12),
        ("type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE", 262),
        ("type_ScopeInfo__SCOPE_INFO_TYPE", 261),
        ("type_Script__SCRIPT_TYPE", 167),
        ("type_BytecodeArray__BYTECODE_ARRAY_TYPE", 191),
        ("type_Code__CODE_TYPE", 245),
        ("type_InstructionStream__INSTRUCTION_STREAM_TYPE", 252),
        ("class_FixedArray__data__uintptr_t", 16),
        ("FirstNonstringType", 128),
        ("scopeinfo_idx_ncontextlocals", 2),
        ("scopeinfo_idx_first_vars", 3),
        ("class_JSFunction__shared__", 24),
        ("class_SharedFunctionInfo__script__", 32),
        ("class_Script__source__", 8),
        ("class_String__length__", 12),
        ("class_ConsString__second__", 24),
        ("class_SlicedString__offset__", 24),
    ];
    const FIELDS: [&str; 8] = [
        "class_InstructionStream__instruction_start__",
        "class_SharedFunctionInfo__name_or_scope_info__",
        "class_Script__name__",
        "class_SeqOneByteString__chars__",
        "class_ConsString__first__",
        "class_SlicedString__parent__",
        "class_ThinString__actual__",
        "class_ExternalString__resource__",
    ];
    if bytes.is_empty() {
        return;
    }
    let fields = FIELDS.into_iter().map(|name| (name, 16));
    let constants = CONSTANTS.into_iter().chain(fields);
    let constants = constants.map(|(name, value)| (name.to_owned(), value));
    let constants = constants.collect();
    within_budget(|account| {
        let engine = V8::new(&constants, FileCode::default(), account);
        run_v8(engine.expect("all constants"), bytes);
    });
}

fn run_v8(mut engine: V8, bytes: &[u8]) {
    let mut memory = Image(bytes);
    let mut addresses = Vec::new();
    for (now, frame) in bytes.chunks_exact(32).take(4).enumerate() {
        let mut words = FrameWords::default();
        for (word, bytes) in words.iter_mut().zip(frame.chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
        }
        let now = now as u64 * 300_000_000;
        for code in [CodePlace::RunTime(words[0]), CodePlace::InFile(BASE)] {
            addresses.extend(engine.function(&mut memory, code, Some(&words), now));
        }
    }
    let mut map = String::new();
    engine.write_perf_map(&mut map);
    assert!(addresses.is_empty() || map.lines().count() > 0);
    assert!(addresses.into_iter().all(SyntheticCode::contains));
}
