//! Programs of which a part is gone: the section headers, split debug info, the machine that ran
//! them.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use crate::common::{build, chains, module, offsets_of, options, resolve};
use prof_model::Module;
use prof_symbols::{Host, ModuleStatus, SymbolOptions};

/// `sstrip` and packers remove them; the dynamic linker needs none.
#[test]
fn without_section_headers_the_dynamic_symbols_name_functions() {
    let (_directory, library) = build("gcc", &["-shared", "-fPIC"]);
    let offsets = offsets_of(&library, "middle");
    let mut bytes = fs::read(&library).unwrap();
    // e_shoff, e_shnum and e_shstrndx.
    for range in [0x28..0x30, 0x3c..0x40] {
        bytes[range].fill(0);
    }
    fs::write(&library, bytes).unwrap();
    let resolved = resolve(
        options(Path::new("/nowhere")),
        &Module::from_path(&library),
        &offsets,
    );
    assert_eq!(chains(&resolved), ["middle"]);
}

#[test]
fn split_debug_info_that_is_gone_is_named() {
    let (directory, program) = build("gcc", &["-g", "-gsplit-dwarf"]);
    let offsets = offsets_of(&program, "middle");
    let check = |expected: &str, is_gone: bool| {
        let resolved = resolve(options(directory.path()), &module(&program), &offsets);
        let chains = chains(&resolved);
        assert!(
            chains.iter().any(|chain| chain.contains(expected)),
            "{chains:?}"
        );
        let problem = resolved.download_problem().unwrap_or_default();
        assert_eq!(problem.contains(".dwo is gone"), is_gone, "{problem}");
    };
    check("inner", false);
    let files = fs::read_dir(directory.path()).unwrap();
    for file in files.map(|file| file.unwrap().path()) {
        if file.extension().is_some_and(|extension| extension == "dwo") {
            fs::remove_file(file).unwrap();
        }
    }
    check("middle", true);
}

fn recorded_on(arch: &str, release: &str) -> SymbolOptions {
    SymbolOptions {
        recorded_host: Host {
            arch: Some(arch.into()),
            release: Some(release.into()),
            ..Host::default()
        },
        host: Host {
            arch: Some("x86_64".into()),
            release: Some("6.1.0".into()),
            ..Host::default()
        },
        ..SymbolOptions::default()
    }
}

/// Another kernel has another vdso at the same addresses.
#[test]
fn the_vdso_of_another_kernel_is_not_named_by_ours() {
    let all: Vec<u64> = (0..0x2000).collect();
    let vdso = Module::from_path("[vdso]");
    let named = |options| resolve(options, &vdso, &all).named() > 0;
    assert!(named(recorded_on("x86_64", "6.1.0")));
    assert!(!named(recorded_on("x86_64", "3.4.0")));
    assert!(!named(recorded_on("aarch64", "6.1.0")));
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_program_of_another_architecture_did_not_run_there() {
    let (_directory, program) = build("gcc", &["-Wl,--build-id=none"]);
    let offsets = offsets_of(&program, "middle");
    let status = |options| {
        resolve(options, &Module::from_path(&program), &offsets)
            .status()
            .clone()
    };
    assert_eq!(status(recorded_on("x86_64", "3.4.0")), ModuleStatus::Named);
    let other = status(recorded_on("aarch64", "6.1.0"));
    assert!(matches!(other, ModuleStatus::OtherHost { .. }), "{other}");
}

/// A copy of the recorded machine's files.
#[test]
fn files_below_another_root_are_those_that_ran() {
    let (directory, program) = build("gcc", &["-Wl,--build-id=none"]);
    let offsets = offsets_of(&program, "middle");
    let path = Path::new("/opt/prof-test/bin/service");
    let root = directory.path().join("root");
    let copy = root.join("opt/prof-test/bin/service");
    fs::create_dir_all(copy.parent().unwrap()).unwrap();
    fs::rename(&program, &copy).unwrap();
    let options = options(Path::new("/nowhere"));
    let missing = resolve(options.clone(), &Module::from_path(path), &offsets);
    assert!(matches!(missing.status(), ModuleStatus::Missing { .. }));
    let found = resolve(options.below(root), &Module::from_path(path), &offsets);
    assert_eq!(chains(&found), ["middle"]);
    assert_eq!(found.file(), Some(&*copy));
}
