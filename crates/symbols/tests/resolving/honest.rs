//! Modules without symbols are reported, with the reason.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::common::{build, chains, module, offsets_of, options, resolve};
use prof_model::{BuildId, FileIdentity, Module, Modules};
use prof_symbols::{
    AmbiguousPaths, ModuleStatus, Places, Query, Source, SymbolOptions, Symbolizer,
};

#[track_caller]
fn check(module: &Module, offsets: &[u64], expected: &ModuleStatus) -> String {
    let resolved = resolve(options(Path::new("/nowhere")), module, offsets);
    assert_eq!(resolved.status(), expected);
    assert_eq!((resolved.len(), resolved.named()), (offsets.len(), 0));
    resolved.status().to_string()
}

#[test]
fn a_file_that_is_gone() {
    let path = PathBuf::from("/nowhere/program");
    let message = check(
        &Module::from_path(&path),
        &[0x1000],
        &ModuleStatus::Missing { path: path.clone() },
    );
    assert!(
        message.starts_with("/nowhere/program does not exist; "),
        "{message}"
    );
}

#[test]
fn a_program_that_was_rebuilt_is_not_used() {
    let (_directory, program) = build("gcc", &[]);
    let recorded = BuildId::new(&[7; 20]).unwrap();
    let found = module(&program).build_id;
    let module = Module {
        build_id: Some(recorded),
        ..module(&program)
    };
    let status = ModuleStatus::BuildIdDiffers {
        path: program.clone(),
        recorded,
        found,
    };
    let message = check(&module, &offsets_of(&program, "middle"), &status);
    assert!(message.contains("recorded 0707"), "{message}");
    assert!(message.contains("record again"), "{message}");
}

/// Without build ids, a file is used for any inode of its path, or only for its own if there are
/// several.
#[test]
fn of_several_programs_of_one_path_only_the_one_with_its_inode_is_named() {
    let (_directory, program) = build("gcc", &["-Wl,--build-id=none"]);
    let offsets = offsets_of(&program, "middle");
    let found = fs::metadata(&program).unwrap();
    let device = (
        rustix::fs::major(found.dev()),
        rustix::fs::minor(found.dev()),
    );
    let other_device = (device.0 + 1, 0);
    let file = |device, inode, generation| Module {
        identity: Some(FileIdentity {
            device,
            inode,
            generation,
        }),
        ..Module::from_path(&program)
    };
    let own = |generation| file(device, found.ino(), generation);
    let other = |generation| file(device, found.ino() + 1, generation);
    let elsewhere = |generation| file(other_device, found.ino(), generation);
    let unknown = Module::from_path(&program);
    let deleted = Module {
        path: format!("{} (deleted)", program.display()).into(),
        ..other(7)
    };
    let with_id = Module {
        build_id: BuildId::new(&[7; 20]),
        ..unknown.clone()
    };
    let check = |asked: &Module, others: &[&Module], is_named: bool| {
        let mut modules = Modules::default();
        for module in [&[asked], others].concat() {
            modules.intern(module.clone());
        }
        let options = SymbolOptions {
            ambiguous_paths: AmbiguousPaths::of(&modules),
            ..options(Path::new("/nowhere"))
        };
        let resolved = resolve(options, asked, &offsets);
        assert_eq!(
            resolved.status().is_named(),
            is_named,
            "{asked:?} {others:?}"
        );
        if !is_named {
            let path = program.clone();
            assert_eq!(resolved.status(), &ModuleStatus::OtherFile { path });
        }
    };
    // Alone: any copy will do.
    check(&own(7), &[], true);
    check(&other(7), &[], true);
    check(&unknown, &[], true);
    check(&deleted, &[], true);
    // Records made from /proc have no generation.
    check(&own(0), &[&own(7)], true);
    check(&own(7), &[&own(0)], true);
    check(&other(0), &[&other(7)], true);
    // Two files.
    check(&own(7), &[&other(7)], true);
    check(&own(7), &[&other(8), &own(0), &deleted], true);
    check(&other(7), &[&own(7)], false);
    check(&deleted, &[&own(7)], false);
    check(&own(7), &[&with_id], true);
    check(&other(7), &[&with_id], false);
    check(&unknown, &[&own(7)], false);
    // An inode that was used again.
    check(&own(7), &[&own(8)], false);
    check(&own(0), &[&own(7), &own(8)], false);
    // Inodes of another device, or of a file system that shows another one.
    check(&own(7), &[&elsewhere(7)], true);
    check(&elsewhere(7), &[&own(7)], false);
    check(&elsewhere(7), &[&other(7)], true);
    check(&elsewhere(7), &[&file((99, 1), found.ino(), 7)], false);
}

#[test]
fn what_is_no_program() {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), "#!/bin/sh\n").unwrap();
    let resolved = resolve(
        SymbolOptions::default(),
        &Module::from_path(file.path()),
        &[0],
    );
    assert!(matches!(resolved.status(), ModuleStatus::Unreadable { .. }));
    let resolved = resolve(SymbolOptions::default(), &Module::from_path("/"), &[0]);
    assert!(matches!(resolved.status(), ModuleStatus::Unreadable { .. }));
}

#[test]
fn a_file_that_may_not_be_read() {
    // Root may read anything, so this only tests something for a plain user.
    let (_directory, program) = build("gcc", &[]);
    let module = module(&program);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o0)).unwrap();
    if fs::File::open(&program).is_ok() {
        return;
    }
    let path = program.clone();
    check(&module, &[0x1000], &ModuleStatus::NoPermission { path });
}

#[test]
fn offsets_outside_of_all_code_stay_unnamed() {
    let (_directory, program) = build("gcc", &[]);
    let offsets = [0, 1 << 40, u64::MAX];
    let resolved = resolve(SymbolOptions::default(), &module(&program), &offsets);
    assert_eq!(resolved.status(), &ModuleStatus::Named);
    assert_eq!(resolved.named(), 0);
    assert!(resolved.frames(0).is_empty() && resolved.frames(99).is_empty());
}

#[test]
fn other_places_are_searched_first_and_checked() {
    struct At(Vec<PathBuf>);
    impl Places for At {
        fn candidates(&self, _: &Module) -> Vec<PathBuf> {
            self.0.clone()
        }
    }
    let (_other, wrong) = build("gcc", &["-DOTHER", "-O2"]);
    let (directory, program) = build("gcc", &["-g"]);
    let offsets = offsets_of(&program, "middle");
    let module = module(&program);
    let moved = directory.path().join("moved");
    fs::rename(&program, &moved).unwrap();
    let symbolizer = Symbolizer::new(options(directory.path())).with_places(At(vec![
        "/nowhere".into(),
        wrong,
        moved.clone(),
    ]));
    let query = Query {
        source: Source::File(&module),
        addresses: &offsets,
    };
    let resolved = symbolizer.resolve(&[query]).remove(0);
    assert_eq!(resolved.file(), Some(&*moved));
    assert!(chains(&resolved).contains(&"inner:5 middle:9".to_owned()));
}

#[test]
fn a_deleted_file_whose_copy_took_its_place() {
    let (directory, program) = build("gcc", &["-g"]);
    let module = Module {
        path: format!("{} (deleted)", program.display()).into(),
        ..module(&program)
    };
    let offsets = offsets_of(&program, "middle");
    let resolved = resolve(options(directory.path()), &module, &offsets);
    assert_eq!(resolved.status(), &ModuleStatus::Named);
}

#[test]
fn the_vdso_is_our_own() {
    let all: Vec<u64> = (0..0x2000).collect();
    let resolved = resolve(SymbolOptions::default(), &Module::from_path("[vdso]"), &all);
    let chains = chains(&resolved);
    assert!(
        chains.iter().any(|chain| chain.contains("clock_gettime")),
        "{chains:?}"
    );
}

#[test]
fn without_inlines_the_physical_function_has_it_all() {
    let (directory, program) = build("gcc", &["-g"]);
    let offsets = offsets_of(&program, "middle");
    let options = SymbolOptions {
        inlines: false,
        ..options(directory.path())
    };
    let resolved = resolve(options, &module(&program), &offsets);
    assert_eq!(chains(&resolved), ["middle"]);
}
