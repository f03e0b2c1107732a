//! Symbols and DWARF from everywhere that they may be kept.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{
    build, chains, have, have_rustc, module, offsets_of, options, resolve, run, symbol_like,
};
use object::{Object, ObjectSection};
use prof_model::Module;
use prof_needs::tools;
use prof_symbols::{Detail, ModuleStatus, SymbolOptions};

/// The program, split into `program` (stripped) and `program.debug`; the offsets of `middle`.
struct Split {
    directory: tempfile::TempDir,
    module: Module,
    offsets: Vec<u64>,
}

impl Split {
    fn new(flags: &[&str]) -> Self {
        let (directory, program) = build("gcc", &[&["-g"], flags].concat());
        let offsets = offsets_of(&program, "middle");
        let keep = ["--only-keep-debug", "program", "program.debug"];
        run("objcopy", &keep, directory.path());
        run("strip", &["program"], directory.path());
        Self {
            directory,
            module: module(&program),
            offsets,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The path of the debug file by build id in this directory.
    fn by_build_id(&self) -> PathBuf {
        let id = self.module.build_id.unwrap().to_string();
        let home = self.path(".build-id").join(&id[..2]);
        fs::create_dir_all(&home).unwrap();
        home.join(format!("{}.debug", &id[2..]))
    }

    fn link(&self, debug: &str) {
        let link = format!("--add-gnu-debuglink={debug}");
        run("objcopy", &[&link, "program"], self.directory.path());
    }

    fn options(&self) -> SymbolOptions {
        options(self.directory.path())
    }

    #[track_caller]
    fn check_inlines(&self, file: &Path) {
        let resolved = resolve(self.options(), &self.module, &self.offsets);
        assert_eq!(resolved.status(), &ModuleStatus::Named);
        assert_eq!(resolved.detail(), Detail::Inlines);
        assert_eq!(resolved.file(), Some(file));
        let chains = chains(&resolved);
        for expected in ["middle:8", "inner:5 middle:9"] {
            assert!(chains.iter().any(|chain| chain == expected), "{chains:?}");
        }
    }

    #[track_caller]
    fn check_stripped(&self) {
        let resolved = resolve(self.options(), &self.module, &self.offsets);
        assert_eq!(
            resolved.status(),
            &ModuleStatus::Stripped {
                path: self.module.path.clone(),
                build_id: self.module.build_id,
                downloads: None,
            }
        );
        assert_eq!(resolved.named(), 0);
        assert_eq!(resolved.len(), self.offsets.len());
    }
}

#[test]
fn by_build_id_in_a_debug_directory() {
    let split = Split::new(&[]);
    split.check_stripped();
    let debug = split.by_build_id();
    fs::rename(split.path("program.debug"), &debug).unwrap();
    split.check_inlines(&debug);
}

#[test]
fn a_debug_file_of_another_build_is_not_used() {
    let split = Split::new(&[]);
    let other = Split::new(&["-DOTHER", "-O2"]);
    fs::copy(other.path("program.debug"), split.by_build_id()).unwrap();
    split.check_stripped();
}

#[test]
fn by_debuglink_beside_the_program_and_below() {
    let split = Split::new(&[]);
    split.link("program.debug");
    split.check_inlines(&split.path("program.debug"));
    fs::create_dir(split.path(".debug")).unwrap();
    let below = split.path(".debug/program.debug");
    fs::rename(split.path("program.debug"), &below).unwrap();
    split.check_inlines(&below);
}

#[test]
fn by_debuglink_among_the_files_of_another_machine() {
    let mut split = Split::new(&[]);
    split.link("program.debug");
    let root = split.path("machine");
    let program = root.join("opt/program");
    let debug = root.join("usr/lib/debug/opt/program.debug");
    for (file, to) in [("program", &program), ("program.debug", &debug)] {
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::rename(split.path(file), to).unwrap();
    }
    split.module.path = "/opt/program".into();
    let options = split.options().below(root);
    let resolved = resolve(options, &split.module, &split.offsets);
    assert_eq!(resolved.file(), Some(&*debug));
    assert_eq!(resolved.detail(), Detail::Inlines);
}

#[test]
fn by_debuglink_without_build_ids_the_checksum_decides() {
    let mut split = Split::new(&["-Wl,--build-id=none"]);
    split.link("program.debug");
    assert_eq!(split.module.build_id, None);
    split.check_inlines(&split.path("program.debug"));
    let mut bytes = fs::read(split.path("program.debug")).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(split.path("program.debug"), bytes).unwrap();
    split.module.build_id = None;
    split.check_stripped();
}

#[test]
fn entries_that_dwz_moved_to_a_shared_file_are_found() {
    if !have("dwz", "dwz") {
        return;
    }
    let split = Split::new(&[]);
    // dwz -m needs two files that have something in common.
    fs::copy(split.path("program.debug"), split.path("twin.debug")).unwrap();
    let arguments = ["-m", "shared.debug", "program.debug", "twin.debug"];
    run("dwz", &arguments, split.directory.path());
    let debug = split.by_build_id();
    fs::rename(split.path("program.debug"), &debug).unwrap();
    assert!(split.path("shared.debug").exists());
    // The link is relative to the debug file, whose place has changed: by build id, then.
    let bytes = fs::read(split.path("shared.debug")).unwrap();
    let object = object::File::parse(&*bytes).unwrap();
    let id = object::Object::build_id(&object).unwrap().unwrap();
    let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let home = split.path(".build-id").join(&hex[..2]);
    fs::create_dir_all(&home).unwrap();
    let shared = home.join(format!("{}.debug", &hex[2..]));
    fs::rename(split.path("shared.debug"), shared).unwrap();
    split.check_inlines(&debug);
}

#[test]
fn packed_symbol_tables_give_functions() {
    if !tools(&["xz"]) {
        return;
    }
    let split = Split::new(&[]);
    let directory = split.directory.path();
    let keep = ["--strip-debug", "program.debug", "mini"];
    run("objcopy", &keep, directory);
    run("xz", &["mini"], directory);
    let add = ["--add-section", ".gnu_debugdata=mini.xz", "program"];
    run("objcopy", &add, directory);
    fs::remove_file(split.path("program.debug")).unwrap();
    let resolved = resolve(split.options(), &split.module, &split.offsets);
    assert_eq!(resolved.detail(), Detail::Functions);
    assert_eq!(chains(&resolved), ["middle"]);
}

#[test]
fn compressed_sections_of_every_kind() {
    for kind in ["none", "zlib", "zlib-gnu"] {
        let (directory, program) = build("gcc", &["-g"]);
        let flag = format!("--compress-debug-sections={kind}");
        run("objcopy", &[&flag, "program"], directory.path());
        let offsets = offsets_of(&program, "middle");
        let resolved = resolve(options(directory.path()), &module(&program), &offsets);
        let chains = chains(&resolved);
        assert!(
            chains.contains(&"inner:5 middle:9".into()),
            "{kind}: {chains:?}"
        );
    }
}

/// Not all distributions' binutils can write zstd, but the linker that comes with rustc does.
#[test]
fn sections_compressed_with_zstd() {
    if !have_rustc() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let source = "\
        static mut SINK: u64 = 0;\n\
        #[inline(always)] fn inner(n: u64) -> u64 { (0..n).map(|x| x ^ n).sum() }\n\
        #[inline(never)] fn middle(n: u64) -> u64 { inner(n) + 1 }\n\
        fn main() { println!(\"{}\", middle(std::env::args().count() as u64)); }\n";
    fs::write(directory.path().join("program.rs"), source).unwrap();
    let flag = "-Clink-arg=-Wl,--compress-debug-sections=zstd";
    run("rustc", &["-O", "-g", flag, "program.rs"], directory.path());
    let program = directory.path().join("program");
    let section = run("readelf", &["-tW", "program"], directory.path());
    assert!(section.contains("ZSTD"), "{section}");
    let name = symbol_like(&program, "6middle");
    let resolved = resolve(
        options(directory.path()),
        &module(&program),
        &offsets_of(&program, &name),
    );
    let chains = chains(&resolved);
    assert!(
        chains
            .iter()
            .any(|chain| chain.ends_with("program::inner:2 program::middle:3")),
        "{chains:?}"
    );
}

#[test]
fn every_version_of_dwarf() {
    for compiler in ["gcc", "clang"] {
        if !have(compiler, compiler) {
            continue;
        }
        for flag in ["-gdwarf-2", "-gdwarf-3", "-gdwarf-4", "-gdwarf-5"] {
            let (directory, program) = build(compiler, &["-g", flag]);
            let offsets = offsets_of(&program, "middle");
            let resolved = resolve(options(directory.path()), &module(&program), &offsets);
            let chains = chains(&resolved);
            assert!(
                chains.contains(&"inner:5 middle:9".into()),
                "{flag}: {chains:?}"
            );
            assert!(chains.contains(&"middle:8".into()), "{flag}: {chains:?}");
        }
    }
}

#[test]
fn stubs_are_named_after_their_targets() {
    for flags in [
        &["-Wl,-z,lazy"][..],
        &["-Wl,-z,now"],
        &["-fcf-protection", "-Wl,-z,ibtplt", "-Wl,-z,lazy"],
        &["-fuse-ld=lld"],
    ] {
        if flags.contains(&"-fuse-ld=lld") && !have("ld.lld", "lld") {
            continue;
        }
        let (directory, program) = build("gcc", flags);
        let bytes = fs::read(&program).unwrap();
        let object = object::File::parse(&*bytes).unwrap();
        let offsets: Vec<u64> = [".plt", ".plt.sec", ".plt.got"]
            .into_iter()
            .filter_map(|name| object.section_by_name(name)?.file_range())
            .flat_map(|(offset, size)| offset..offset + size)
            .collect();
        let resolved = resolve(options(directory.path()), &module(&program), &offsets);
        let chains = chains(&resolved);
        assert!(
            chains.contains(&"printf@plt".into()),
            "{flags:?}: {chains:?}"
        );
    }
}

#[test]
fn split_units_from_their_files_and_from_a_package() {
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        let (directory, program) = build("gcc", &["-g", "-gsplit-dwarf", version]);
        let offsets = offsets_of(&program, "middle");
        let chains = || {
            let resolved = resolve(options(directory.path()), &module(&program), &offsets);
            chains(&resolved)
        };
        let inlined = "inner:5 middle:9".to_owned();
        assert!(chains().contains(&inlined), "{version}: {:?}", chains());
        let dwo = fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .find(|path| path.extension().is_some_and(|name| name == "dwo"))
            .unwrap();
        let away = tempfile::tempdir().unwrap();
        let moved = away.path().join(dwo.file_name().unwrap());
        fs::rename(&dwo, &moved).unwrap();
        assert!(!chains().contains(&inlined), "{version}: {:?}", chains());
        assert!(
            chains().contains(&"middle:8".into()),
            "{version}: {:?}",
            chains()
        );
        if !have("llvm-dwp", "llvm") {
            continue;
        }
        let arguments = [moved.to_str().unwrap(), "-o", "program.dwp"];
        run("llvm-dwp", &arguments, directory.path());
        assert!(chains().contains(&inlined), "{version}: {:?}", chains());
    }
}

#[test]
fn a_program_that_is_gone_but_kept_by_its_build_id() {
    // perf's cache has a directory for each build id, others a link.
    for name in [Some("elf"), None] {
        let split = Split::new(&[]);
        let debug = split.by_build_id();
        let home = debug.with_extension("");
        let kept = name.map_or_else(|| home.clone(), |name| home.join(name));
        fs::create_dir_all(kept.parent().unwrap()).unwrap();
        fs::rename(&split.module.path, &kept).unwrap();
        fs::rename(split.path("program.debug"), &debug).unwrap();
        split.check_inlines(&debug);
    }
}

#[test]
fn a_debug_file_alone_does_if_it_knows_where_the_code_was() {
    let (directory, program) = build("gcc", &["-g"]);
    let offsets = offsets_of(&program, "middle");
    let split = Split {
        module: module(&program),
        directory,
        offsets,
    };
    let debug = split.by_build_id();
    let made_by_objcopy = ["--only-keep-debug", "program", debug.to_str().unwrap()];
    run("objcopy", &made_by_objcopy, split.directory.path());
    let path = split.module.path.clone();
    let away = split.path("away");
    fs::rename(&path, &away).unwrap();
    let resolved = resolve(split.options(), &split.module, &split.offsets);
    assert_eq!(resolved.status(), &ModuleStatus::Missing { path });
    fs::remove_file(&debug).unwrap();
    if !have("eu-strip", "elfutils") {
        return;
    }
    let arguments = ["-f", debug.to_str().unwrap(), "away"];
    run("eu-strip", &arguments, split.directory.path());
    split.check_inlines(&debug);
}
