//! Files that contain a Ruby.

use std::ops::Range;

use super::frames::Interpreter;
use super::layout::VERSION;
use crate::elf::Elf;
use crate::function_parts;

/// What a file says of its interpreter: libruby, or an executable without it.
#[derive(Clone, Debug)]
pub(crate) struct Library {
    /// The address of `ruby_current_vm_ptr` in the file's own address space; `None` if the version
    /// is unknown.
    vm: Option<u64>,
}

impl Library {
    /// Whether a file of this name may contain one: `libruby-3.1.so.3.1.2`, `ruby3.1`.
    pub(crate) fn is_named(name: &str) -> bool {
        name.starts_with("libruby") || name.starts_with("ruby")
    }

    /// Reads the symbol tables of a file, and the addresses of the function that runs the
    /// evaluation loop; of all code if that has no symbol, as from 3.3 on. `None` if it contains
    /// no interpreter.
    pub(crate) fn read(elf: &Elf<'_>) -> Option<(Self, Vec<Range<u64>>)> {
        let (mut vm, mut version, mut evaluation) = (None, None, Vec::new());
        elf.symbols(|name, range| match name {
            b"ruby_current_vm_ptr" => vm = Some(range.start),
            b"ruby_api_version" => version = elf.at(range),
            b"rb_vm_exec" | b"rb_vm_exec.cold"
                if !range.is_empty() && !evaluation.contains(&range) =>
            {
                evaluation.push(range);
            }
            _ => {}
        });
        if evaluation.is_empty() {
            version.filter(|version| !is_known(version))?;
            let (start, code) = elf.section(".text")?;
            let all = start..start.checked_add(code.len() as u64)?;
            return Some((Self { vm: None }, [all].into()));
        }
        let vm = vm.filter(|_| version.is_some_and(is_known));
        Some((Self { vm }, function_parts::with_unnamed(elf, evaluation)))
    }

    /// The interpreter of a process that has the file mapped this far from its own addresses;
    /// `None` if its frames cannot be read.
    pub(crate) fn at(&self, bias: u64) -> Option<Interpreter> {
        Some(Interpreter::new(bias.wrapping_add(self.vm?)))
    }
}

/// Whether the layout of this version is known.
fn is_known(version: &[u8]) -> bool {
    let (numbers, _) = version.as_chunks();
    let numbers: Vec<_> = numbers.iter().map(|&it| u32::from_le_bytes(it)).collect();
    numbers.starts_with(&VERSION)
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use object::ReadCache;

    use super::*;

    #[test]
    fn other_versions_are_unknown() {
        assert!(is_known(&[3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]));
        assert!(!is_known(&[3, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]));
        assert!(!is_known(&[3, 0, 0, 0]));
    }

    /// A library of this version that exports nothing of the loop.
    fn read(version: &str) -> Option<(Library, Vec<Range<u64>>)> {
        let directory = tempfile::tempdir().unwrap();
        let library = directory.path().join("libruby.so");
        let source = directory.path().join("ruby.c");
        let code = format!("const int ruby_api_version[3] = {{{version}, 0}};");
        std::fs::write(&source, code + "int ruby_run(void) { return 1; }").unwrap();
        let gcc = std::process::Command::new("gcc")
            .args(["-shared", "-o"])
            .args([&library, &source])
            .status();
        assert!(gcc.unwrap().success());
        let cache = ReadCache::new(File::open(library).unwrap());
        Library::read(&Elf::parse(&cache)?)
    }

    #[test]
    fn unknown_versions_may_hide_their_loop() {
        let (library, evaluation) = read("3, 3").expect("an interpreter");
        assert_eq!(library.vm, None);
        assert!(!evaluation[0].is_empty());
        assert!(read("3, 1").is_none());
    }
}
