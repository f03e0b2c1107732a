//! Instructions of 64-bit ARM: our disassembly must equal that of `llvm-objdump`.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test, helpers included"
)]

use std::path::Path;
use std::process::Command;

use object::{Object, ObjectSection, ObjectSymbol};
use prof_model::{FileOffset, Module, StackEnd};
use prof_report::profile::{Event, Frame, Sample, Unit};
use prof_report::view::annotate::{Annotation, Syntax, Wanted};
use prof_report::{Filter, Profile, SymbolizedProfile};
use prof_symbols::{SymbolOptions, Symbolizer};

/// Branches both ways, calls, addresses of data, divisions, floating point.
const SOURCE: &str = "
    unsigned long table[64];
    double ratios[8];
    __attribute__((noinline)) unsigned long work(unsigned long n) {
        unsigned long x = 1;
        for (unsigned long i = 0; i < n; i++) {
            x = x * 31 + table[i & 63];
            if (x % 7 == 3)
                x ^= x >> 13;
            ratios[i & 7] += x;
        }
        return x;
    }
    int main(int count) {
        for (int i = 0; i < count; i++)
            table[i] = work(count * 1000);
        return work(count);
    }";

fn have_llvm() -> bool {
    let works = |tool: &str| {
        let version = Command::new(tool).arg("--version").output();
        version.is_ok_and(|output| output.status.success())
    };
    let all = ["clang", "ld.lld", "llvm-objdump"].into_iter().all(works);
    if !all {
        assert!(std::env::var_os("CI").is_none(), "LLVM's tools are missing");
        eprintln!("SKIPPED: no clang, ld.lld or llvm-objdump; no code for ARM was compared");
    }
    all
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Addresses and instructions of a function by llvm-objdump.
fn objdump(program: &Path, function: &str) -> Vec<(u64, String)> {
    let mut objdump = Command::new("llvm-objdump");
    objdump.args(["-d", "--no-show-raw-insn", "--print-imm-hex"]);
    objdump.arg(format!("--disassemble-symbols={function}"));
    let text = run(objdump.arg(program));
    let instruction = |line: &str| {
        let (address, instruction) = line.split_once(':')?;
        let address = u64::from_str_radix(address.trim(), 16).ok()?;
        let plain = instruction.split(" <").next().unwrap_or_default();
        Some((address, normal(plain)))
    };
    text.lines().filter_map(instruction).collect()
}

/// With single spaces and decimal numbers: of some operands LLVM's are decimal in any case.
fn normal(instruction: &str) -> String {
    let word = |word: &str| match word.split_once("#0x") {
        Some((before, hex)) => {
            let digits = hex.trim_end_matches(|c: char| !c.is_ascii_hexdigit());
            let number = u64::from_str_radix(digits, 16).unwrap();
            format!("{before}#{number}{}", &hex[digits.len()..])
        }
        None => word.to_owned(),
    };
    let words: Vec<String> = instruction.split_whitespace().map(word).collect();
    words.join(" ")
}

/// A profile of one sample in a function of a program.
fn profile(program: &Path, function: &str) -> Profile {
    let bytes = std::fs::read(program).unwrap();
    let elf = object::File::parse(&*bytes).unwrap();
    let symbol = elf.symbol_by_name(function).unwrap();
    let text = elf.section_by_name(".text").unwrap();
    let offset = symbol.address() - text.address() + text.file_range().unwrap().0;
    let mut profile = Profile::default();
    profile.events.push(Event {
        name: "cpu-clock".into(),
        unit: Unit::Nanoseconds,
    });
    let module = profile.modules.intern(Module::from_path(program));
    let frame = profile.frames.intern(Frame::Module {
        module,
        offset: FileOffset(offset + 4),
    });
    profile.samples.push(Sample {
        time: 0,
        pid: 1,
        tid: 1,
        cpu: None,
        event: 0,
        period: 1,
        count: 1,
        name: profile.names.intern("arm"),
        stack: profile.stacks.intern(None, frame),
        end: StackEnd::Root,
        remote_read: 0,
    });
    profile
}

#[test]
fn instructions_are_those_of_llvm() {
    if !have_llvm() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let [source, program] = ["arm.c", "arm"].map(|name| directory.path().join(name));
    std::fs::write(&source, SOURCE).unwrap();
    let mut clang = Command::new("clang");
    clang.args(["--target=aarch64-linux-gnu", "-g", "-O2", "-ffreestanding"]);
    clang.args(["-nostdlib", "-static", "-fuse-ld=lld", "-Wl,-e,main", "-o"]);
    run(clang.arg(&program).arg(&source));
    for function in ["work", "main"] {
        let symbolizer = Symbolizer::new(SymbolOptions::default());
        let symbolized = SymbolizedProfile::new(profile(&program, function), &symbolizer);
        let annotation =
            Annotation::new(&symbolized, &Filter::default(), Wanted::Named(function)).unwrap();
        let listings = annotation.code(&symbolizer, Syntax::default());
        assert_eq!(listings.len(), 1);
        let ours = listings[0].instructions.as_ref().unwrap();
        let sampled: Vec<_> = ours.iter().filter(|one| one.own.samples == 1).collect();
        assert_eq!(sampled.len(), 1);
        assert_eq!(sampled[0].address, ours[0].address + 4);
        let ours: Vec<_> = ours
            .iter()
            .map(|one| (one.address, normal(&one.text)))
            .collect();
        let theirs = objdump(&program, function);
        assert!(theirs.len() > 15, "{theirs:?}");
        assert_eq!(ours, theirs);
    }
}
