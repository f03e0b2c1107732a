//! Builds and records the programs in `tests/programs`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use object::{Object, ObjectSymbol};
use prof_model::AbsoluteAddress;

use super::{Samples, UserSample};

/// The flags of release builds, without frame pointers.
pub const OPTIMIZED: &[&str] = &["-O2", "-fomit-frame-pointer", "-Wno-unused-function"];
/// No unwind tables of any kind in the program's own code.
pub const NO_CFI: &[&str] = &[
    "-fno-asynchronous-unwind-tables",
    "-fno-unwind-tables",
    "-fno-exceptions",
];

/// A directory of built programs and recordings, removed when dropped.
pub struct Workshop {
    directory: tempfile::TempDir,
}

impl Workshop {
    pub fn new() -> Self {
        let directory = tempfile::tempdir().expect("temporary directory");
        Self { directory }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Compiles with `compiler` and `arguments`, in the sources' directory.
    pub fn build(&self, name: &str, compiler: &str, arguments: &[&[&str]]) -> PathBuf {
        let output = self.path(name);
        let built = Command::new(compiler)
            .args(arguments.concat())
            .arg("-o")
            .arg(&output)
            .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs"))
            .output()
            .unwrap_or_else(|error| panic!("{compiler}: {error}"));
        let messages = String::from_utf8_lossy(&built.stderr);
        assert!(
            built.status.success(),
            "{compiler} {arguments:?}: {messages}"
        );
        output
    }

    /// Samples a program in user mode with dumps of `bytes`.
    pub fn record(&self, program: &Path, arguments: &[&str], bytes: u32) -> Samples {
        let words = ["--".as_ref(), program.as_os_str()].into_iter();
        let words: Vec<&OsStr> = words.chain(arguments.iter().map(OsStr::new)).collect();
        self.perf_record(&words, bytes)
    }

    /// Runs `perf record` for user registers and stacks, with these words at its end. Its exit code
    /// is the program's, so its messages are shown with any failure. If another program samples all
    /// CPUs and requests build ids, as prof does, the kernel delivers them to everybody, and perf
    /// 6.1 aborts unless it has requested them, too.
    #[expect(clippy::print_stdout, reason = "shown where a test fails")]
    pub fn perf_record(&self, words: &[&OsStr], bytes: u32) -> Samples {
        let data = self.path("perf.data");
        let mut perf = Command::new("perf");
        perf.args(["record", "-q", "--buildid-mmap"])
            .args(["-F", "1999", "-e", "cpu-clock:u", "-m", ring_size()])
            .arg(format!("--call-graph=dwarf,{bytes}"))
            .arg("-o")
            .arg(&data)
            .args(words);
        let recorded = perf.output().expect("perf (Debian: linux-perf)");
        let said = String::from_utf8_lossy(&recorded.stderr);
        println!("perf {words:?}: {}: {said}", recorded.status);
        Samples::load(&data).expect("a whole recording by perf")
    }
}

/// Large dumps need large rings, which a plain user may not have.
fn ring_size() -> &'static str {
    static SIZE: OnceLock<&str> = OnceLock::new();
    SIZE.get_or_init(|| {
        let mut perf = Command::new("perf");
        perf.args([
            "record",
            "-q",
            "--buildid-mmap",
            "-m",
            "16M",
            "-e",
            "cpu-clock:u",
            "-o",
            "/dev/null",
            "true",
        ]);
        match perf.output() {
            Ok(output) if output.status.success() => "16M",
            _ => "512K",
        }
    })
}

/// The functions of one program by address in the file.
pub struct Functions {
    program: PathBuf,
    /// (first file offset, past the last, name)
    functions: Vec<(u64, u64, String)>,
}

impl Functions {
    pub fn of(program: &Path) -> Self {
        let bytes = std::fs::read(program).expect("program");
        let file = object::File::parse(&*bytes).expect("ELF");
        let offset = |address: u64| {
            use object::ObjectSegment;
            file.segments().find_map(|segment| {
                let (start, size) = segment.file_range();
                let skip = address.checked_sub(segment.address())?;
                (skip < size).then_some(start + skip)
            })
        };
        let functions = file
            .symbols()
            .filter(|symbol| symbol.kind() == object::SymbolKind::Text)
            .filter_map(|symbol| {
                let start = offset(symbol.address())?;
                Some((
                    start,
                    start + symbol.size().max(1),
                    symbol.name().ok()?.to_owned(),
                ))
            });
        Self {
            program: program.to_owned(),
            functions: functions.collect(),
        }
    }

    /// The name of the function at an address of a sample's process, if it belongs to the program.
    pub fn name(&self, samples: &Samples, sample: &UserSample, address: u64) -> Option<&str> {
        let address = AbsoluteAddress(address);
        let mapping = sample.process.space().find(address)?;
        if samples.modules[mapping.module].path != self.program {
            return None;
        }
        let offset = mapping.file_offset_of(address).0;
        self.functions
            .iter()
            .find(|(start, end, _)| (*start..*end).contains(&offset))
            .map(|(_, _, name)| name.split('.').next().unwrap_or(name))
    }
}
