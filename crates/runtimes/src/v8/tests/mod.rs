//! Simulated heaps with some functions.

use std::collections::HashMap;
use std::ops::Range;

use prof_model::{Account, Budget};

use super::{CodePlace, FileCode, FrameWords, V8};

use crate::{Memory, SyntheticCode};

mod code;

const BASE: u64 = 0x1_0000;
const TAG: u64 = 1;
const SECOND: u64 = 1_000_000_000;

/// Those of Node 20.
const NODE_20: [(&str, i32); 30] = [
    ("TaggedSize", 8),
    ("SmiShiftSize", 31),
    ("off_fp_context", -8),
    ("off_fp_function", -16),
    ("off_fp_bytecode_array", -32),
    ("class_Map__instance_type__uint16_t", 12),
    ("type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE", 262),
    ("type_ScopeInfo__SCOPE_INFO_TYPE", 261),
    ("type_Script__SCRIPT_TYPE", 167),
    ("FirstNonstringType", 128),
    ("class_JSFunction__shared__SharedFunctionInfo", 24),
    ("class_SharedFunctionInfo__name_or_scope_info__Object", 16),
    (
        "class_SharedFunctionInfo__script_or_debug_info__HeapObject",
        32,
    ),
    ("class_Script__source__Object", 8),
    ("class_Script__name__Object", 16),
    ("scopeinfo_idx_ncontextlocals", 2),
    ("scopeinfo_idx_first_vars", 3),
    ("class_String__length__int32_t", 12),
    ("class_SeqOneByteString__chars__char", 16),
    ("class_ConsString__first__String", 16),
    ("class_ConsString__second__String", 24),
    ("class_SlicedString__parent__String", 16),
    ("class_SlicedString__offset__SMI", 24),
    ("class_ThinString__actual__String", 16),
    ("class_ExternalString__resource__Object", 16),
    ("type_BytecodeArray__BYTECODE_ARRAY_TYPE", 191),
    ("type_Code__CODE_TYPE", 245),
    ("type_InstructionStream__INSTRUCTION_STREAM_TYPE", 252),
    ("class_InstructionStream__instruction_start__uintptr_t", 16),
    ("class_FixedArray__data__uintptr_t", 16),
];

const SHARED_INFO: u16 = 262;
const SCOPE_INFO: u16 = 261;
const SCRIPT: u16 = 167;
const BYTECODES: u16 = 191;
const CODE: u16 = 245;
const CODE_HEADER: u16 = 252;
const OTHER: u16 = 300;
const ONE_BYTE: u16 = 8;
const CONCATENATED: u16 = 1;
const EXTERNAL: u16 = 2;
const SLICED: u16 = 3;
const THIN: u16 = 5;

/// Memory of a process, or none once that has ended.
#[derive(Default)]
struct Heap {
    bytes: Vec<u8>,
    has_ended: bool,
    /// The map of all code.
    code_map: u64,
}

impl Memory for Heap {
    fn read(&mut self, address: u64, buffer: &mut [u8]) -> usize {
        let start = usize::try_from(address.wrapping_sub(BASE)).unwrap_or(usize::MAX);
        let bytes = self.bytes.get(start..).filter(|_| !self.has_ended);
        let bytes = bytes.unwrap_or_default();
        let count = bytes.len().min(buffer.len());
        buffer[..count].copy_from_slice(&bytes[..count]);
        count
    }
}

const BUILTINS: Range<u64> = 0x100..0x300;
const INTERPRETER_CODE: Range<u64> = 0x100..0x200;
const INTERPRETER: CodePlace = CodePlace::InFile(0x110);

fn small_integer(value: u32) -> u64 {
    u64::from(value) << 32
}

impl Heap {
    fn put(&mut self, bytes: &[u8]) -> u64 {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        let at = BASE + self.bytes.len() as u64;
        self.bytes.extend_from_slice(bytes);
        at
    }

    fn words(&mut self, words: &[u64]) -> u64 {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.put(&bytes)
    }

    fn set(&mut self, address: u64, word: u64) {
        let at = (address - BASE) as usize;
        self.bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }

    /// An object of this type; returns the tagged word that points to it.
    fn object(&mut self, kind: u16, words: &[u64]) -> u64 {
        let map = TAG + self.words(&[0, u64::from(kind) << 32]);
        TAG + self.words(&[&[map], words].concat())
    }

    fn string(&mut self, text: &str) -> u64 {
        let length = text.encode_utf16().count() as u64;
        let characters: Vec<u8> = match text.is_ascii() {
            true => text.bytes().collect(),
            false => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        };
        let kind = if text.is_ascii() { ONE_BYTE } else { 0 };
        let string = self.object(kind, &[length << 32]);
        self.bytes.extend_from_slice(&characters);
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        string
    }

    /// A string of another kind, of this many characters, with further words.
    fn made_of(&mut self, kind: u16, length: usize, words: &[u64]) -> u64 {
        self.object(kind, &[&[(length as u64) << 32], words].concat())
    }

    fn script(&mut self, name: &str, source: &str) -> u64 {
        let (name, source) = (self.string(name), self.string(source));
        self.object(SCRIPT, &[source, name])
    }

    /// A function with this name, or what has its name, of this script.
    fn function(&mut self, name_or_scope: u64, script: u64) -> Function {
        let bytecodes = self.object(BYTECODES, &[]);
        let words = [bytecodes, name_or_scope, 0, script, 0, 0, 0];
        let shared = self.object(SHARED_INFO, &words);
        Function {
            shared,
            closure: self.object(OTHER, &[0, 0, shared]),
            bytecodes,
        }
    }

    fn named_function(&mut self, name: &str) -> Function {
        let name = self.string(name);
        self.function(name, 0)
    }

    /// Compiled code with instructions of this length, which was optimized for a function, if it
    /// was; returns the address of the first one.
    fn code(&mut self, optimized_for: Option<u64>, length: usize) -> u64 {
        let data = [
            &[small_integer(9)][..],
            &[0; 6],
            &[optimized_for.unwrap_or(0), 0, 0],
        ]
        .concat();
        let data = self.object(OTHER, &data);
        let code = self.object(CODE, &[0, data, 0, 0]);
        if self.code_map == 0 {
            self.code_map = TAG + self.words(&[0, u64::from(CODE_HEADER) << 32]);
        }
        while !(self.bytes.len() + 16).is_multiple_of(32) {
            self.words(&[0]);
        }
        let header = self.words(&[self.code_map, code]);
        self.set(code - TAG + 32, header + 16);
        self.put(&vec![0xcc; length]);
        header + 16
    }

    /// V8 in the process.
    fn start(changed: &[(&str, i32)]) -> Option<V8> {
        Self::start_with(changed, &Account::default())
    }

    fn start_with(changed: &[(&str, i32)], account: &Account) -> Option<V8> {
        let all = NODE_20.iter().chain(changed);
        let constants = all.map(|&(name, value)| (name.to_owned(), value));
        let code = FileCode {
            builtins: Some(BUILTINS),
            interpreter: Some(INTERPRETER_CODE),
        };
        V8::new(&constants.collect::<HashMap<_, _>>(), code, account)
    }
}

/// A function: tagged words that point to its objects.
#[derive(Clone, Copy)]
struct Function {
    shared: u64,
    closure: u64,
    bytecodes: u64,
}

impl Function {
    /// A frame of it in the interpreter.
    fn frame(self) -> FrameWords {
        [0x77 << 3 | TAG, self.closure, 0, self.bytecodes]
    }
}

/// The name that a perf map has for an address.
fn name(v8: &V8, address: Option<u64>) -> Option<String> {
    let address = address.filter(|address| SyntheticCode::contains(*address))?;
    let mut map = String::new();
    v8.write_perf_map(&mut map);
    let mut named = map.lines().filter_map(|line| {
        let (start, rest) = line.split_once(' ')?;
        let (size, name) = rest.split_once(' ')?;
        let [start, size] = [start, size].map(|it| u64::from_str_radix(it, 16).unwrap());
        (start..start + size).contains(&address).then_some(name)
    });
    named.next().map(str::to_owned)
}

/// The name of an interpreted function.
fn named(heap: &mut Heap, v8: &mut V8, function: Function) -> Option<String> {
    let address = v8.function(heap, INTERPRETER, Some(&function.frame()), 0);
    name(v8, address)
}

#[test]
fn a_layout_needs_all_constants() {
    assert!(Heap::start(&[]).is_some());
    assert!(Heap::start(&[("TaggedSize", 4)]).is_none(), "compressed");
    assert!(Heap::start(&[("off_fp_function", 16)]).is_none());
    assert!(V8::new(&HashMap::new(), FileCode::default(), &Account::default()).is_none());
}

#[test]
fn functions_have_the_names_of_their_strings() {
    let (mut heap, mut v8) = (Heap::default(), Heap::start(&[]).unwrap());
    let script = heap.script("/srv/app.js", "");
    let mut check = |heap: &mut Heap, string: u64, expected: &str| {
        let function = heap.function(string, script);
        let expected = format!("JS:{expected} /srv/app.js");
        assert_eq!(named(heap, &mut v8, function), Some(expected));
    };
    let (work, er) = (heap.string("work"), heap.string("er"));
    check(&mut heap, work, "work");
    let umlaut = heap.string("für\n");
    check(&mut heap, umlaut, "für ");
    let empty = heap.string("");
    check(&mut heap, empty, "(anonymous)");
    check(&mut heap, 0, "(anonymous)");
    let worker = heap.made_of(CONCATENATED | ONE_BYTE, 6, &[work, er]);
    check(&mut heap, worker, "worker");
    let flat = heap.made_of(CONCATENATED | ONE_BYTE, 4, &[work, empty]);
    check(&mut heap, flat, "work");
    let thin = heap.made_of(THIN | ONE_BYTE, 4, &[flat]);
    check(&mut heap, thin, "work");
    let slice = heap.made_of(SLICED | ONE_BYTE, 2, &[thin, small_integer(1)]);
    check(&mut heap, slice, "or");
    let data = heap.put(b"outside");
    let external = heap.made_of(EXTERNAL | ONE_BYTE, 7, &[0, data]);
    check(&mut heap, external, "outside");
}

#[test]
fn names_without_room_are_left_out() {
    let budget = Budget::new(64 << 10);
    let account = budget.account(7);
    let mut heap = Heap::default();
    let mut v8 = Heap::start_with(&[], &account).unwrap();
    let mut shown = Vec::new();
    for number in 0..1000 {
        let function = heap.named_function(&format!("function{number}"));
        shown.push(named(&mut heap, &mut v8, function));
        // Names take at most half, and then caches a fifth of what is left.
        assert!(budget.used() <= budget.total() * 3 / 5, "{}", budget.used());
    }
    let kept = shown.iter().flatten().count();
    assert!((100..1000).contains(&kept), "{kept}");
    assert_eq!(shown[0].as_deref(), Some("JS:function0"));
    assert_eq!(budget.take_lacking(), [7]);
    v8.forget_names();
    let (used, function) = (budget.used(), heap.named_function("next"));
    let next = named(&mut heap, &mut v8, function);
    assert_eq!(next.as_deref(), Some("JS:next"));
    assert!(used < budget.total() / 4, "{used}");
    drop(v8);
    assert_eq!(budget.used(), 0);
}

/// A scope of a function with so many locals.
fn scope(flags: u32, locals: u32, position: &[u64], words: &[u64]) -> Vec<u64> {
    let names = if locals < 75 { locals } else { 1 };
    let locals_words = vec![TAG; (names + locals) as usize];
    let head = [small_integer(flags), 0, small_integer(locals)];
    [&head[..], position, &locals_words, words].concat()
}

const NAME: u32 = 1 << 12;
const INFERRED: u32 = 1 << 14;
const CLASS: u32 = 1 << 10;

#[test]
fn scopes_have_names_and_positions() {
    let source = "let x;\nfunction a() {}\n";
    let first_later = &[("scopeinfo_idx_first_vars", 5)][..];
    for changed in [&[][..], first_later] {
        let (mut heap, mut v8) = (Heap::default(), Heap::start(changed).unwrap());
        let script = heap.script("/srv/app.js", source);
        let [work, inferred, empty] = ["work", "obj.work", ""].map(|it| heap.string(it));
        let mut check = |flags: u32, locals: u32, words: &[u64], expected: &str| {
            let position = [small_integer(17), small_integer(22)];
            let words = match changed.is_empty() {
                true => scope(flags, locals, &[], &[words, &position].concat()),
                false => scope(flags, locals, &position, words),
            };
            let scope = heap.object(SCOPE_INFO, &words);
            let function = heap.function(scope, script);
            let expected = format!("JS:{expected} /srv/app.js:2:11");
            assert_eq!(named(&mut heap, &mut v8, function), Some(expected));
        };
        check(NAME, 0, &[work, 0], "work");
        check(NAME, 3, &[work, 0], "work");
        check(NAME, 75, &[work, 0], "work");
        check(CLASS | NAME, 1, &[0, work, 0], "work");
        check(INFERRED, 2, &[inferred], "obj.work");
        check(NAME | INFERRED, 2, &[work, 0, inferred], "work");
        check(NAME | INFERRED, 2, &[empty, 0, inferred], "obj.work");
        check(0, 2, &[], "(anonymous)");
    }
}

#[test]
fn hostile_objects_have_no_name() {
    let (mut heap, mut v8) = (Heap::default(), Heap::start(&[]).unwrap());
    let itself = heap.made_of(THIN, 4, &[0]);
    heap.set(itself - TAG + 16, itself);
    let both = heap.made_of(CONCATENATED, u32::MAX as usize, &[0, 0]);
    heap.set(both - TAG + 16, both);
    heap.set(both - TAG + 24, both);
    let huge = heap.made_of(EXTERNAL, u32::MAX as usize, &[0, BASE]);
    let far = heap.made_of(SLICED, 4, &[huge, u64::MAX << 32]);
    let number = heap.object(OTHER, &[]);
    let scope = heap.object(
        SCOPE_INFO,
        &[small_integer(NAME), 0, small_integer(1 << 20)],
    );
    for string in [itself, both, far, number, scope, 0x9999_0001] {
        let function = heap.function(string, 0);
        assert_eq!(named(&mut heap, &mut v8, function), None, "{string:#x}");
    }
    // A name of 4 billion characters is cut.
    let function = heap.function(huge, 0);
    heap.put(&[b'a'; 4096]);
    let name = named(&mut heap, &mut v8, function).unwrap();
    assert!(name.len() < 4096, "{}", name.len());
}
