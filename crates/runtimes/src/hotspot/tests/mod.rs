//! Simulated memory of a virtual machine with some code.

use std::ops::Range;

use prof_model::Account;

use super::names::LASTS;
use super::{Code, Frames, HotSpot};
use crate::Memory;

mod names;

const BASE: u64 = 0x1_0000;
/// The symbols of the tables: one after the other from the base on.
const SYMBOLS: [&str; 18] = [
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
    "heaps",
    "end",
];
/// Owner, name, type and offset.
type Field = (&'static str, &'static str, &'static str, u64);
const ALL_VERSIONS: [Field; 10] = [
    ("GrowableArrayBase", "_len", "int", 0),
    ("GrowableArray<int>", "_data", "int*", 8),
    ("CodeHeap", "_memory", "VirtualSpace", 8),
    ("CodeHeap", "_segmap", "VirtualSpace", 120),
    ("CodeHeap", "_log2_segment_size", "int", 256),
    ("VirtualSpace", "_low", "char*", 16),
    ("VirtualSpace", "_high", "char*", 24),
    ("HeapBlock", "_header", "HeapBlock::Header", 0),
    ("Method", "_constMethod", "ConstMethod*", 8),
    ("ConstMethod", "_code_size", "u2", 32),
];
const HOTSPOT_17: [Field; 7] = [
    ("HeapBlock::Header", "_length", "size_t", 0),
    ("HeapBlock::Header", "_used", "bool", 8),
    ("CodeBlob", "_name", "const char*", 96),
    ("CodeBlob", "_code_begin", "address", 32),
    ("CodeBlob", "_code_end", "address", 40),
    ("CodeBlob", "_frame_size", "int", 28),
    ("CodeBlob", "_frame_complete_offset", "int", 20),
];
const HOTSPOT_25: [Field; 7] = [
    ("HeapBlock::Header", "_length", "uint32_t", 0),
    ("HeapBlock::Header", "_used", "bool", 4),
    ("CodeBlob", "_name", "const char*", 8),
    ("CodeBlob", "_code_offset", "int", 36),
    ("CodeBlob", "_data_offset", "int", 40),
    ("CodeBlob", "_frame_size", "int", 44),
    ("CodeBlob", "_frame_complete_offset", "int16_t", 54),
];
/// Those that only names need.
const NAME_FIELDS: [Field; 8] = [
    ("CompiledMethod", "_method", "Method*", 112),
    ("ConstMethod", "_constants", "ConstantPool*", 8),
    ("ConstMethod", "_name_index", "u2", 34),
    ("ConstMethod", "_signature_index", "u2", 36),
    ("ConstantPool", "_pool_holder", "InstanceKlass*", 24),
    ("Klass", "_name", "Symbol*", 24),
    ("Symbol", "_length", "u2", 4),
    ("Symbol", "_body", "u1", 6),
];
const SIZES: [(&str, u64); 8] = [
    ("HeapBlock", 16),
    ("ConstMethod", 48),
    ("ConstantPool", 72),
    ("bool", 1),
    ("int16_t", 2),
    ("int", 4),
    ("uint32_t", 4),
    ("size_t", 8),
];
const SEGMENT: u64 = 16;

/// Memory that tests can write.
#[derive(Clone)]
struct Image(Vec<u8>);

impl Memory for Image {
    fn read(&mut self, address: u64, buffer: &mut [u8]) -> usize {
        let start = usize::try_from(address.wrapping_sub(BASE)).unwrap_or(usize::MAX);
        let bytes = self.0.get(start..).unwrap_or_default();
        let count = bytes.len().min(buffer.len());
        buffer[..count].copy_from_slice(&bytes[..count]);
        count
    }
}

impl Image {
    /// Appends words; returns their address.
    fn words(&mut self, words: &[u64]) -> u64 {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.bytes(&bytes)
    }

    fn bytes(&mut self, bytes: &[u8]) -> u64 {
        self.0.resize(self.0.len().next_multiple_of(8), 0);
        let at = BASE + self.0.len() as u64;
        self.0.extend_from_slice(bytes);
        at
    }

    fn text(&mut self, text: &str) -> u64 {
        self.bytes(&[text.as_bytes(), &[0]].concat())
    }

    fn set(&mut self, address: u64, bytes: &[u8]) {
        let at = (address - BASE) as usize;
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn symbol(&mut self, name: &str, value: u64) {
        let index = SYMBOLS.iter().position(|it| *it == name).unwrap() as u64;
        self.set(BASE + 8 * index, &value.to_le_bytes());
    }
}

/// A virtual machine with memory for code.
struct Machine {
    image: Image,
    fields: Vec<Field>,
    /// The addresses of its segment map and its code.
    map: u64,
    memory: u64,
    next: u64,
}

impl Machine {
    const SEGMENTS: u64 = 1024;

    fn new(fields: &[&[Field]]) -> Self {
        let fields = fields.concat();
        let mut image = Image(vec![0; SYMBOLS.len() * 8]);
        let mut entries = Vec::new();
        for &(owner, field, kind, offset) in &fields {
            let [owner, field, kind] = [owner, field, kind].map(|text| image.text(text));
            entries.extend([owner, field, kind, 0, offset, 0]);
        }
        let (owner, field) = (image.text("CodeCache"), image.text("_heaps"));
        let heaps = BASE + 8 * (SYMBOLS.len() as u64 - 2);
        entries.extend([owner, field, 0, 1, 0, heaps, 0, 0, 0, 0, 0, 0]);
        let entries = image.words(&entries);
        image.symbol("gHotSpotVMStructs", entries);
        for (name, offset) in [
            ("ArrayStride", 48),
            ("TypeNameOffset", 0),
            ("FieldNameOffset", 8),
            ("TypeStringOffset", 16),
            ("IsStaticOffset", 24),
            ("OffsetOffset", 32),
            ("AddressOffset", 40),
        ] {
            image.symbol(&format!("gHotSpotVMStructEntry{name}"), offset);
        }
        let mut types = Vec::new();
        for (name, size) in SIZES {
            types.extend([image.text(name), size]);
        }
        let types = image.words(&[&types[..], &[0, 0]].concat());
        image.symbol("gHotSpotVMTypes", types);
        image.symbol("gHotSpotVMTypeEntryArrayStride", 16);
        image.symbol("gHotSpotVMTypeEntrySizeOffset", 8);
        let name = image.text("frame::interpreter_frame_sender_sp_offset");
        let constants = image.words(&[name, 0xffff_ffff, 0, 0]);
        image.symbol("gHotSpotVMIntConstants", constants);
        image.symbol("gHotSpotVMIntConstantEntryArrayStride", 16);
        image.symbol("gHotSpotVMIntConstantEntryValueOffset", 8);
        let map = image.bytes(&[0xff; Self::SEGMENTS as usize]);
        let memory = image.bytes(&vec![0; (Self::SEGMENTS * SEGMENT) as usize]);
        let heap = image.bytes(&[0; 264]);
        let high = memory + Self::SEGMENTS * SEGMENT;
        for (offset, value) in [
            (24, memory),
            (32, high),
            (136, map),
            (144, map + Self::SEGMENTS),
            (256, SEGMENT.trailing_zeros().into()),
        ] {
            image.set(heap + offset, &value.to_le_bytes());
        }
        let data = image.words(&[heap]);
        let array = image.words(&[1, data]);
        image.symbol("heaps", array);
        let next = 0;
        Self {
            image,
            fields,
            map,
            memory,
            next,
        }
    }

    /// Adds a blob of this many segments; returns the address of its code, 256 bytes after its
    /// start.
    fn blob(&mut self, name: &str, segments: u64, frame: i32, complete: i32) -> u64 {
        let first = self.next;
        self.next += segments;
        self.put(first..first + segments, name, (frame, complete))
    }

    /// Puts a blob into these segments.
    fn put(&mut self, place: Range<u64>, name: &str, (frame, complete): (i32, i32)) -> u64 {
        let (first, segments) = (place.start, place.end - place.start);
        for segment in 0..segments {
            let down = segment.min(254) as u8;
            self.image.set(self.map + first + segment, &[down]);
        }
        let block = self.memory + first * SEGMENT;
        let name = self.image.text(name);
        let (begin, end) = (block + 272, block + segments * SEGMENT);
        self.set_field(block, ("HeapBlock::Header", "_length"), segments);
        self.set_field(block, ("HeapBlock::Header", "_used"), 1);
        let blob = block + 16;
        for (field, value) in [
            ("_name", name),
            ("_code_begin", begin),
            ("_code_end", end),
            ("_code_offset", begin - blob),
            ("_data_offset", end - blob),
            ("_frame_size", frame as u64),
            ("_frame_complete_offset", complete as u64),
        ] {
            self.set_field(blob, ("CodeBlob", field), value);
        }
        begin
    }

    /// Sets a field of the structure at this address, if there is such a field.
    fn set_field(&mut self, structure: u64, (owner, name): (&str, &str), value: u64) {
        let mut fields = self.fields.iter();
        let field = fields.find(|field| (field.0, field.1) == (owner, name));
        let Some(&(_, _, kind, offset)) = field else {
            return;
        };
        let size = SIZES.iter().find(|(name, _)| *name == kind);
        let size = size.map_or(8, |&(_, size)| size as usize);
        (self.image).set(structure + offset, &value.to_le_bytes()[..size]);
    }

    /// Adds a method; returns its address.
    fn method(&mut self, [class, name, signature]: [&str; 3]) -> u64 {
        let [class, name, signature] = [class, name, signature].map(|text| {
            let header = [&[0; 4][..], &(text.len() as u16).to_le_bytes()].concat();
            self.image.bytes(&[&header, text.as_bytes()].concat())
        });
        let class = self.image.words(&[0, 0, 0, class]);
        let constants = [0, 0, 0, class, 0, 0, 0, 0, 0, 0, name, signature];
        let constants = self.image.words(&constants);
        let indices = (1 << 16 | 2 << 32) | 12;
        let const_method = self.image.words(&[0, constants, 0, 0, indices, 0]);
        self.image.words(&[0, const_method])
    }

    /// Says that the code that begins here, with a header of 256 bytes, is of this method.
    fn set_method(&mut self, code: u64, method: u64) {
        self.image.set(code - 256 + 112, &method.to_le_bytes());
    }

    fn start(&mut self) -> Option<HotSpot> {
        self.start_with(&Account::default())
    }

    fn start_with(&mut self, account: &Account) -> Option<HotSpot> {
        let symbols = (BASE..).step_by(8).zip(SYMBOLS);
        let symbols: Vec<_> = symbols.map(|(at, name)| (name, at)).collect();
        HotSpot::new(&symbols, &mut self.image, account)
    }
}

fn fixed(size: u32, complete: Option<u64>) -> Option<Frames> {
    Some(Frames::Fixed { size, complete })
}

#[test]
fn code_has_the_frames_that_its_blob_says() {
    check_frames(&HOTSPOT_17);
    check_frames(&HOTSPOT_25);
}

fn check_frames(version: &[Field]) {
    let mut machine = Machine::new(&[&ALL_VERSIONS, version]);
    let interpreter = machine.blob("Interpreter", 600, 0, -1);
    let method = machine.blob("nmethod", 24, 6, 21);
    let native = machine.blob("native nmethod", 20, 10, 0);
    let stub = machine.blob("RuntimeStub", 20, 4, -1);
    let exception = machine.blob("ExceptionBlob", 20, 2, -1);
    let continuation = machine.blob("StubRoutines (continuation stubs)", 20, 0, -1);
    let adapter = machine.blob("I2C/C2I adapters", 20, 0, -1);
    let odd = machine.blob("nmethod", 20, i32::MAX, 0);
    let free = machine.memory + machine.next * SEGMENT;
    let mut hotspot = machine.start().unwrap();
    let mut check = |address, expected: Option<Frames>| {
        let code = hotspot.code_at(&mut machine.image, address, 0);
        assert_eq!(code.as_ref().map(|code| code.frames), expected, "{code:?}");
        assert!(code.is_none_or(|code| code.range.contains(&address)));
    };
    check(interpreter, Some(Frames::Interpreter));
    check(method - 272 - 1, Some(Frames::Interpreter));
    check(method - 1, None);
    check(method, fixed(48, Some(method + 21)));
    check(native - 273, fixed(48, Some(method + 21)));
    check(native, fixed(80, Some(native)));
    let stub_of = |size, pushes_return_address| {
        Some(Frames::Stub {
            size,
            pushes_return_address,
        })
    };
    check(stub, stub_of(32, false));
    check(exception, stub_of(16, true));
    check(continuation, Some(Frames::Continuation));
    check(adapter, Some(Frames::Unknown));
    check(odd, Some(Frames::Unknown));
    check(free + 300, None);
    check(0, None);
}

#[test]
fn replaced_code_is_noticed() {
    let mut machine = Machine::new(&[&ALL_VERSIONS, &HOTSPOT_17]);
    let old = machine.blob("nmethod", 48, 6, 0);
    let mut hotspot = machine.start().unwrap();
    let mut frames = |image: &mut Image, address, now| {
        let code: Option<Code> = hotspot.code_at(image, address, now);
        code.map(|code| code.frames)
    };
    assert_eq!(
        frames(&mut machine.image, old + 400, 0),
        fixed(48, Some(old))
    );
    machine.put(0..20, "nmethod", (4, 0));
    let new = machine.put(20..48, "nmethod", (8, 0));
    assert_eq!(
        frames(&mut machine.image, old + 400, 1),
        fixed(48, Some(old))
    );
    let later = LASTS;
    assert_eq!(
        frames(&mut machine.image, old + 400, later),
        fixed(64, Some(new))
    );
    assert_eq!(frames(&mut machine.image, old, later), fixed(32, Some(old)));
    // After the end of a process, its known code stays.
    let mut gone = Image(Vec::new());
    assert_eq!(frames(&mut gone, old, 9 * later), fixed(32, Some(old)));
    machine.image.set(machine.memory + 8, &[0]);
    assert_eq!(frames(&mut machine.image, old, 9 * later), None);
    assert!(hotspot.holds(old) && !hotspot.holds(BASE));
}

#[test]
fn methods_have_bytecodes() {
    let mut machine = Machine::new(&[&ALL_VERSIONS, &HOTSPOT_17]);
    let const_method = machine.image.words(&[0, 0, 0, 0, 12, 0]);
    let method = machine.image.words(&[0, const_method]);
    let none = machine.image.words(&[0, 0]);
    let mut hotspot = machine.start().unwrap();
    let mut bytecodes = |method| hotspot.bytecodes(&mut machine.image, method, 0);
    let start = const_method + 48;
    assert_eq!(bytecodes(method), Some(start..start + 12));
    assert_eq!(bytecodes(none), None);
    assert_eq!(bytecodes(method + 1), None);
    assert_eq!(bytecodes(0), None);
}

#[test]
fn tables_that_lack_a_field_are_not_believed() {
    for version in [&HOTSPOT_17[..], &HOTSPOT_25] {
        let all = [&ALL_VERSIONS, version].concat();
        for missing in 0..all.len() {
            let mut fields = all.clone();
            let removed = fields.remove(missing);
            assert!(Machine::new(&[&fields]).start().is_none(), "{removed:?}");
        }
    }
    let mut machine = Machine::new(&[&ALL_VERSIONS, &HOTSPOT_17]);
    machine.image.symbol("gHotSpotVMTypes", 0);
    assert!(machine.start().is_none());
}
