//! Run-time code: perf maps and jitdumps, and which ones are trusted.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::common::{chains, have, run};
use prof_model::{Module, Pid};
use prof_symbols::{
    CodeError, Machine, ModuleStatus, Places, Query, Resolved, Source, SymbolOptions, Symbolizer,
};

/// A process that lives as long as this value, as another user if we may.
struct Target {
    child: Child,
    map: PathBuf,
    directory: tempfile::TempDir,
}

const OTHER_USER: u32 = 65534;

impl Target {
    fn new() -> Self {
        let mut command = Command::new("cat");
        command.stdin(Stdio::piped());
        if is_root() {
            command.uid(OTHER_USER);
        }
        let child = command.spawn().unwrap();
        let directory = tempfile::tempdir().unwrap();
        // As in /tmp, everybody may read it.
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let map = directory.path().join(format!("perf-{}.map", child.id()));
        Self {
            child,
            map,
            directory,
        }
    }

    fn pid(&self) -> Pid {
        Pid::try_from(self.child.id()).unwrap()
    }

    fn uid(&self) -> u32 {
        fs::metadata(format!("/proc/{}", self.pid())).unwrap().uid()
    }

    fn resolve(&self) -> Resolved {
        resolve(self.directory.path(), self.pid(), &[0x1000, 0x1005, 0x2000])
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

fn resolve(directory: &Path, pid: Pid, addresses: &[u64]) -> Resolved {
    let options = SymbolOptions {
        jit_map_dir: directory.into(),
        ..SymbolOptions::default()
    };
    let source = Source::Jit { pid };
    let query = Query { source, addresses };
    Symbolizer::new(options).resolve(&[query]).remove(0)
}

const MAP: &str = "1000 10 work one\n";

#[test]
fn the_map_of_a_live_process() {
    let target = Target::new();
    assert_eq!(
        target.resolve().status(),
        &ModuleStatus::NoJitMap {
            pid: target.pid(),
            path: target.map.clone()
        }
    );
    fs::write(&target.map, MAP).unwrap();
    chown(&target.map, Some(target.uid()), None).unwrap();
    let resolved = target.resolve();
    assert_eq!(resolved.status(), &ModuleStatus::Named);
    assert_eq!(resolved.named(), 2);
    assert_eq!(resolved.frames(1)[0].function.as_ref(), "work one");
    assert!(resolved.frames(2).is_empty());
    let options = SymbolOptions {
        jit_map_dir: target.directory.path().into(),
        ..SymbolOptions::default()
    };
    let code = Symbolizer::new(options).jit_code(target.pid(), &[0x1000]);
    let path = target.map.clone();
    assert!(
        matches!(&code, Err(CodeError::NoJitDump { path: reported }) if reported.ends_with(path.file_name().unwrap())),
        "{code:?}"
    );
}

/// In a mount namespace of their own, users put root's files where they like.
#[test]
fn a_file_of_root_that_a_user_mounted_is_not_read() {
    if !is_root() || !have("unshare", "util-linux") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    let secret = directory.path().join("secret");
    fs::write(&secret, MAP).unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    let script =
        "cd $0 && touch perf-$$.map && mount --bind secret perf-$$.map && echo && exec cat";
    let mut command = Command::new("unshare");
    command
        .args(["-Urm", "sh", "-c", script])
        .arg(directory.path());
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.uid(OTHER_USER).gid(OTHER_USER).spawn().unwrap();
    let mounted = child
        .stdout
        .as_mut()
        .map(|out| out.read(&mut [0; 1]).unwrap());
    let pid = Pid::try_from(child.id()).unwrap();
    let refused = resolve(directory.path(), pid, &[0x1000]);
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o644)).unwrap();
    let public = resolve(directory.path(), pid, &[0x1000]);
    drop(child.stdin.take());
    child.wait().unwrap();
    // Without user namespaces there is nothing to refuse. Outside is the user's own empty file.
    if mounted == Some(1) {
        assert_eq!((refused.named(), public.named()), (0, 1));
    }
}

#[test]
fn a_map_of_root_is_believed_and_one_of_others_is_not() {
    if !is_root() {
        return;
    }
    let target = Target::new();
    fs::write(&target.map, MAP).unwrap();
    assert_eq!(target.resolve().status(), &ModuleStatus::Named);
    chown(&target.map, Some(12345), None).unwrap();
    let resolved = target.resolve();
    let message = resolved.status().to_string();
    assert!(message.contains("it belongs to user 12345"), "{message}");
    assert_eq!(resolved.named(), 0);
}

#[test]
fn a_symbolic_link_is_not_followed() {
    let target = Target::new();
    let real = target.directory.path().join("real");
    fs::write(&real, MAP).unwrap();
    symlink(&real, &target.map).unwrap();
    let status = target.resolve().status().to_string();
    assert!(status.contains("symbolic link"), "{status}");
}

#[test]
fn a_pipe_does_not_block() {
    let target = Target::new();
    run("mkfifo", &[target.map.to_str().unwrap()], Path::new("/"));
    let status = target.resolve().status().to_string();
    assert!(status.contains("not a regular file"), "{status}");
}

#[test]
fn a_map_of_a_process_that_is_gone_must_be_our_own() {
    let directory = tempfile::tempdir().unwrap();
    let pid = Pid::MAX;
    let map = directory.path().join(format!("perf-{pid}.map"));
    fs::write(&map, MAP).unwrap();
    assert_eq!(resolve(directory.path(), pid, &[0x1000]).named(), 1);
    if is_root() {
        chown(&map, Some(OTHER_USER), None).unwrap();
        let resolved = resolve(directory.path(), pid, &[0x1000]);
        let status = resolved.status().to_string();
        assert!(
            status.contains("owner of process 2147483647 is unknown"),
            "{status}"
        );
    }
}

struct Dumps(PathBuf);

impl Places for Dumps {
    fn candidates(&self, _: &Module) -> Vec<PathBuf> {
        Vec::new()
    }

    fn jitdumps(&self, _: Pid) -> Vec<PathBuf> {
        vec![self.0.clone()]
    }
}

/// LLVM's own JIT compiler writes one.
#[test]
fn a_real_jitdump_has_functions_and_lines() {
    if !have("lli", "llvm") || !have("clang", "clang") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let source = "volatile int sink;\n\
        __attribute__((noinline)) void hot(int n) {\n\
          for (int i = 0; i < n; i++)\n\
            sink += i;\n\
        }\n\
        int main() { hot(10); return 0; }\n";
    fs::write(directory.path().join("jit.c"), source).unwrap();
    let compile = ["-g", "-O1", "-emit-llvm", "-S", "jit.c", "-o", "jit.ll"];
    run("clang", &compile, directory.path());
    let home = format!("JITDUMPDIR={}", directory.path().display());
    let interpret = [home.as_str(), "lli", "--jit-kind=mcjit", "jit.ll"];
    run("env", &interpret, directory.path());
    let find = run("find", &[".", "-name", "jit-*.dump"], directory.path());
    let dump = directory.path().join(find.trim());
    let start = code_address(&fs::read(&dump).unwrap(), b"hot\0");
    let addresses: Vec<u64> = (start..start + 0x1a).collect();
    let query = Query {
        source: Source::Jit { pid: Pid::MAX },
        addresses: &addresses,
    };
    let symbolizer = Symbolizer::new(SymbolOptions::default()).with_places(Dumps(dump.clone()));
    let resolved = symbolizer.resolve(&[query]).remove(0);
    assert_eq!(resolved.status(), &ModuleStatus::Named);
    assert_eq!(chains(&resolved), ["hot:3", "hot:4", "hot:5"]);
    let file = resolved.frames(0)[0].file.as_deref().unwrap();
    assert!(file.ends_with("jit.c"), "{file}");
    let code = symbolizer.jit_code(Pid::MAX, &addresses).unwrap();
    assert_eq!(code.len(), 1);
    assert_eq!((code[0].address.0, code[0].offset.0), (start, start));
    assert_eq!(code[0].machine, Machine::X86(64));
    // The code follows the name.
    let bytes = fs::read(&dump).unwrap();
    let at = bytes
        .windows(4)
        .position(|bytes| bytes == b"hot\0")
        .unwrap()
        + 4;
    let size = code[0].bytes.len();
    assert_eq!(code[0].bytes, bytes[at..at + size]);
    assert_eq!(code[0].bytes.last(), Some(&0xc3), "it ends with ret");
    assert_eq!(
        symbolizer.jit_code(Pid::MAX, &[0]),
        Err(CodeError::NoSymbol)
    );
}

/// The address of the function with this name in the dump: before its name are its address, size
/// and index.
fn code_address(dump: &[u8], name: &[u8]) -> u64 {
    let at = dump.windows(name.len()).position(|bytes| bytes == name);
    let start = at.unwrap() - 24;
    u64::from_le_bytes(dump[start..start + 8].try_into().unwrap())
}
