//! Frame by frame against `perf script` on the same file: whatever differs belongs to a class that
//! docs/unwinding.md explains.

mod support;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::process::Command;

use object::{Object, ObjectSegment, ObjectSymbol};
use prof_model::{AbsoluteAddress, StackEnd};
use prof_unwinder::{LocalFiles, Unwinder};
use support::programs::{OPTIMIZED, Workshop};
use support::{Samples, UserSample};

/// How perf's answer to a sample relates to ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Same,
    /// No FDE covers the code of one of the frames that both have: perf follows the frame pointer
    /// there, and ends or finds other frames.
    NoTable,
    /// The same for files without .eh_frame_hdr.
    NoIndex,
    /// The same for generated code, of no file.
    Generated,
    /// The sample is among the pops in front of a `ret`: LLVM's CFI still says that the registers
    /// are where they were saved, below the stack pointer, which was not copied.
    Popped,
    /// The last frame that both have made a call that never returns, at the function's end: perf
    /// goes on by the table of the function behind it.
    NoReturn,
    /// libgcc is installing the registers for an exception's handler.
    Landing,
    /// We don't know.
    Unexplained,
}

/// The frames of all samples as `perf script` has them, as (file name, offset in the file).
fn perf_script(file: &Path) -> Vec<Vec<String>> {
    let output = Command::new("perf")
        .args([
            "script",
            "--no-inline",
            "--max-stack",
            "4096",
            "-F",
            "tid,ip,dso",
        ])
        .arg("-i")
        .arg(file)
        .output()
        .expect("perf");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    let frame = |line: &str| {
        let (address, file) = line.trim().split_once(" (")?;
        let file = file.trim_end_matches(')').trim_end_matches(" (deleted)");
        let name = file.rsplit('/').next().unwrap_or(file);
        // Generated code.
        let anonymous = name.starts_with("perf-") || name == "[unknown]";
        Some(match anonymous {
            true => format!("anon+0x{address}"),
            false => format!("{name}+0x{address}"),
        })
    };
    let samples = text.trim_end().split("\n\n");
    samples
        .map(|sample| sample.lines().skip(1).filter_map(frame).collect())
        .collect()
}

/// What files have tables for.
#[derive(Default)]
struct Tables(HashMap<String, Option<Table>>);

struct Table {
    has_index: bool,
    /// Offsets in the file that FDEs cover.
    covered: Vec<(u64, u64)>,
    /// (offset, end, name)
    functions: Vec<(u64, u64, String)>,
    bytes: Vec<u8>,
}

impl Table {
    fn read(path: &Path) -> Option<Self> {
        use gimli::{BaseAddresses, EhFrame, LittleEndian, UnwindSection};
        use object::ObjectSection;
        let bytes = std::fs::read(path).ok()?;
        let file = object::File::parse(&*bytes).ok()?;
        let offset = |address: u64| {
            file.segments().find_map(|segment| {
                let (start, size) = segment.file_range();
                let skip = address.checked_sub(segment.address())?;
                (skip < size).then_some(start + skip)
            })
        };
        let mut covered = Vec::new();
        if let Some(section) = file.section_by_name(".eh_frame") {
            let data = section.uncompressed_data().ok()?;
            let bases = BaseAddresses::default().set_eh_frame(section.address());
            let frames = EhFrame::new(&data, LittleEndian);
            let mut entries = frames.entries(&bases);
            while let Ok(Some(entry)) = entries.next() {
                let gimli::CieOrFde::Fde(fde) = entry else {
                    continue;
                };
                let fde = fde.parse(|_, bases, at| frames.cie_from_offset(bases, at));
                let Ok(fde) = fde else { continue };
                let start = offset(fde.initial_address());
                covered.extend(start.map(|start| (start, start + fde.len())));
            }
        }
        let symbols = file.symbols().chain(file.dynamic_symbols());
        let functions = symbols.filter_map(|symbol| {
            let start = offset(symbol.address())?;
            let name = symbol.name().ok()?.to_owned();
            Some((start, start + symbol.size(), name))
        });
        Some(Self {
            has_index: file.section_by_name(".eh_frame_hdr").is_some(),
            covered,
            functions: functions.collect(),
            bytes: bytes.clone(),
        })
    }

    fn covers(&self, offset: u64) -> bool {
        let inside = |&(start, end): &(u64, u64)| (start..end).contains(&offset);
        self.covered.iter().any(inside)
    }

    fn ends(&self, offset: u64) -> bool {
        self.covered.iter().any(|&(_, end)| end == offset)
    }

    fn function(&self, offset: u64) -> &str {
        let inside = |(start, end, _): &&(u64, u64, String)| (*start..*end).contains(&offset);
        self.functions
            .iter()
            .find(inside)
            .map_or("", |function| &function.2)
    }

    /// Whether only pops come before the function is left from here on.
    fn is_epilogue(&self, offset: u64) -> bool {
        let mut rest = self.bytes.get(offset as usize..).unwrap_or_default();
        loop {
            rest = match rest {
                [0xc3 | 0xe9 | 0xeb, ..] => return true,
                [0x58..=0x5f, rest @ ..] | [0x41, 0x58..=0x5f, rest @ ..] => rest,
                [0xc5, 0xf8, 0x77, rest @ ..] => rest,
                _ => return false,
            };
        }
    }
}

impl Tables {
    /// The table of the file that is mapped at an address, and the offset in it.
    fn at(
        &mut self,
        samples: &Samples,
        sample: &UserSample,
        address: u64,
    ) -> Option<(&Table, u64)> {
        let address = AbsoluteAddress(address);
        let mapping = sample.process.space().find(address)?;
        let path = &samples.modules[mapping.module].path;
        let key = path.to_string_lossy().into_owned();
        let table = self.0.entry(key).or_insert_with(|| Table::read(path));
        Some((table.as_ref()?, mapping.file_offset_of(address).0))
    }

    fn classify(
        &mut self,
        samples: &Samples,
        sample: &UserSample,
        theirs: &[String],
        ours: &[u64],
    ) -> Class {
        let places: Vec<String> = ours.iter().map(|&at| samples.place(sample, at)).collect();
        if places == theirs {
            return Class::Same;
        }
        let throws = |&address: &u64| {
            let found = self.at(samples, sample, address);
            found.is_some_and(|(table, offset)| table.function(offset).starts_with("_Unwind_"))
        };
        if ours.iter().take(3).any(throws) {
            return Class::Landing;
        }
        let same = places.iter().zip(theirs).take_while(|(a, b)| a == b);
        let same = same.count();
        for (index, &address) in ours.iter().take(same).enumerate() {
            match self.at(samples, sample, address) {
                None if places[index].starts_with("[vdso]") => {}
                None => return Class::Generated,
                Some((table, _)) if !table.has_index => return Class::NoIndex,
                Some((table, at)) if !table.covers(at) => return Class::NoTable,
                Some((table, at)) if index == 0 && table.is_epilogue(at) => return Class::Popped,
                Some((table, at)) if index + 1 == same && table.ends(at + 1) => {
                    return Class::NoReturn;
                }
                Some(_) => {}
            }
        }
        Class::Unexplained
    }
}

/// Unwinds a program's samples with both; each difference must be one of `possible`, but for one
/// sample in 200.
#[track_caller]
fn check(program: &Path, workshop: &Workshop, possible: &[Class]) {
    let samples = workshop.record(program, &[], 32 << 10);
    let theirs = perf_script(&workshop.path("perf.data"));
    assert_eq!(theirs.len(), samples.samples.len());
    assert!(theirs.len() > 20, "{}", theirs.len());
    let answers = samples.unwind(&mut Unwinder::new(LocalFiles));
    let mut tables = Tables::default();
    let mut counts: BTreeMap<Class, usize> = BTreeMap::new();
    let mut unexplained = Vec::new();
    for ((sample, ours), theirs) in samples.samples.iter().zip(&answers).zip(&theirs) {
        if !ours.unwound.end.counts() {
            continue;
        }
        let class = tables.classify(&samples, sample, theirs, &ours.frames);
        *counts.entry(class).or_default() += 1;
        let whole = ours.unwound.end == StackEnd::Root;
        if class != Class::Same && !(whole && possible.contains(&class)) {
            let places = ours.frames.iter().map(|&at| samples.place(sample, at));
            let (end, places) = (ours.unwound.end, places.collect::<Vec<_>>().join(" "));
            let theirs = theirs.join(" ");
            unexplained.push(format!(
                "{class:?}, {end:?}\nperf {theirs}\nprof {places}\n"
            ));
        }
    }
    let summary = format!("{program:?}: {counts:?}\n");
    // Seen in Rust's standard library: perf ends after two frames where tables lead on, and why is
    // not known.
    let few = 1.max(samples.samples.len() / 200);
    assert!(
        unexplained.len() <= few,
        "{summary}{}",
        unexplained.concat()
    );
    for class in [Class::NoTable, Class::NoIndex, Class::Generated] {
        let expected = possible.contains(&class);
        assert_eq!(
            counts.contains_key(&class),
            expected,
            "{class:?}: {summary}"
        );
    }
    print_counts(&summary);
}

/// For the table in docs/unwinding.md: run with `--nocapture`.
#[expect(clippy::print_stderr, reason = "asked for by --nocapture")]
fn print_counts(summary: &str) {
    eprint!("{summary}");
}

fn check_built(compiler: &str, flags: &[&str], possible: &[Class]) {
    let workshop = Workshop::new();
    let program = workshop.build("program", compiler, &[OPTIMIZED, flags]);
    check(&program, &workshop, possible);
}

#[test]
fn all_is_the_same_where_there_are_tables() {
    check_built("gcc", &["shallow.c"], &[]);
    check_built("gcc", &["callbacks.c"], &[]);
    check_built("gcc", &["frames.c"], &[]);
    check_built("gcc", &["signals.c"], &[]);
    check_built("g++", &["inlining.cc"], &[]);
}

#[test]
fn without_tables_perf_ends() {
    check_built("gcc", &["assembly.c", "assembly.S"], &[Class::NoTable]);
    check_built("gcc", &["-static", "shallow.c"], &[Class::NoIndex]);
    check_built("gcc", &["jit.c"], &[Class::Generated]);
}

#[test]
fn where_exceptions_land() {
    check_built("g++", &["throwing.cc"], &[Class::Landing, Class::NoReturn]);
}

#[test]
fn where_llvm_has_popped_registers() {
    let workshop = Workshop::new();
    let program = workshop.build("rust", "rustc", &[&["--edition=2021", "-O", "inlining.rs"]]);
    check(&program, &workshop, &[Class::Popped]);
    check_built("clang", &["frames.c"], &[Class::Popped]);
}
