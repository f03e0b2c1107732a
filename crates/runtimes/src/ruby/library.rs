//! Files that contain a Ruby.

use std::ops::Range;

use super::frames::Interpreter;
use super::layout::Layout;
use crate::elf::Elf;
use crate::function_parts::{self, is_new_part};

/// What a file says of its interpreter: libruby, or an executable without it.
#[derive(Clone, Debug)]
pub(crate) struct Library {
    /// The address of `ruby_current_vm_ptr` in the file's own address space, and the layout of the
    /// version; `None` if that is unknown.
    vm: Option<(u64, &'static Layout)>,
}

impl Library {
    /// Whether a file of this name may contain one: `libruby-3.1.so.3.1.2`, `ruby3.1`.
    pub(crate) fn is_named(name: &str) -> bool {
        name.starts_with("libruby") || name.starts_with("ruby")
    }

    /// Reads the symbol tables of a file, and the addresses of the function that runs the
    /// evaluation loop; of all code if that has no symbol, as in other versions than 3.1. `None` if
    /// it contains no interpreter.
    pub(crate) fn read(elf: &Elf<'_>) -> Option<(Self, Vec<Range<u64>>)> {
        let (mut vm, mut version, mut evaluation) = (None, None, Vec::new());
        elf.symbols(|name, range| match name {
            b"ruby_current_vm_ptr" => vm = Some(range.start),
            b"ruby_api_version" => version = elf.at(range),
            b"rb_vm_exec" | b"rb_vm_exec.cold" if is_new_part(&evaluation, &range) => {
                evaluation.push(range);
            }
            _ => {}
        });
        let layout = version.and_then(|version| Layout::read(version, elf.mutex_size()));
        if evaluation.is_empty() {
            // Stripped files of 3.1 have the symbol: such a file has no interpreter.
            version.filter(|_| layout.is_none_or(Layout::may_hide_loop))?;
            let (start, code) = elf.section(".text")?;
            let all = start..start.checked_add(code.len() as u64)?;
            return Some((Self { vm: None }, [all].into()));
        }
        let vm = vm.zip(layout);
        Some((Self { vm }, function_parts::with_unnamed(elf, evaluation)))
    }

    /// The interpreter of a process that has the file mapped this far from its own addresses;
    /// `None` if its frames cannot be read.
    pub(crate) fn at(&self, bias: u64) -> Option<Interpreter> {
        let (vm, layout) = self.vm?;
        Some(Interpreter::with_layout(bias.wrapping_add(vm), layout))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use object::ReadCache;

    use super::*;

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
    fn later_versions_may_hide_their_loop() {
        for version in ["3, 2", "3, 3", "4, 0"] {
            let (library, evaluation) = read(version).expect("an interpreter");
            assert_eq!(library.vm, None);
            assert!(!evaluation[0].is_empty());
        }
        assert!(read("3, 1").is_none());
    }
}
