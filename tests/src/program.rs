//! The programs that are profiled, and how they are built.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::target;

/// A compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compiler {
    /// GNU C.
    Gcc,
    /// GNU C++.
    Gxx,
    /// LLVM's C.
    Clang,
    /// LLVM's C++.
    Clangxx,
    /// Rust.
    Rustc,
}

impl Compiler {
    fn command(self) -> Command {
        let (name, flags): (&str, &[&str]) = match self {
            Self::Gcc => ("gcc", &["-O2", "-g", "-fomit-frame-pointer"]),
            Self::Clang => ("clang", &["-O2", "-g", "-fomit-frame-pointer"]),
            Self::Gxx => (
                "g++",
                &["-O2", "-g", "-fomit-frame-pointer", "-std=gnu++17"],
            ),
            Self::Clangxx => (
                "clang++",
                &["-O2", "-g", "-fomit-frame-pointer", "-std=gnu++17"],
            ),
            Self::Rustc => ("rustc", &["--edition=2024", "-O", "-g"]),
        };
        let mut command = Command::new(name);
        command.args(flags);
        command
    }
}

/// A program of tests/programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Program {
    /// The files to compile, in tests/programs or folders below.
    pub sources: &'static [&'static str],
    /// Their compiler.
    pub compiler: Compiler,
    /// Flags that it cannot do without.
    pub flags: &'static [&'static str],
}

/// A way to build programs: its name, and flags after the usual `-O2 -g -fomit-frame-pointer`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Variant {
    /// For messages.
    pub name: &'static str,
    /// Compiler flags.
    pub flags: &'static [&'static str],
}

impl Variant {
    /// Nothing special.
    pub const PLAIN: Self = Self::new("plain", &[]);
    /// Without shared libraries, at a fixed address.
    pub const STATIC: Self = Self::new("static", &["-static"]);
    /// Without shared libraries, at any address.
    pub const STATIC_PIE: Self = Self::new("static-pie", &["-static-pie"]);
    /// Without symbols and debug info.
    pub const STRIPPED: Self = Self::new("stripped", &["-s"]);

    /// A variant with these flags.
    pub const fn new(name: &'static str, flags: &'static [&'static str]) -> Self {
        Self { name, flags }
    }
}

impl Program {
    /// A program of one C file.
    pub const fn c(sources: &'static [&'static str]) -> Self {
        Self::new(sources, Compiler::Gcc, &["-pthread"])
    }

    /// A program of one C++ file.
    pub const fn cpp(sources: &'static [&'static str]) -> Self {
        Self::new(sources, Compiler::Gxx, &["-pthread"])
    }

    /// A program of one Rust file.
    pub const fn rust(sources: &'static [&'static str]) -> Self {
        Self::new(sources, Compiler::Rustc, &[])
    }

    /// A program with all its properties.
    pub const fn new(
        sources: &'static [&'static str],
        compiler: Compiler,
        flags: &'static [&'static str],
    ) -> Self {
        Self {
            sources,
            compiler,
            flags,
        }
    }

    /// The same program with another compiler.
    pub const fn by(self, compiler: Compiler) -> Self {
        Self { compiler, ..self }
    }

    /// The name that it runs by: that of its first source.
    pub fn name(&self) -> &'static str {
        let file = self.sources[0];
        let file = file.rsplit('/').next().unwrap_or(file);
        file.split('.').next().unwrap_or(file)
    }

    /// Builds the program as usual.
    pub fn build(&self) -> PathBuf {
        self.build_as(Variant::PLAIN)
    }

    /// Builds a variant of the program, unless an earlier test did, and says where it is.
    ///
    /// # Panics
    /// If it does not compile.
    pub fn build_as(&self, variant: Variant) -> PathBuf {
        let mut hasher = DefaultHasher::new();
        // The folder, because debug info names it.
        (self, variant, sources_hash(), folder()).hash(&mut hasher);
        let directory = target::cache().join(format!("{:016x}", hasher.finish()));
        let output = directory.join(self.name());
        if !output.exists() {
            std::fs::create_dir_all(&directory).unwrap();
            self.compile(variant, &output);
        }
        output
    }

    fn compile(&self, variant: Variant, output: &Path) {
        // Another test may be building the same one: the first to finish wins, no test sees a
        // partial file, and a file that is probed or runs is not replaced.
        let parts = tempfile::tempdir_in(output.parent().unwrap()).unwrap();
        let unfinished = parts.path().join(self.name());
        let mut command = self.compiler.command();
        command.current_dir(folder());
        command.args(self.sources).arg("-o").arg(&unfinished);
        // After the sources, because libraries must follow them.
        command.args(self.flags).args(variant.flags);
        let result = command.output();
        let result = result.unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        let complaints = String::from_utf8_lossy(&result.stderr);
        assert!(result.status.success(), "{command:?}:\n{complaints}");
        match std::fs::hard_link(&unfinished, output) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            linked => linked.unwrap(),
        }
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("programs")
}

/// A hash of all sources: any change rebuilds all programs, which takes seconds.
fn sources_hash() -> u64 {
    static HASH: OnceLock<u64> = OnceLock::new();
    *HASH.get_or_init(|| {
        let mut files = files_below(&folder());
        files.sort();
        let mut hasher = DefaultHasher::new();
        for file in files {
            (file.file_name(), std::fs::read(&file).unwrap()).hash(&mut hasher);
        }
        hasher.finish()
    })
}

/// All files in a folder and in those below.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    let below = entries.flat_map(|entry| {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files_below(&path),
            false => vec![path],
        }
    });
    below.collect()
}
