//! Memory that a process has made up: bounded work, and no frame that is not proven.

use prof_runtimes::Memory;
use prof_runtimes::python::{FRAME_LIMIT, Frame, Interpreter, PythonError, Symbols, Thread};

const BASE: u64 = 0x1_0000;
const RUNTIME: u64 = BASE;
const INTERPRETER: u64 = BASE + 0x100;
const STATE: u64 = BASE + 0x200;
const CODE: u64 = BASE + 0x300;
const INSTRUCTIONS: u64 = BASE + 0x400;
const TABLE: u64 = BASE + 0x480;
const NAME: u64 = BASE + 0x500;
const FRAMES: u64 = BASE + 0x1000;
const FRAME: u64 = 0x100;
const TYPES: [u64; 3] = [1, 2, 3];

/// An image of CPython 3.9's objects; all beyond it reads as if there were no end of zeros.
struct Fake {
    image: Vec<u8>,
    /// Bytes that were read.
    read: usize,
}

impl Memory for Fake {
    fn read(&mut self, address: u64, buffer: &mut [u8]) -> usize {
        self.read += buffer.len();
        buffer.fill(0);
        let start = address.wrapping_sub(BASE) as usize;
        let there = self.image.get(start..).unwrap_or_default();
        let length = there.len().min(buffer.len());
        buffer[..length].copy_from_slice(&there[..length]);
        buffer.len()
    }
}

impl Fake {
    /// One thread with so many frames, each of a function `f`.
    fn new(frames: u64) -> Self {
        let size = FRAMES - BASE + frames * FRAME;
        let mut fake = Self {
            image: vec![0; size as usize],
            read: 0,
        };
        fake.set(RUNTIME + 32, INTERPRETER);
        fake.set(INTERPRETER + 8, STATE);
        fake.set(STATE + 24, FRAMES);
        let [code, unicode, bytes] = TYPES;
        let objects = [
            (CODE, code),
            (INSTRUCTIONS, bytes),
            (TABLE, bytes),
            (NAME, unicode),
        ];
        for (object, its_type) in objects {
            fake.set(object + 8, its_type);
        }
        fake.set(CODE + 40, 7);
        for (field, object) in [(48, INSTRUCTIONS), (104, NAME), (112, NAME), (120, TABLE)] {
            fake.set(CODE + field, object);
        }
        fake.set(INSTRUCTIONS + 16, 8);
        fake.set(NAME + 16, 1);
        fake.set(NAME + 32, 1 << 2 | 1 << 5 | 1 << 6);
        fake.set(NAME + 48, u64::from(b'f'));
        for index in 0..frames {
            let frame = FRAMES + index * FRAME;
            let is_last = index + 1 == frames;
            fake.set(frame + 24, if is_last { 0 } else { frame + FRAME });
            fake.set(frame + 32, CODE);
        }
        fake
    }

    fn set(&mut self, address: u64, word: u64) {
        let at = (address - BASE) as usize;
        self.image[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }

    fn interpreter(&mut self) -> Interpreter {
        let [code_type, unicode_type, bytes_type] = TYPES;
        let symbols = Symbols {
            runtime: RUNTIME,
            code_type,
            unicode_type,
            bytes_type,
            version: None,
        };
        Interpreter::new(symbols, 0, "python3.9", self).unwrap()
    }

    fn threads(&mut self) -> Result<Vec<Thread>, PythonError> {
        self.interpreter().threads(self)
    }

    fn frames(&mut self) -> Result<Vec<Frame>, PythonError> {
        let interpreter = self.interpreter();
        let threads = interpreter.threads(self)?;
        interpreter.frames(&threads[0], self)
    }
}

/// What comes of three frames after a word was changed.
fn changed(address: u64, word: u64) -> Result<usize, PythonError> {
    let mut fake = Fake::new(3);
    fake.set(address, word);
    let frames = fake.frames();
    assert!(fake.read < 64 << 20, "{} bytes", fake.read);
    frames.map(|frames| frames.len())
}

#[test]
fn the_image_is_that_of_an_interpreter() {
    let frames = Fake::new(3).frames().unwrap();
    let found: Vec<_> = frames.iter().map(|it| (&*it.code.name, it.line)).collect();
    assert_eq!(found, [("f", Some(7)); 3]);
}

#[test]
fn lists_that_do_not_end_are_no_stacks() {
    let last = FRAMES + 2 * FRAME;
    assert_eq!(changed(last + 24, FRAMES), Err(PythonError::Endless));
    assert_eq!(changed(last + 24, last), Err(PythonError::Endless));
    let limit = FRAME_LIMIT as u64;
    assert_eq!(Fake::new(limit).frames().unwrap().len(), FRAME_LIMIT);
    assert_eq!(Fake::new(limit + 1).frames(), Err(PythonError::Endless));
    for field in [STATE + 8, INTERPRETER] {
        let mut fake = Fake::new(1);
        fake.set(field, if field == INTERPRETER { field } else { STATE });
        assert_eq!(fake.threads(), Err(PythonError::Endless));
    }
}

#[test]
fn what_does_not_fit_is_no_frame() {
    let wrong = |object| Err(PythonError::WrongType(object));
    assert_eq!(changed(FRAMES + 32, NAME), wrong(NAME));
    assert_eq!(changed(CODE + 112, CODE), wrong(CODE));
    assert_eq!(changed(CODE + 120, NAME), wrong(NAME));
    assert_eq!(changed(CODE + 48, NAME), wrong(NAME));
    assert_eq!(changed(NAME + 32, 0), wrong(NAME));
    let outside = Err(PythonError::OutsideCode(FRAMES));
    assert_eq!(changed(FRAMES + 104, 8), outside);
    assert_eq!(changed(FRAMES + 104, u64::from(u32::MAX - 1)), outside);
    assert_eq!(changed(FRAMES + 104, 7), Ok(3));
    assert_eq!(changed(FRAMES + 24, 5), wrong(0), "zeros");
}

#[test]
fn sizes_are_bounded() {
    let huge = 1 << 40;
    assert_eq!(changed(NAME + 16, huge), Ok(3), "a name is cut");
    assert_eq!(changed(TABLE + 16, huge), Err(PythonError::TooLarge(TABLE)));
    assert_eq!(changed(INSTRUCTIONS + 16, huge), Ok(3), "code is not read");
    // Each frame has a code object of its own, whose table is as large as it may be.
    let mut fake = Fake::new(FRAME_LIMIT as u64);
    fake.set(TABLE + 16, 1 << 20);
    for index in 0..FRAME_LIMIT as u64 {
        let code = FRAMES + index * FRAME + 112;
        for field in [8, 40, 48, 104, 112, 120] {
            let at = (CODE + field - BASE) as usize;
            let word = fake.image[at..].first_chunk::<8>().unwrap();
            let word = u64::from_le_bytes(*word);
            fake.set(code + field, word);
        }
        fake.set(FRAMES + index * FRAME + 32, code);
    }
    assert_eq!(fake.frames(), Err(PythonError::Limit));
    assert!(fake.read < 64 << 20, "{} bytes", fake.read);
}
