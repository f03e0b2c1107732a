//! Real programs whose length is chosen.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::super::Paths;
use crate::{process, workspace};

/// A program with its arguments.
pub(super) struct Program {
    pub(super) name: &'static str,
    /// Whether all CPUs are recorded while it runs.
    pub(super) wide: bool,
    work: Work,
}

/// All programs, with descriptions.
pub(super) const ABOUT: [(&str, &str); 9] = [
    ("python3", "writes and reads JSON"),
    ("gcc", "`gcc -O2` of one large file"),
    ("rustc", "`rustc -O` of one large file"),
    ("ripgrep", "a regular expression in many files, two threads"),
    ("sqlite3", "a query over generated numbers"),
    ("node", "sorts, JSON, regular expressions"),
    ("idle server", "an HTTP server of python3 without requests"),
    ("busy server", "the same server with a client"),
    (
        "idle machine",
        "all CPUs (`-a`) while the idle server waits",
    ),
];

enum Work {
    /// In these words, `COUNT` is replaced by how much there is to do.
    Words(Vec<String>),
    /// Like [`Words`](Self::Words), in milliseconds.
    Milliseconds(Vec<String>),
    /// gcc, for a file of this many functions.
    Compilation(PathBuf),
    /// rustc, for a file of this many functions.
    RustCompilation(PathBuf),
    /// ripgrep, for this many files.
    Search(PathBuf),
}

const NODE: &str = "
const words = 'the quick brown fox jumps over the lazy dog'.split(' ');
let sum = 0;
for (let round = 0; round < +process.argv[1]; round++) {
  const made = [];
  for (let i = 0; i < 2000; i++) made.push({ id: i * 7919 % 2003, word: words[i % 9] + i });
  made.sort((a, b) => a.id - b.id || a.word.localeCompare(b.word));
  sum += JSON.parse(JSON.stringify(made)).filter(it => /o.*[02468]$/.test(it.word)).length;
}
console.log(sum);";

const SQL: &str = "
with recursive numbers(n) as (values(1) union all select n + 1 from numbers where n < COUNT)
select k, count(*), sum(length(t)), max(t) from
  (select n * 7919 % 10007 as k, printf('%d-%x', n, n * 31) as t from numbers) group by k % 50;";

/// All whose names contain `only`; those whose programs are missing are left out with a loud line.
pub(super) fn all(only: &str) -> Vec<Program> {
    let script = workspace::root().join("xtask/bench/work.py");
    let python = |kind: &str| -> Option<Vec<String>> {
        // The interpreter itself, not the script of a version manager.
        let mut python = Command::new("python3");
        python.args(["-c", "import sys; print(sys.executable)"]);
        let path = process::output(&mut python).ok()?.trim().to_owned();
        let script = script.to_string_lossy().into_owned();
        Some(vec![path, script, kind.into(), "COUNT".into()])
    };
    let with = |name: &str, arguments: &[&str]| -> Option<Vec<String>> {
        let path = process::find(name)?.to_string_lossy().into_owned();
        Some(
            [&path]
                .into_iter()
                .map(String::from)
                .chain(arguments.iter().map(|&it| it.into()))
                .collect(),
        )
    };
    let mut found = Vec::new();
    for (name, _) in ABOUT {
        let work = match name {
            "python3" => python("json").map(Work::Words),
            "gcc" => process::find("gcc").map(Work::Compilation),
            "rustc" => rustc().map(Work::RustCompilation),
            "ripgrep" => process::find("rg").map(Work::Search),
            "sqlite3" => with("sqlite3", &[":memory:", SQL]).map(Work::Words),
            "node" => with("node", &["-e", NODE, "COUNT"]).map(Work::Words),
            "busy server" => python("busy").map(Work::Words),
            _ => python("idle").map(Work::Milliseconds),
        };
        match work {
            _ if !name.contains(only) => {}
            Some(work) => found.push(Program {
                name,
                wide: name == "idle machine",
                work,
            }),
            None => println!("!!! a program that {name:?} needs is not installed: it is left out"),
        }
    }
    found
}

impl Program {
    /// The command for this amount of work.
    pub(super) fn command(&self, paths: &Paths, count: u64) -> Result<Vec<PathBuf>> {
        let count_text = count.to_string();
        match &self.work {
            Work::Words(words) | Work::Milliseconds(words) => {
                let words = words.iter().map(|word| word.replace("COUNT", &count_text));
                Ok(words.map(PathBuf::from).collect())
            }
            Work::Compilation(compiler) => {
                let file = written(paths, &format!("functions-{count}.c"), || c_source(count))?;
                let options = ["-O2", "-c", "-o", "/dev/null"];
                Ok(words(compiler, &options, [file]))
            }
            Work::RustCompilation(compiler) => {
                let file = written(paths, &format!("functions_{count}.rs"), || {
                    rust_source(count)
                })?;
                let options = ["-O", "--crate-type=lib", "--emit=obj", "-o", "/dev/null"];
                Ok(words(compiler, &options, [file]))
            }
            Work::Search(ripgrep) => {
                let file = written(paths, "searched.c", || c_source(20_000))?;
                let options = ["--threads=2", "--count", r"keys\[[ij]\] .*\d+[13579]\b.*;"];
                let files = (0..count).map(|_| file.clone());
                Ok(words(ripgrep, &options, files))
            }
        }
    }

    /// How much there is to do in a second on this machine.
    pub(super) fn per_second(&self, paths: &Paths) -> Result<f64> {
        const LONG: Duration = Duration::from_millis(700);
        if matches!(self.work, Work::Milliseconds(_)) {
            return Ok(1000.0);
        }
        let mut count = 16;
        loop {
            let command = self.command(paths, count)?;
            let wall = paths.stopwatch.measure(&paths.directory, command)?.0.wall;
            if wall >= LONG {
                return Ok(count as f64 / wall.as_secs_f64());
            }
            count *= 3;
        }
    }
}

/// The compiler itself, not the one that chooses among several.
fn rustc() -> Option<PathBuf> {
    let mut rustc = Command::new("rustc");
    let root = process::output(rustc.args(["--print", "sysroot"])).ok()?;
    Some(PathBuf::from(root.trim()).join("bin/rustc"))
}

/// A program, its options, and the files that it reads.
fn words(
    program: &Path,
    options: &[&str],
    files: impl IntoIterator<Item = PathBuf>,
) -> Vec<PathBuf> {
    let options = options.iter().map(PathBuf::from);
    let start = [program.to_owned()].into_iter().chain(options);
    start.chain(files).collect()
}

/// A file of this name, which is written unless it is there.
fn written(paths: &Paths, name: &str, text: impl FnOnce() -> String) -> Result<PathBuf> {
    let file = paths.directory.join(name);
    if !file.exists() {
        std::fs::write(&file, text())
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(file)
}

fn rust_source(count: u64) -> String {
    let mut text = String::new();
    for number in 0..count {
        let _ = writeln!(
            text,
            "pub fn f{number}(map: &mut std::collections::BTreeMap<u32, String>, keys: &[u32]) -> f64 {{
    let mut sum = {number}.0;
    for (at, key) in keys.iter().enumerate() {{
        match key & 3 {{
            0 => sum += map.get(&(key + {number})).map_or(1.0, |it| it.len() as f64),
            1 => sum *= if *key > {number} {{ 1.5 }} else {{ 0.5 }},
            2 => drop(map.insert(*key, format!(\"{{at}} of {number}\"))),
            _ => sum -= keys.iter().skip(at).map(|it| it ^ {number}).max().unwrap_or(0) as f64,
        }}
    }}
    sum
}}"
        );
    }
    text
}

fn c_source(count: u64) -> String {
    let mut text = String::from("struct pair { int key; double value; struct pair *next; };\n");
    for number in 0..count {
        let _ = writeln!(
            text,
            "double f{number}(struct pair *list, int *keys, int count) {{
    double sum = {number};
    for (int i = 0; i < count; i++) {{
        struct pair *it = list;
        while (it && it->key != keys[i] + {number}) it = it->next;
        switch (keys[i] & 7) {{
        case 0: sum += it ? it->value : 1; break;
        case 1: sum *= keys[i] > {number} ? 1.5 : 0.5; break;
        case 2: for (int j = 0; j < i; j++) keys[j] ^= keys[i] * {number}; break;
        case 3: if (it) it->value = sum / (keys[i] + {number}.5); break;
        default: sum -= keys[i] % ({number} + 3);
        }}
    }}
    return sum;
}}"
        );
    }
    text
}
