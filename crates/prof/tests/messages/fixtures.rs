//! A directory with the files of the situations, in which `prof` runs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

pub(crate) struct Fixtures(TempDir);

impl Fixtures {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, content: &[u8]| {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        };
        write("empty", b"");
        write("text", b"no recording\nat all\n");
        write(
            "go-goroutines",
            b"goroutine profile: total 5\n1 @ 0x43c3d6 0x40\n#\t0x43c3d5\tmain.f+0x15\tmain.go:5\n",
        );
        write(
            "go-stacks",
            b"goroutine 1 [running]:\nmain.f()\n\t/src/main.go:5 +0x1d\n",
        );
        write("go-heap", b"heap profile: 1: 2 [3: 4] @ heap/1048576\n");
        write("mostly-text", b"total 12\none\ntwo\nthree\n");
        write("folded", b"main;work 60\nmain;rest 40\n");
        write("folded.after", b"main;work 95\nmain;rest 40\n");
        write("folded.damaged", b"main;work 60\nmain;rest\nmain 1\n");
        write("gzip", b"\x1f\x8b\x08\0\0\0\0\0\0\x03cut off");
        write("pprof", b"\x0a\x04\x08\x01\x10\x02\xff");
        write("old", b"PERFFILE\0\0\0\0\0\0\0\0");
        write("foreign", b"2ELIFREP\0\0\0\0\0\0\0\x68");
        write("cut", b"PERFILE2\x68\0\0\0");
        write("not-executable", b"#!/bin/sh\n");
        write("directory/file", b"");
        write(
            "damaged-set/samples/date=2026-11-24/service=a/host=b/c.parquet",
            b"no table\n",
        );
        fs::set_permissions(
            directory.path().join("not-executable"),
            fs::Permissions::from_mode(0o644),
        )
        .unwrap();
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/tests/data");
        for entry in fs::read_dir(data).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap();
            if name != "README" {
                let recording = fs::read(&path).unwrap();
                let name = name.to_str().unwrap();
                write(name, &recording);
                // As `perf record --kcore` and `--threads` write it.
                if name == "perf-4.14-branches" {
                    write("kcore/data", &recording);
                    write("threads/data", &recording);
                    write("threads/data.0", b"");
                }
                write(
                    &format!("{name}.cut"),
                    &recording[..recording.len() * 2 / 3],
                );
            }
        }
        let manifest = "[package]\nname = \"package\"\nedition = \"2024\"\n\n[workspace]\n";
        write("package/Cargo.toml", manifest.as_bytes());
        write("package/src/bin/one.rs", b"fn main() {}\n");
        write("package/src/bin/two.rs", b"fn main() {}\n");
        write("broken/Cargo.toml", manifest.as_bytes());
        write("broken/src/main.rs", b"fn main() { nonsense }\n");
        Self(directory)
    }

    /// The output of `prof` in a situation: the command line, the messages, and the exit status if
    /// it is not 0. The verb `cargo` runs `cargo prof`.
    pub(crate) fn run(&self, verb: &str, line: &str) -> String {
        let (directory, arguments) = match line.strip_prefix("cd ") {
            Some(rest) => rest.split_once(" && ").unwrap(),
            None => (".", line),
        };
        let (program, name) = match verb {
            "cargo" => (env!("CARGO_BIN_EXE_cargo-prof"), "cargo prof"),
            _ => (env!("CARGO_BIN_EXE_prof"), verb),
        };
        let mut command = Command::new(program);
        command
            .arg(name.trim_start_matches("cargo "))
            .args(arguments.split_whitespace())
            .current_dir(self.0.path().join(directory))
            .env("LC_ALL", "C")
            .env("CARGO_NET_OFFLINE", "true")
            .env("CARGO_TERM_COLOR", "never")
            .env_remove("DEBUGINFOD_URLS");
        let Output { status, stderr, .. } = command.output().unwrap();
        let said = String::from_utf8(stderr).unwrap();
        let said = said.replace(self.0.path().to_str().unwrap(), "/HERE");
        let own_kernel = between(&said, "(build id ", ", recorded");
        let said = match own_kernel {
            Some(id) => said.replace(id, "BUILD_ID"),
            None => said,
        };
        let mut text = match verb {
            "cargo" => format!("$ cargo prof {line}\n{}", without_cargo(&said)),
            _ => format!("$ prof {verb} {line}\n{said}"),
        };
        match status.code() {
            Some(0) => {}
            Some(code) => text += &format!("[exit status {code}]\n"),
            None => text += &format!("[{status}]\n"),
        }
        text
    }
}

/// The first text between two others.
fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(before)?;
    rest.split_once(after).map(|(between, _)| between)
}

/// Removes the messages of cargo and the compiler, which differ by version.
fn without_cargo(said: &str) -> String {
    let is_ours = |line: &&str| line.starts_with("prof: ");
    match said.lines().any(|line| is_ours(&line)) {
        true => said
            .lines()
            .filter(is_ours)
            .map(|it| format!("{it}\n"))
            .collect(),
        false => said.to_owned(),
    }
}
