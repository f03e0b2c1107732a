//! Finds the code of a function whose symbol covers only a part of it.
//!
//! GCC moves code that it considers rarely executed away, even all but the start of CPython 3.14's
//! evaluation loop. Such a part has its own FDE, and a symbol only in files that are not stripped.
//! It is found by the jumps that lead there:
//!
//! ```text
//!   _PyEval_EvalFrameDefault   push rbp; mov rbp, rsp; ...     CFA = rbp + 16
//!                              jmp ────────────┐
//!   (no symbol)                                └─> ...         CFA = rbp + 16
//! ```
//! A jump to another function is a tail call: it leaves the stack as at the start of a function. So
//! a jump with the frame in place, if the frame is the same at the jump's target, stays in the
//! function.

use std::ops::Range;

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, EndianSlice, LittleEndian, ParsedEhFrameHdr,
    UnwindContext, UnwindSection, X86_64,
};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction};
use object::{Architecture, File, Object, ObjectSection, ObjectSegment, ReadRef};

type Bytes<'d> = EndianSlice<'d, LittleEndian>;
type Fde<'d> = gimli::FrameDescriptionEntry<Bytes<'d>>;

/// The most parts of a function, bytes of a part, and jumps out of all parts.
const PARTS: usize = 16;
const LENGTH: u64 = 1 << 20;
const JUMPS: usize = 1 << 10;
/// The most bytes of a part's CFI program.
const PROGRAM: usize = 1 << 20;

/// The parts of a function, including those without a symbol. Only for x86-64.
pub(super) fn with_unnamed<'d, R: ReadRef<'d>>(
    elf: &File<'d, R>,
    named: Vec<Range<u64>>,
) -> Vec<Range<u64>> {
    let mut parts = named;
    let tables = match elf.architecture() {
        Architecture::X86_64 => UnwindTables::of(elf),
        _ => None,
    };
    let Some(tables) = tables else {
        return parts;
    };
    let (mut next, mut jumps_left) = (0, JUMPS);
    while let Some(part) = parts.get(next).filter(|_| next < PARTS).cloned() {
        next += 1;
        for (from, to) in jumps(elf, &part) {
            if jumps_left == 0 || parts.iter().any(|part| part.contains(&to)) {
                continue;
            }
            jumps_left -= 1;
            parts.extend(tables.part_at(from, to));
        }
    }
    parts
}

/// Whether the function itself dispatches each next Python instruction with an indirect jump:
/// builds with `--with-tail-call-interp` have a function for each. Other architectures than x86-64
/// are assumed to.
pub(super) fn dispatch<'d, R: ReadRef<'d>>(elf: &File<'d, R>, parts: &[Range<u64>]) -> bool {
    let is_indirect = |it: Instruction| it.flow_control() == FlowControl::IndirectBranch;
    elf.architecture() != Architecture::X86_64
        || (parts.iter()).any(|part| instructions(elf, part).any(is_indirect))
}

/// The jumps out of this code: their addresses and targets.
fn jumps<'d, R: ReadRef<'d>>(elf: &File<'d, R>, code: &Range<u64>) -> Vec<(u64, u64)> {
    let is_jump = |it: &Instruction| {
        let flow = it.flow_control();
        flow == FlowControl::ConditionalBranch || flow == FlowControl::UnconditionalBranch
    };
    instructions(elf, code)
        .filter(is_jump)
        .map(|it| (it.ip(), it.near_branch_target()))
        .filter(|(_, to)| !code.contains(to))
        .collect()
}

fn instructions<'d, R: ReadRef<'d>>(
    elf: &File<'d, R>,
    code: &Range<u64>,
) -> impl Iterator<Item = Instruction> + use<'d, R> {
    let length = code.end.saturating_sub(code.start).min(LENGTH);
    let mut segments = elf.segments();
    let bytes = segments.find_map(|it| it.data_range(code.start, length).ok().flatten());
    let bytes = bytes.unwrap_or_default();
    Decoder::with_ip(64, bytes, code.start, DecoderOptions::NONE).into_iter()
}

/// A file's unwind tables.
struct UnwindTables<'d> {
    header: ParsedEhFrameHdr<Bytes<'d>>,
    frames: EhFrame<Bytes<'d>>,
    bases: BaseAddresses,
}

impl<'d> UnwindTables<'d> {
    fn of<R: ReadRef<'d>>(elf: &File<'d, R>) -> Option<Self> {
        let section = |name| {
            let section = elf.section_by_name(name)?;
            Some((section.address(), section.data().ok()?))
        };
        let (header_at, header) = section(".eh_frame_hdr")?;
        let (frames_at, frames) = section(".eh_frame")?;
        let bases = BaseAddresses::default()
            .set_eh_frame_hdr(header_at)
            .set_eh_frame(frames_at);
        let header = EhFrameHdr::new(header, LittleEndian);
        Some(Self {
            header: header.parse(&bases, 8).ok()?,
            frames: EhFrame::new(frames, LittleEndian),
            bases,
        })
    }

    /// The code around `to`, if the jump to it stays in its function.
    fn part_at(&self, from: u64, to: u64) -> Option<Range<u64>> {
        let target = self.fde(to)?;
        let cfa = self.cfa(&target, to)?;
        let stays = cfa != AT_A_START && self.cfa(&self.fde(from)?, from)? == cfa;
        stays.then(|| target.initial_address()..target.end_address())
    }

    fn fde(&self, address: u64) -> Option<Fde<'d>> {
        let table = self.header.table()?;
        let fde = table.fde_for_address(&self.frames, &self.bases, address, |it, bases, at| {
            it.cie_from_offset(bases, at)
        });
        fde.ok().filter(|fde| fde.entry_len() <= PROGRAM)
    }

    /// The CFA rule at this address.
    fn cfa(&self, fde: &Fde<'d>, address: u64) -> Option<CfaRule<usize>> {
        let mut context = UnwindContext::new();
        let row = fde.unwind_info_for_address(&self.frames, &self.bases, &mut context, address);
        Some(row.ok()?.cfa().clone())
    }
}

/// The CFA at the start of a function: right above the return address.
const AT_A_START: CfaRule<usize> = CfaRule::RegisterAndOffset {
    register: X86_64::RSP,
    offset: 8,
};

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use object::{ObjectSymbol, ReadCache};

    use super::*;

    /// A function with a part that GCC moves away, and what it calls last.
    const PROGRAM: &str = r#"
        #include <stdlib.h>
        volatile int work;
        __attribute__((noinline)) int last(int *numbers) { return numbers[work]; }
        __attribute__((noinline)) int evaluate(int count)
        {
            int numbers[100];
            for (int i = 0; i < 100; i++)
                numbers[i] = work;
            if (__builtin_expect(count > 10, 0)) {
                for (int i = 0; i < 100; i++)
                    work += numbers[i] * last(numbers);
                abort();
            }
            return last(numbers);
        }
        __attribute__((noinline)) int tail(int count)
        {
            work = evaluate(count);
            return evaluate(work);
        }
        int main(int count, char **words) { return tail(count); }
    "#;

    fn build(folder: &Path) -> PathBuf {
        let program = folder.join("program");
        std::fs::write(folder.join("program.c"), PROGRAM).unwrap();
        let built = std::process::Command::new("gcc")
            .args(["-O2", "-o"])
            .arg(&program)
            .arg(folder.join("program.c"))
            .status();
        assert!(built.unwrap().success());
        program
    }

    /// The code of these symbols.
    fn symbols(program: &Path, names: &[&str]) -> Vec<Range<u64>> {
        let cache = ReadCache::new(std::fs::File::open(program).unwrap());
        let elf = File::parse(&cache).unwrap();
        let of = |name: &&str| {
            let symbol = elf.symbols().find(|it| it.name() == Ok(name));
            let symbol = symbol.unwrap_or_else(|| panic!("{name} in {}", program.display()));
            symbol.address()..symbol.address() + symbol.size()
        };
        names.iter().map(of).collect()
    }

    fn check(program: &Path, named: &[&str], expected: &[&str]) {
        let cache = ReadCache::new(std::fs::File::open(program).unwrap());
        let elf = File::parse(&cache).unwrap();
        let parts = with_unnamed(&elf, symbols(program, named));
        assert_eq!(parts, symbols(program, expected), "{}", program.display());
    }

    #[test]
    fn parts_without_symbols_are_found() {
        if !prof_needs::tools(&["gcc"]) {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let program = build(folder.path());
        check(&program, &["evaluate"], &["evaluate", "evaluate.cold"]);
        // The last call of this one is a jump.
        check(&program, &["tail"], &["tail"]);
        let cache = ReadCache::new(std::fs::File::open(&program).unwrap());
        let elf = File::parse(&cache).unwrap();
        assert!(!dispatch(&elf, &symbols(&program, &["evaluate", "tail"])));
    }

    /// The interpreters of pyenv have all symbols.
    #[test]
    fn loops_have_no_other_parts_than_their_symbols_say() {
        let home = std::env::var("HOME").unwrap_or_default();
        let versions = std::fs::read_dir(format!("{home}/.pyenv/versions"));
        let versions = versions.into_iter().flatten().flatten();
        for program in versions.map(|it| it.path().join("bin/python3")) {
            let Ok(file) = std::fs::File::open(&program) else {
                continue;
            };
            let cache = ReadCache::new(file);
            let elf = File::parse(&cache).unwrap();
            let names = elf.symbols().filter_map(|it| it.name().ok());
            let names = names.filter(|it| it.starts_with("_PyEval_EvalFrameDefault"));
            let mut names: Vec<_> = names.collect();
            // `.cold` comes after it.
            names.sort_unstable();
            if let Some(first) = names.first().copied() {
                check(&program, &[first], &names);
                assert!(dispatch(&elf, &symbols(&program, &names)));
            }
        }
    }
}
