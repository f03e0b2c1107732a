//! The memory of language runtimes, made up.

use prof_runtimes::Memory;
use prof_runtimes::python::{FRAME_LIMIT, Interpreter, Symbols};

/// Where the first byte is.
const BASE: u64 = 0x1_0000;

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
    let Some((&version, image)) = bytes.split_first() else {
        return;
    };
    if image.is_empty() {
        return;
    }
    let symbols = Symbols {
        runtime: BASE,
        code_type: 1,
        unicode_type: 2,
        bytes_type: 3,
        version: None,
    };
    let mut memory = Image(image);
    let name = format!("python3.{}", 8 + version % 5);
    let Ok(interpreter) = Interpreter::new(symbols, 0, &name, &mut memory) else {
        return;
    };
    let threads = interpreter.threads(&mut memory).unwrap_or_default();
    for thread in threads.iter().take(3) {
        let frames = interpreter.frames(thread, &mut memory).unwrap_or_default();
        assert!(frames.len() <= FRAME_LIMIT);
        for frame in frames {
            let instruction = u64::try_from(frame.instruction);
            assert!(instruction.is_err() || instruction.is_ok_and(|it| it < frame.code.length));
        }
    }
}
