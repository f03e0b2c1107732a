//! The jitdump format: a run-time compiler's log of the code it made, with lines.
//!
//! Source: the kernel's `tools/perf/Documentation/jitdump-specification.txt`. A log says when code
//! was made; as a query has no time, the last code at an address counts.

use std::fs::File;
use std::io::{self, BufReader, Read};

use object::elf;

use super::code::{CodeLine, Function, JitCode};
use crate::code::Machine;

const MAGIC: u32 = 0x4A69_5444;
const HEADER: usize = 40;
const RECORD_HEADER: usize = 16;
const CODE_LOAD: u32 = 0;
const CODE_MOVE: u32 = 1;
const DEBUG_INFO: u32 = 2;

/// More of a dump is not read, in bytes.
const LONGEST: u64 = 4 << 30;
/// Nor of one record: it holds a function's code and name, or its lines.
const LONGEST_RECORD: usize = 64 << 20;

/// Reads a jitdump; of a damaged one, what comes before the damage. `None` if it is none.
pub(super) fn read(file: &File) -> Option<JitCode> {
    let mut input = BufReader::with_capacity(1 << 16, file).take(LONGEST);
    let mut header = [0; HEADER];
    input.read_exact(&mut header).ok()?;
    let magic = header.first_chunk()?;
    let big_endian = match u32::from_le_bytes(*magic) {
        MAGIC => false,
        swapped if swapped.swap_bytes() == MAGIC => true,
        _ => return None,
    };
    let mut fields = Fields {
        bytes: header.get(8..)?,
        big_endian,
    };
    let header_size = fields.u32()?;
    let rest = (header_size as usize).checked_sub(HEADER)?;
    skip(&mut input, rest as u64).ok()?;
    let mut code = JitCode::default();
    code.machine = fields.u32().map(machine);
    let mut reader = Reader {
        code,
        position: header_size.into(),
        pending: Vec::new(),
    };
    let mut record = Vec::new();
    while !reader.code.is_full()
        && let Some(kind) = next_record(&mut input, &mut record, big_endian)
    {
        reader.position += RECORD_HEADER as u64;
        let fields = Fields {
            bytes: &record,
            big_endian,
        };
        // A record that contradicts itself is passed over; its size was right.
        let _ = reader.take(kind, fields);
        reader.position += record.len() as u64;
    }
    Some(reader.code)
}

fn skip(input: &mut impl Read, bytes: u64) -> io::Result<u64> {
    io::copy(&mut input.take(bytes), &mut io::sink())
}

/// Reads the next record's body and returns its kind; `None` at the end.
fn next_record(input: &mut impl Read, body: &mut Vec<u8>, big_endian: bool) -> Option<u32> {
    let mut header = [0; RECORD_HEADER];
    input.read_exact(&mut header).ok()?;
    let mut fields = Fields {
        bytes: &header,
        big_endian,
    };
    let kind = fields.u32()?;
    let size = (fields.u32()? as usize).checked_sub(RECORD_HEADER)?;
    if size > LONGEST_RECORD {
        return None;
    }
    body.clear();
    let read = input.take(size as u64).read_to_end(body).ok()?;
    (read == size).then_some(kind)
}

/// From the `e_machine` of an ELF file.
fn machine(number: u32) -> Machine {
    match u16::try_from(number).map(elf::Machine) {
        Ok(elf::EM_X86_64) => Machine::X86(64),
        Ok(elf::EM_386) => Machine::X86(32),
        Ok(elf::EM_AARCH64) => Machine::Aarch64,
        _ => Machine::Other,
    }
}

struct Reader {
    code: JitCode,
    /// The file offset of the current record's body.
    position: u64,
    /// The lines of the function that comes next.
    pending: Vec<CodeLine>,
}

impl Reader {
    fn take(&mut self, kind: u32, mut fields: Fields<'_>) -> Option<()> {
        match kind {
            CODE_LOAD => {
                let body = fields.bytes.len();
                fields.skip(16)?; // pid, tid, vma
                let start = fields.u64()?;
                let size = fields.u64()?;
                fields.skip(8)?; // code_index
                let name = fields.text()?;
                let at = self.position + (body - fields.bytes.len()) as u64;
                let rest = fields.bytes.len() as u64;
                let function = Function {
                    name,
                    lines: unshifted(std::mem::take(&mut self.pending), start),
                    bytes: Some(at..at + rest.min(size)),
                };
                self.code.insert(start, size, function);
            }
            CODE_MOVE => {
                fields.skip(16)?;
                let old = fields.u64()?;
                let new = fields.u64()?;
                let size = fields.u64()?;
                self.code.relocate(old, new, size);
            }
            DEBUG_INFO => self.lines(fields)?,
            _ => {}
        }
        Some(())
    }

    fn lines(&mut self, mut fields: Fields<'_>) -> Option<()> {
        self.pending.clear();
        fields.skip(8)?; // code_addr, which the load record repeats
        let count = fields.u64()?;
        let mut file = None;
        for _ in 0..count {
            let address = fields.u64()?;
            let line = fields.u32()?;
            fields.skip(4)?; // discriminator
            let name = fields.bytes_to_nul()?;
            // 0xff alone stands for the name before.
            if name != [0xff] {
                file = Some(self.code.file(&String::from_utf8_lossy(name)));
            }
            if let Some(file) = file.filter(|_| line > 0) {
                self.pending.push(CodeLine {
                    address,
                    file,
                    line,
                });
            }
        }
        Some(())
    }
}

/// LLVM and V8 add 0x40 to the addresses of lines, because that is where `perf inject` used to put
/// the code in the ELF files that it makes of a dump.
fn unshifted(mut lines: Vec<CodeLine>, start: u64) -> Vec<CodeLine> {
    const SHIFT: u64 = 0x40;
    let shifted = |line: &CodeLine| line.address >= start.saturating_add(SHIFT);
    if lines.iter().all(shifted) {
        lines.iter_mut().for_each(|line| line.address -= SHIFT);
    }
    lines
}

/// Takes numbers off the front of some bytes.
struct Fields<'a> {
    bytes: &'a [u8],
    big_endian: bool,
}

impl<'a> Fields<'a> {
    fn skip(&mut self, count: usize) -> Option<()> {
        self.bytes = self.bytes.get(count..)?;
        Some(())
    }

    fn u32(&mut self) -> Option<u32> {
        let (first, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some(match self.big_endian {
            true => u32::from_be_bytes(*first),
            false => u32::from_le_bytes(*first),
        })
    }

    fn u64(&mut self) -> Option<u64> {
        let (first, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some(match self.big_endian {
            true => u64::from_be_bytes(*first),
            false => u64::from_le_bytes(*first),
        })
    }

    fn bytes_to_nul(&mut self) -> Option<&'a [u8]> {
        let length = self.bytes.iter().position(|&byte| byte == 0)?;
        let text = self.bytes.get(..length)?;
        self.skip(length + 1)?;
        Some(text)
    }

    fn text(&mut self) -> Option<String> {
        Some(String::from_utf8_lossy(self.bytes_to_nul()?).into_owned())
    }
}
