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

use crate::elf::Elf;

type Bytes<'d> = EndianSlice<'d, LittleEndian>;
type Fde<'d> = gimli::FrameDescriptionEntry<Bytes<'d>>;

/// The most parts of a function, bytes of a part, and jumps out of all parts.
const PARTS: usize = 16;
const LENGTH: u64 = 1 << 20;
const JUMPS: usize = 1 << 10;
/// The most bytes of a part's CFI program.
const PROGRAM: usize = 1 << 20;

/// Whether this symbol is another part of a function, which has a few.
pub(crate) fn is_new_part(parts: &[Range<u64>], symbol: &Range<u64>) -> bool {
    !symbol.is_empty() && parts.len() < PARTS && !parts.contains(symbol)
}

/// The parts of a function, including those without a symbol. Only for x86-64.
pub(crate) fn with_unnamed(elf: &Elf<'_>, named: Vec<Range<u64>>) -> Vec<Range<u64>> {
    let mut parts = named;
    let tables = elf.is_x86_64().then(|| UnwindTables::of(elf));
    let Some(tables) = tables.flatten() else {
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
pub(crate) fn dispatch(elf: &Elf<'_>, parts: &[Range<u64>]) -> bool {
    let is_indirect = |it: Instruction| it.flow_control() == FlowControl::IndirectBranch;
    !elf.is_x86_64() || (parts.iter()).any(|part| instructions(elf, part).any(is_indirect))
}

/// The jumps out of this code: their addresses and targets.
fn jumps(elf: &Elf<'_>, code: &Range<u64>) -> Vec<(u64, u64)> {
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

fn instructions<'d>(
    elf: &Elf<'d>,
    code: &Range<u64>,
) -> impl Iterator<Item = Instruction> + use<'d> {
    let end = code.end.min(code.start.saturating_add(LENGTH));
    let bytes = elf.at(code.start..end).unwrap_or_default();
    Decoder::with_ip(64, bytes, code.start, DecoderOptions::NONE).into_iter()
}

/// A file's unwind tables.
struct UnwindTables<'d> {
    header: ParsedEhFrameHdr<Bytes<'d>>,
    frames: EhFrame<Bytes<'d>>,
    bases: BaseAddresses,
}

impl<'d> UnwindTables<'d> {
    fn of(elf: &Elf<'d>) -> Option<Self> {
        let (header_at, header) = elf.section(".eh_frame_hdr")?;
        let (frames_at, frames) = elf.section(".eh_frame")?;
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
    use std::collections::BTreeMap;
    use std::path::{Path, PathBuf};

    use object::ReadCache;

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

    fn with_elf<T>(program: &Path, look: impl FnOnce(&Elf<'_>) -> T) -> T {
        let cache = ReadCache::new(std::fs::File::open(program).unwrap());
        look(&Elf::parse(&cache).unwrap())
    }

    /// Names and code of the symbols that are `wanted`.
    fn symbols(program: &Path, wanted: impl Fn(&str) -> bool) -> BTreeMap<String, Range<u64>> {
        let mut found = BTreeMap::new();
        with_elf(program, |elf| {
            elf.symbols(|name, code| {
                let name = String::from_utf8_lossy(name);
                if wanted(&name) {
                    found.insert(name.into_owned(), code);
                }
            });
        });
        found
    }

    /// The code of these symbols.
    fn code(program: &Path, names: &[&str]) -> Vec<Range<u64>> {
        let symbols = symbols(program, |name| names.contains(&name));
        let of = |name: &&str| symbols.get(*name).cloned();
        names.iter().map(|name| of(name).expect(name)).collect()
    }

    fn check(program: &Path, named: &[&str], expected: &[&str]) {
        let parts = with_elf(program, |elf| with_unnamed(elf, code(program, named)));
        assert_eq!(parts, code(program, expected), "{}", program.display());
    }

    fn dispatches(program: &Path, names: &[&str]) -> bool {
        with_elf(program, |elf| dispatch(elf, &code(program, names)))
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
        assert!(!dispatches(&program, &["evaluate", "tail"]));
    }

    /// The interpreters of pyenv have all symbols.
    #[test]
    fn loops_have_no_other_parts_than_their_symbols_say() {
        let home = std::env::var("HOME").unwrap_or_default();
        let versions = std::fs::read_dir(format!("{home}/.pyenv/versions"));
        let versions = versions.into_iter().flatten().flatten();
        for program in versions.map(|it| it.path().join("bin/python3")) {
            if !program.exists() {
                continue;
            }
            let names = symbols(&program, |it| it.starts_with("_PyEval_EvalFrameDefault"));
            // `.cold` comes after it.
            let names: Vec<_> = names.keys().map(String::as_str).collect();
            if let Some(first) = names.first().copied() {
                check(&program, &[first], &names);
                assert!(dispatches(&program, &names));
            }
        }
    }
}
