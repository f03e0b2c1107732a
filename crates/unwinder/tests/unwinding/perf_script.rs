//! Compares frame by frame with `perf script` on the same file: each difference must belong to a
//! class that docs/design/unwinding.md explains.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::process::Command;

use crate::support::programs::{OPTIMIZED, Workshop};
use crate::support::{Samples, UserSample};
use gimli::{
    BaseAddresses, CfaRule, EhFrame, LittleEndian, RegisterRule, UnwindContext, UnwindSection,
    X86_64,
};
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol};
use prof_model::{AbsoluteAddress, StackEnd};
use prof_needs::tools;
use prof_unwinder::{LocalFiles, Unwinder};

/// The relation of perf's frames of a sample to ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Same,
    /// No FDE covers the code of one of the common frames: perf follows the frame pointer there,
    /// and ends or finds other frames.
    NoTable,
    /// The same for files without .eh_frame_hdr.
    NoIndex,
    /// The same for generated code without a file.
    Generated,
    /// perf ends where the CFI of the innermost frame still says that registers are where they were
    /// saved, below the stack pointer and so not in the dump: LLVM's CFI says so after pops.
    Popped,
    /// perf's frames of the sample alone are ours. libunwind caches its results by address, for
    /// return addresses and instructions alike: after a function's last call, which never returns,
    /// these belong to two functions.
    Remembered,
    /// libgcc is installing the registers for an exception's handler.
    Landing,
    /// The reason is unknown.
    Unexplained,
}

/// perf's frames of a sample.
struct Script {
    /// The time, as perf prints it.
    time: String,
    /// (file name, offset in the file)
    frames: Vec<String>,
}

/// The samples in the output of `perf script`.
fn perf_script(file: &Path, options: &[&str]) -> Vec<Script> {
    let output = Command::new("perf")
        .args(["script", "--no-inline", "--max-stack", "4096"])
        .args(["--ns", "-F", "time,ip,dso", "-i"])
        .arg(file)
        .args(options)
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
        .map(|sample| {
            let (time, frames) = sample.split_once('\n').unwrap_or((sample, ""));
            Script {
                time: time.trim().trim_end_matches(':').to_owned(),
                frames: frames.lines().filter_map(frame).collect(),
            }
        })
        .collect()
}

/// Whether perf finds these frames for one of the samples of the same moment, if it unwinds no
/// others.
fn is_perfs_answer_alone(file: &Path, time: &str, frames: &[String]) -> bool {
    let span = format!("{time},{time}");
    let alone = perf_script(file, &["--time", &span]);
    alone.iter().any(|sample| sample.frames == frames)
}

/// The tables of files.
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

    fn function(&self, offset: u64) -> &str {
        let inside = |(start, end, _): &&(u64, u64, String)| (*start..*end).contains(&offset);
        self.functions
            .iter()
            .find(inside)
            .map_or("", |function| &function.2)
    }

    /// Whether CFI says here that registers are saved below the stack pointer.
    fn is_popped(&self, offset: u64) -> bool {
        let file = object::File::parse(&*self.bytes).expect("ELF");
        let address = file.segments().find_map(|segment| {
            let (start, size) = segment.file_range();
            let skip = offset.checked_sub(start)?;
            (skip < size).then_some(segment.address() + skip)
        });
        let section = file.section_by_name(".eh_frame").expect("covered");
        let data = section.uncompressed_data().expect("not compressed");
        let bases = BaseAddresses::default().set_eh_frame(section.address());
        let frames = EhFrame::new(&data, LittleEndian);
        let mut context = UnwindContext::new();
        let address = address.expect("in a segment");
        let cie = EhFrame::cie_from_offset;
        let row = frames.unwind_info_for_address(&bases, &mut context, address, cie);
        let row = row.expect("covered");
        let &CfaRule::RegisterAndOffset {
            register: X86_64::RSP,
            offset: cfa,
        } = row.cfa()
        else {
            return false;
        };
        row.registers().any(|(_, rule)| match rule {
            RegisterRule::Offset(saved) => cfa + saved < 0,
            _ => false,
        })
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

    /// Whether a signal handler returns to this address. The trampoline's FDE begins a byte before
    /// it, where perf looks it up.
    fn is_trampoline(&mut self, samples: &Samples, sample: &UserSample, address: u64) -> bool {
        let found = self.at(samples, sample, address);
        found.is_some_and(|(table, offset)| {
            let mut covered = table.covered.iter();
            covered.any(|&(start, _)| start + 1 == offset)
        })
    }

    fn classify(
        &mut self,
        samples: &Samples,
        sample: &UserSample,
        theirs: &[String],
        ours: &[u64],
    ) -> Class {
        let places: Vec<String> = ours.iter().map(|&at| samples.place(sample, at)).collect();
        let mut is_same = |(&address, their): (&u64, &String)| {
            let place = |address| samples.place(sample, address);
            *their == place(address)
                || *their == place(address - 1) && self.is_trampoline(samples, sample, address)
        };
        if ours.len() == theirs.len() && ours.iter().zip(theirs).all(&mut is_same) {
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
        let ends = same == theirs.len();
        for (index, &address) in ours.iter().take(same).enumerate() {
            match self.at(samples, sample, address) {
                None if places[index].starts_with("[vdso]") => {}
                None => return Class::Generated,
                Some((table, _)) if !table.has_index => return Class::NoIndex,
                Some((table, at)) if !table.covers(at) => return Class::NoTable,
                Some((table, at)) if index == 0 && ends && table.is_popped(at) => {
                    return Class::Popped;
                }
                Some(_) => {}
            }
        }
        Class::Unexplained
    }
}

/// Unwinds a program's samples with both; each difference must be one of `possible`.
#[track_caller]
fn check(program: &Path, workshop: &Workshop, possible: &[Class]) {
    let samples = workshop.record(program, &[], 32 << 10);
    let file = workshop.path("perf.data");
    let theirs = perf_script(&file, &[]);
    assert_eq!(theirs.len(), samples.samples.len());
    assert!(theirs.len() > 20, "{}", theirs.len());
    let answers = samples.unwind(&mut Unwinder::new(LocalFiles));
    let mut tables = Tables::default();
    let mut counts: BTreeMap<Class, usize> = BTreeMap::new();
    for ((sample, ours), theirs) in samples.samples.iter().zip(&answers).zip(&theirs) {
        let end = ours.unwound.end;
        if !end.counts() {
            continue;
        }
        let mut class = tables.classify(&samples, sample, &theirs.frames, &ours.frames);
        if class == Class::Same {
            *counts.entry(class).or_default() += 1;
            continue;
        }
        let places = ours.frames.iter().map(|&at| samples.place(sample, at));
        let places: Vec<String> = places.collect();
        if class == Class::Unexplained && is_perfs_answer_alone(&file, &theirs.time, &places) {
            class = Class::Remembered;
        }
        let is_library = |place: &String| !place.starts_with("program+");
        if class == Class::NoTable && places.first().is_some_and(is_library) {
            // A library's .init section, which runs once at the start, has no table.
            continue;
        }
        *counts.entry(class).or_default() += 1;
        // No unwinder succeeds while registers are being installed.
        let may_end = end == StackEnd::Root || class == Class::Landing;
        assert!(
            may_end && possible.contains(&class),
            "{program:?}: {class:?}, {end:?}\nperf {}\nprof {}",
            theirs.frames.join(" "),
            places.join(" ")
        );
    }
    let summary = format!("{program:?}: {counts:?}\n");
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

/// For the table in docs/design/unwinding.md: run with `--nocapture`.
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
    if !tools(&["perf", "gcc"]) {
        return;
    }
    check_built("gcc", &["shallow.c"], &[]);
    check_built("gcc", &["callbacks.c"], &[]);
    check_built("gcc", &["frames.c"], &[]);
    check_built("gcc", &["signals.c"], &[]);
    check_built(
        "g++",
        &["inlining.cc"],
        &[Class::Landing, Class::Remembered],
    );
}

#[test]
fn without_tables_perf_ends() {
    if !tools(&["perf", "gcc"]) {
        return;
    }
    check_built("gcc", &["assembly.c", "assembly.S"], &[Class::NoTable]);
    check_built("gcc", &["-static", "shallow.c"], &[Class::NoIndex]);
    check_built("gcc", &["jit.c"], &[Class::Generated]);
}

#[test]
fn where_exceptions_land() {
    if !tools(&["perf", "g++"]) {
        return;
    }
    check_built(
        "g++",
        &["throwing.cc"],
        &[Class::Landing, Class::Remembered],
    );
}

#[test]
fn where_llvm_has_popped_registers() {
    if !tools(&["perf", "clang"]) {
        return;
    }
    let workshop = Workshop::new();
    let program = workshop.build("rust", "rustc", &[&["--edition=2021", "-O", "inlining.rs"]]);
    check(&program, &workshop, &[Class::Popped]);
    check_built("clang", &["frames.c"], &[Class::Popped]);
}
