//! Made-up memory of language runtimes.

use std::ops::Range;

use prof_runtimes::hotspot::HotSpot;
use prof_runtimes::{
    InterpretedStack, Interpreter, InterpreterCache, InterpreterThread, Language, Memory,
    NativeStack, php, python, ruby,
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
    let mut cache = InterpreterCache::default();
    // The image says of which thread it is, somewhere.
    for is_main in [true, false] {
        let thread = InterpreterThread { tid: 77, is_main };
        if let Ok(stack) = interpreter.stack(&mut memory, thread, &native, &mut cache) {
            check_activations(&stack);
        }
    }
}

/// Any bytes as the memory of PHP 8.2, and as the stack of its thread.
pub fn php(bytes: &[u8]) {
    const GLOBALS: u64 = BASE - 488;
    let php = php::Interpreter::new(20_220_829, GLOBALS);
    read_twice(bytes, Language::Php(php));
}

/// Any bytes as the memory of Ruby 3.1, and as the stack of its thread.
pub fn ruby(bytes: &[u8]) {
    let ruby = ruby::Interpreter::new(BASE);
    read_twice(bytes, Language::Ruby(Some(ruby)));
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
    let mut cache = InterpreterCache::default();
    for _ in 0..2 {
        if let Ok(stack) = interpreter.stack(&mut Image(bytes), thread, &native, &mut cache) {
            check_activations(&stack);
        }
    }
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
    let mut memory = Image(bytes);
    let symbols = SYMBOLS.into_iter().zip((BASE..).step_by(8));
    let Some(mut machine) = HotSpot::new(&symbols.collect::<Vec<_>>(), &mut memory) else {
        return;
    };
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
