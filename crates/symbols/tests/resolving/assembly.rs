//! Assembly: functions without a size, and names that begin with `$`.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use object::{Object, ObjectSymbol};

use crate::common::{chains, have, module, offset_of, offsets_of, options, resolve, run};

/// Builds this source file.
fn build(compiler: &str, name: &str, source: &str) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join(name), source).unwrap();
    let arguments = ["-O1", "-Wl,--build-id", name, "-o", "program"];
    run(compiler, &arguments, directory.path());
    let program = directory.path().join("program");
    (directory, program)
}

/// The names of this many bytes that follow a symbol.
fn names_from(program: &Path, symbol: &str, bytes: u64) -> Vec<String> {
    let file = fs::read(program).unwrap();
    let object = object::File::parse(&*file).unwrap();
    let start = object.symbols().find(|it| it.name() == Ok(symbol)).unwrap();
    let start = offset_of(&object, start.address()).unwrap();
    let offsets: Vec<u64> = (start..start + bytes).collect();
    let resolved = resolve(options(Path::new("/nowhere")), &module(program), &offsets);
    let name = |index| match resolved.frames(index) {
        [frame] => frame.function.to_string(),
        _ => String::new(),
    };
    (0..resolved.len()).map(name).collect()
}

/// `leaf` has no size; the function after it has no symbol, as in libraries whose assembly was
/// stripped of local symbols.
#[cfg(target_arch = "x86_64")]
const LEAF: &str = "\
    .text
    .globl main, leaf, next
    .p2align 4
leaf:
    CFI_START
1:  dec %edi
    jne 1b
    ret
    .p2align 4
    add $1, %eax
    ret
    .p2align 4
    CFI_END
next:
main:
    xor %eax, %eax
    ret
    .section .note.GNU-stack
";

#[cfg(target_arch = "x86_64")]
#[test]
fn a_function_without_a_size_ends_with_its_code() {
    let source = LEAF.replace("CFI_START", "").replace("CFI_END", "");
    let (_directory, program) = build("gcc", "leaf.s", &source);
    let names = names_from(&program, "leaf", 34);
    let expected = |index: usize| match index {
        0..5 => "leaf",
        32..34 => "main",
        _ => "",
    };
    for (index, name) in names.iter().enumerate() {
        assert_eq!(name, expected(index), "byte {index}: {names:?}");
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn the_unwind_table_says_where_a_function_without_a_size_ends() {
    let source = LEAF.replace("CFI_START", ".cfi_startproc");
    let (_directory, program) = build("gcc", "leaf.s", &source.replace("CFI_END", ".cfi_endproc"));
    let names = names_from(&program, "leaf", 34);
    assert!(names[..32].iter().all(|name| name == "leaf"), "{names:?}");
    assert_eq!(names[33], "main", "{names:?}");
}

/// As Swift names its functions.
#[test]
fn names_may_begin_with_a_dollar_sign() {
    if !have("clang", "clang") {
        return;
    }
    let source = "\
volatile int sink;
void hot(void) __asm__(\"$s3app3hotyyF\");
__attribute__((noinline)) void hot(void) { sink++; }
int main(void) { hot(); return 0; }
";
    let (_directory, program) = build("clang", "program.c", source);
    let offsets = offsets_of(&program, "$s3app3hotyyF");
    let resolved = resolve(options(Path::new("/nowhere")), &module(&program), &offsets);
    assert_eq!(chains(&resolved), ["$s3app3hotyyF"]);
}
