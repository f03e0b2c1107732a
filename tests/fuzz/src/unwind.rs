//! Unwinding.

use std::fs::File;
use std::io::{self, Write};

use prof_model::{
    AbsoluteAddress, FileOffset, Mapping, Module, Modules, Pid, Processes, RegisterAbi,
    UserRegisters,
};
use prof_unwinder::{FRAME_LIMIT, Memory, ModuleFiles, StackDump, Target, Unwinder, UserState};

struct OneFile(Option<File>);

impl ModuleFiles for OneFile {
    fn open(&mut self, _: Pid, _: &Module, _: &Mapping) -> io::Result<File> {
        self.0
            .take()
            .ok_or(io::Error::from(io::ErrorKind::NotFound))
    }
}

/// Memory that repeats the same bytes at all addresses.
struct Pattern<'a>(&'a [u8]);

impl Memory for Pattern<'_> {
    fn read(&mut self, address: u64, buffer: &mut [u8]) -> usize {
        if self.0.is_empty() {
            return 0;
        }
        let skip = (address % self.0.len() as u64) as usize;
        let bytes = self.0.iter().cycle().skip(skip);
        buffer
            .iter_mut()
            .zip(bytes)
            .for_each(|(to, &from)| *to = from);
        buffer.len()
    }
}

/// Unwinds with a damaged ELF file, damaged stack bytes and arbitrary registers: 20 words of
/// registers, the size of the stack (16 bits), the stack, the file.
pub fn unwind(data: &[u8]) {
    const START: u64 = 0x5555_5555_0000;
    const MASK: u64 = 0x00ff_0fff;
    let Some((head, rest)) = data.split_at_checked(20 * 8 + 2) else {
        return;
    };
    let words = head
        .chunks_exact(8)
        .filter_map(|bytes| bytes.try_into().ok());
    let registers = UserRegisters::new(RegisterAbi::Bits64, MASK, words.map(u64::from_le_bytes));
    let size = usize::from(u16::from_le_bytes([head[160], head[161]])) & !7;
    let (Some(registers), Some((stack, image))) = (registers, rest.split_at_checked(size)) else {
        return;
    };
    let mut file = tempfile::tempfile().expect("temporary file");
    file.write_all(image).expect("temporary file");
    let mut modules = Modules::default();
    let mut processes = Processes::default();
    let mapping = Mapping {
        start: AbsoluteAddress(START),
        end: AbsoluteAddress(START + 0x10_0000),
        file_offset: FileOffset(0),
        module: modules.intern(Module::from_path("/x")),
        executable: true,
    };
    processes.map(1, mapping);
    let mut unwinder = Unwinder::new(OneFile(Some(file)));
    let target = Target {
        pid: 1,
        process: processes.get(1).expect("process"),
        modules: &modules,
    };
    let dump = StackDump {
        start: registers.get(7).unwrap_or(0),
        bytes: stack,
        full: true,
    };
    let mut frames = Vec::new();
    unwinder.unwind(
        &target,
        &UserState {
            registers: &registers,
            dump,
        },
        &mut Pattern(stack),
        &mut frames,
    );
    assert!(frames.len() <= FRAME_LIMIT);
}
