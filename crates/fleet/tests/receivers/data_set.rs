//! `prof push` to a data set, and queries of it.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use prof_events::parsing::Catalog;
use prof_events::{CallGraph, GroupRequest};
use prof_model::counted;
use prof_needs::{met, python, tools};
use prof_recorder::{Options, Program, Signals, Target};
use prof_report::profile::Weight;
use prof_report::{CallTree, Filter, LoadOptions, Split, SymbolizedProfile};
use prof_symbols::EmbeddedSymbols;
use serde_json::Value;
use tempfile::TempDir;

use super::server::Server;
use super::{PROGRAM, Weights, all_weights, build, errors, fleet, weights};

/// Recordings, and an empty data set.
pub(super) struct Session {
    folder: TempDir,
    data: PathBuf,
}

impl Session {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        build(folder.path());
        let data = folder.path().join("data");
        Self { folder, data }
    }

    /// A file beside the recordings; `data` is the data set.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A recording of these events, which are written as for `prof record -e`.
    fn record_events(&self, name: &str, events: &str) -> PathBuf {
        let recording = self.path(name);
        let program = Program::new([self.path("work")]);
        let mut options = Options::new(Target::Command(program), &recording);
        let groups = Catalog::system().parse(events).unwrap();
        let named = |group| GroupRequest::named(group, None, CallGraph::Dwarf { dump: None });
        options.groups = groups.into_iter().map(named).collect();
        prof_recorder::record(&options, &Signals::block().unwrap()).unwrap();
        recording
    }

    pub(super) fn record(&self, name: &str) -> PathBuf {
        let recording = self.folder.path().join(name);
        let target = Target::Command(Program::new([self.folder.path().join("work")]));
        let signals = Signals::block().unwrap();
        prof_recorder::record(&Options::new(target, &recording), &signals).unwrap();
        recording
    }

    fn push(&self, recordings: &[PathBuf], host: &str) -> Command {
        let mut push = fleet();
        push.args([
            "push",
            "--service",
            "shop",
            "--host",
            host,
            "--label",
            "zone=a",
        ]);
        push.args(recordings).arg(&self.data);
        push
    }

    pub(super) fn pushed(&self, recording: &Path, host: &str) -> String {
        self.all_pushed(&[recording.to_owned()], host)
    }

    pub(super) fn all_pushed(&self, recordings: &[PathBuf], host: &str) -> String {
        let output = self.push(recordings, host).output().unwrap();
        assert!(output.status.success(), "{}", errors(&output));
        errors(&output)
    }

    pub(super) fn query(&self, conditions: &[&str]) -> Weights {
        let mut query = fleet();
        query.arg("query").arg(&self.data).args(["--folded", "-"]);
        let output = query.args(conditions).output().unwrap();
        assert!(output.status.success(), "{}", errors(&output));
        by_function(&String::from_utf8(output.stdout).unwrap())
    }

    /// The line about what a query shows.
    fn closing(&self, conditions: &[&str]) -> String {
        let mut query = fleet();
        query
            .arg("query")
            .arg(&self.data)
            .args(["--folded", "/dev/null"]);
        errors(&query.args(conditions).output().unwrap())
    }

    pub(super) fn data(&self, verb: &str) -> (Option<i32>, String) {
        let output = fleet()
            .arg("data")
            .arg(verb)
            .arg(&self.data)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code(), text + &errors(&output))
    }

    /// The files of a table, by their paths.
    pub(super) fn files(&self, table: &str) -> Vec<PathBuf> {
        Self::files_below(self.data.join(table))
    }

    fn files_below(folder: PathBuf) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![folder];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => folders.push(path),
                    false => found.push(path),
                }
            }
        }
        found
    }
}

/// The weight of each function with it on the stack, of folded stacks.
pub(super) fn by_function(folded: &str) -> Weights {
    let mut weights = Weights::new();
    for line in folded.lines() {
        let (stack, weight) = line.rsplit_once(' ').unwrap();
        let mut names: Vec<&str> = stack.split(';').collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            *weights.entry(name.to_owned()).or_default() += weight.parse::<u64>().unwrap();
        }
    }
    weights
}

pub(super) fn sum(a: &Weights, b: &Weights) -> Weights {
    let mut sum = a.clone();
    for (name, weight) in b {
        *sum.entry(name.clone()).or_default() += weight;
    }
    sum
}

#[test]
fn a_data_set_has_each_recording_once() {
    if !tools(&["gcc"]) {
        return;
    }
    let session = Session::new();
    let (first, second) = (session.record("first"), session.record("second"));
    assert!(session.pushed(&first, "a").contains("pushed"));
    assert!(session.pushed(&first, "a").contains("was pushed before"));
    let archived = session.path("archived");
    let mut copy = fs::File::create(&archived).unwrap();
    let recording = fs::read(&first).unwrap();
    let symbols = EmbeddedSymbols::new(&[], &[]).to_bytes();
    prof_perfdata::write_with_symbols(&recording, &symbols, &mut copy).unwrap();
    assert!(session.pushed(&archived, "a").contains("was pushed before"));
    session.pushed(&second, "b");
    let (of_first, of_second) = (weights(&first), weights(&second));
    assert_eq!(session.query(&["--host", "a"]), of_first);
    assert_eq!(
        session.query(&["--host", "b", "--label", "zone=a"]),
        of_second
    );
    assert_eq!(
        session.query(&["--since", "1h"]),
        sum(&of_first, &of_second)
    );
    let parse = session.query(&["--function", "^parse$"]);
    assert_eq!(parse["main"], of_first["parse"] + of_second["parse"]);
    let nothing = fleet()
        .arg("query")
        .arg(&session.data)
        .args(["--label", "zone=b"])
        .output();
    assert!(errors(&nothing.unwrap()).contains("no samples to show"));
    assert_eq!(session.data("check").0, Some(0));
}

#[test]
fn recordings_beside_one_that_fails_are_pushed() {
    if !tools(&["gcc"]) {
        return;
    }
    let session = Session::new();
    let first = session.record("first");
    // Any bytes but a zero and a slash are a name.
    let third = session.path("").join(OsStr::from_bytes(b"third-\xff"));
    fs::rename(session.record("third"), &third).unwrap();
    let (bad, missing) = (session.path("bad"), session.path("missing"));
    fs::write(&bad, "no recording").unwrap();
    let whole = sum(&weights(&first), &weights(&third));
    let output = session.push(&[first, bad, missing, third], "a").output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = errors(&output);
    for name in ["bad", "missing"] {
        let named = said.lines().filter(|line| line.contains(name));
        assert_eq!(named.count(), 1, "{said}");
    }
    assert_eq!(said.matches("cannot push ").count(), 2, "{said}");
    assert_eq!(said.matches("prof: pushed ").count(), 2, "{said}");
    assert_eq!(session.query(&[]), whole);
}

#[test]
fn a_receiver_that_is_down_is_not_tried_for_each_recording() {
    if !tools(&["gcc"]) {
        return;
    }
    let session = Session::new();
    let recording = session.record("recording");
    let server = Server::answering(&[(500, "down"); 3]);
    let mut push = fleet();
    push.arg("push").args([&recording; 4]);
    push.arg(format!("pyroscope+http://{}", server.address));
    let output = push.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = errors(&output);
    assert_eq!(said.matches("answers 500: down").count(), 2, "{said}");
    assert!(
        said.ends_with("did not try 2 recordings: the destination is down\n"),
        "{said}"
    );
    assert_eq!(server.rest().len(), 2);
}

#[test]
fn a_label_that_is_given_twice_is_refused() {
    let session = tempfile::tempdir().unwrap();
    let check = |arguments: &[&str]| {
        let mut command = fleet();
        command.args(arguments).arg(session.path());
        let output = command
            .args(["--label", "zone=b", "--label", "zone=c"])
            .output();
        let output = output.unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", errors(&output));
        let expected = "prof: error: --label zone is given twice\n";
        assert_eq!(errors(&output), expected);
    };
    check(&["push", "prof.data"]);
    check(&["query"]);
    check(&["query", "--diff", "host=a,host=b"]);
    check(&["collect", "--service", "shop"]);
}

#[test]
fn comparisons_show_the_sums_of_both_parts() {
    if !tools(&["gcc"]) {
        return;
    }
    let session = Session::new();
    let recordings = ["first", "second", "third"].map(|name| session.record(name));
    // Two of one machine and one of another, so that the sums differ.
    for (recording, host) in recordings.iter().zip(["a", "a", "b"]) {
        session.pushed(recording, host);
    }
    let [first, second, third] = recordings.each_ref().map(|recording| weights(recording));
    let sums = [sum(&first, &second), third];
    let [mut before, second, after] = recordings.map(|recording| whole(&recording));
    before += second;
    let wholes = [before, after];
    let json = session.path("diff.json");
    let compare = |arguments: &[&str]| {
        let mut query = fleet();
        query.arg("query").arg(&session.data);
        query.args(["--diff", "host=a,host=b"]).args(arguments);
        let output = query.output().unwrap();
        assert!(output.status.success(), "{}", errors(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    compare(&["--json", json.to_str().unwrap()]);
    let found: Value = serde_json::from_slice(&fs::read(json).unwrap()).unwrap();
    let functions = found["functions"].as_array().unwrap();
    for (side, (sum, whole)) in ["before", "after"].into_iter().zip(sums.iter().zip(wholes)) {
        let total = &found[side]["total"];
        assert_eq!(total["value"], whole.value, "{side}");
        assert_eq!(total["samples"], whole.samples, "{side}");
        for name in ["main", "parse", "render", "burn"] {
            let function = functions.iter().find(|function| function["name"] == name);
            let share = function.unwrap()[side]["total_share"].as_f64().unwrap();
            let expected = sum[name] as f64 / whole.value as f64;
            assert!(
                (share - expected).abs() < 1e-6,
                "{side} {name}: {share}, not {expected}"
            );
        }
    }
    let table = compare(&[]);
    for (side, whole) in ["before: host=a", "after:  host=b"].into_iter().zip(wholes) {
        let expected = format!("{side}, {}\n", counted(whole.samples, "sample"));
        assert!(table.contains(&expected), "{table}, not {expected}");
    }
}

/// The weight of a recording in prof's own report.
fn whole(recording: &Path) -> Weight {
    let profile = prof_report::read(recording, &LoadOptions::default()).unwrap();
    let profile = SymbolizedProfile::without_names(profile);
    let tree = CallTree::new(&profile, &Filter::default(), Split::Nothing).unwrap();
    tree.total()
}

#[test]
fn hosts_of_one_name_are_added_up_and_compacted() {
    if !tools(&["gcc"]) {
        return;
    }
    let session = Session::new();
    let (first, second) = (session.record("first"), session.record("second"));
    session.pushed(&first, "a");
    let kept = ["samples", "runs"].map(|table| {
        let path = session.files(table).remove(0);
        (fs::read(&path).unwrap(), path)
    });
    session.pushed(&second, "a");
    let whole = sum(&weights(&first), &weights(&second));
    assert_eq!(session.query(&[]), whole);
    let (_, checked) = session.data("check");
    assert!(
        checked.contains("partitions of several small files"),
        "{checked}"
    );
    assert_eq!(session.data("compact").0, Some(0));
    for table in ["samples", "stacks", "runs"] {
        assert_eq!(session.files(table).len(), 1, "{table}");
    }
    assert_eq!(session.query(&[]), whole);
    // A recording that was pushed is not pushed again.
    assert!(session.pushed(&first, "a").contains("was pushed before"));
    assert_eq!(session.query(&[]), whole);
    let (_, checked) = session.data("check");
    assert!(checked.ends_with("bytes\n"), "{checked}");
    // The state of a compaction that was killed before it removed the first files.
    for (file, path) in kept {
        fs::write(path, file).unwrap();
    }
    assert_eq!(session.query(&[]), whole);
    assert_eq!(session.data("check").0, Some(3));
    assert_eq!(session.data("compact").0, Some(0));
    assert_eq!(session.data("check").0, Some(0));
    assert_eq!(session.query(&[]), whole);
}

#[test]
fn killed_pushes_change_nothing() {
    if !tools(&["gcc"]) {
        return;
    }
    let mut session = Session::new();
    let recording = session.record("recording");
    let expected = weights(&recording);
    let mut midway = 0;
    for number in 0..50 {
        // Nothing is there that an earlier push has done.
        session.data = session.folder.path().join(format!("data-{number}"));
        let mut push = session
            .push(std::slice::from_ref(&recording), "a")
            .spawn()
            .unwrap();
        // A complete push creates more files and folders than that.
        while entries(&session.data) < number % 13 && push.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        push.kill().unwrap();
        push.wait().unwrap();
        let whole = |table| whole_files(&session.files(table));
        midway += usize::from(session.data.exists() && whole("runs") == 0);
        session.pushed(&recording, "a");
        assert_eq!(session.query(&[]), expected, "{number}");
        assert_eq!(session.data("check").0, Some(0), "{number}");
        assert_eq!((whole("samples"), whole("runs")), (1, 1), "{number}");
    }
    assert!(midway > 0, "no push was killed midway");
}

#[test]
fn files_of_killed_pushes_are_removed_once_they_are_old() {
    if !tools(&["gcc"]) {
        return;
    }
    let session = Session::new();
    session.pushed(&session.record("recording"), "a");
    let folder = session.files("samples")[0].parent().unwrap().to_owned();
    // What a push leaves behind that is killed while it writes.
    let (old, new) = (folder.join(".new-old"), folder.join(".new-new"));
    fs::write(&old, "PAR1").unwrap();
    fs::write(&new, "PAR1").unwrap();
    let two_days = Duration::from_secs(2 * 24 * 60 * 60);
    let file = fs::File::options().write(true).open(&old).unwrap();
    file.set_modified(SystemTime::now() - two_days).unwrap();
    let (status, text) = session.data("check");
    assert_eq!(status, Some(0), "{text}");
    assert!(
        text.contains("\n1 unfinished file of killed pushes"),
        "{text}"
    );
    let (status, text) = session.data("compact");
    assert_eq!(status, Some(0), "{text}");
    assert!(
        text.contains("removed 1 unfinished file of killed pushes"),
        "{text}"
    );
    // Another push may be writing this one.
    assert!(new.exists() && !old.exists());
    let (_, text) = session.data("check");
    assert!(!text.contains("unfinished"), "{text}");
}

/// How many files and folders a folder has, at all depths.
fn entries(folder: &Path) -> usize {
    let found = fs::read_dir(folder).into_iter().flatten().flatten();
    // A removed folder has no entries.
    found.map(|entry| 1 + entries(&entry.path())).sum()
}

/// The complete files: the others have no extension.
fn whole_files(files: &[PathBuf]) -> usize {
    let whole = files.iter().filter(|path| path.extension().is_some());
    whole.count()
}

#[test]
fn frames_are_symbolized_later_with_the_file() {
    if !tools(&["gcc", "readelf"]) {
        return;
    }
    let session = Session::new();
    let recording = session.record("recording");
    let pushed = session
        .push(std::slice::from_ref(&recording), "a")
        .args(["--symbols", "later"])
        .output();
    assert!(pushed.unwrap().status.success());
    // On a machine without the program.
    let unnamed = session.query(&[]);
    assert!(!unnamed.contains_key("parse"), "{unnamed:?}");
    assert!(
        unnamed.keys().any(|name| name.starts_with("work+0x")),
        "{unnamed:?}"
    );
    // In the layout of debuginfod's cache.
    let notes = Command::new("readelf")
        .arg("-n")
        .arg(session.folder.path().join("work"))
        .output();
    let notes = String::from_utf8(notes.unwrap().stdout).unwrap();
    let (_, id) = notes.split_once("Build ID: ").unwrap();
    let cache = session.folder.path().join("cache");
    let place = cache.join(id.lines().next().unwrap());
    fs::create_dir_all(&place).unwrap();
    for name in ["executable", "debuginfo"] {
        fs::copy(session.folder.path().join("work"), place.join(name)).unwrap();
    }
    let mut query = fleet();
    query
        .arg("query")
        .arg(&session.data)
        .args(["--folded", "-"]);
    query.env("DEBUGINFOD_CACHE_PATH", &cache);
    let output = query
        .env("DEBUGINFOD_URLS", "http://127.0.0.1:1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", errors(&output));
    let named = by_function(&String::from_utf8(output.stdout).unwrap());
    let known = weights(&recording);
    for function in ["main", "parse", "render", "burn"] {
        assert_eq!(named[function], known[function], "{function}");
    }
}

#[test]
fn stripped_functions_are_called_as_in_the_report() {
    if !tools(&["gcc", "strip"]) {
        return;
    }
    let session = Session::new();
    let program = session.path("work");
    assert!(
        Command::new("strip")
            .arg(&program)
            .status()
            .unwrap()
            .success()
    );
    let recording = session.record("recording");
    let of_program = |mut weights: Weights| {
        weights.retain(|name, _| name.starts_with("work+0x"));
        weights
    };
    let known = of_program(all_weights(&recording));
    assert!(known.len() > 2, "{known:?}");
    session.pushed(&recording, "a");
    assert_eq!(of_program(session.query(&[])), known);
}

/// Programs of one layout and one path, as in containers, differ only in their functions' names.
#[test]
fn programs_of_one_path_without_build_ids_are_told_apart() {
    if !tools(&["gcc"]) {
        return;
    }
    let session = Session::new();
    let record = |name: &str, (parse, render): (&str, &str)| {
        let source = PROGRAM.replace("parse", parse).replace("render", render);
        fs::write(session.path("work.c"), source).unwrap();
        let built = Command::new("gcc")
            .args(["-g", "-O1", "-fno-inline", "-Wl,--build-id=none", "-o"])
            .args([session.path("work"), session.path("work.c")])
            .status();
        assert!(built.unwrap().success());
        session.record(name)
    };
    let shop = record("shop", ("parse", "render"));
    session.pushed(&shop, "a");
    session.pushed(&record("bank", ("count", "divide")), "b");
    let of_shop = session.query(&["--host", "a"]);
    let of_bank = session.query(&["--host", "b"]);
    assert!(of_shop["parse"] > of_shop["render"], "{of_shop:?}");
    assert!(!of_shop.contains_key("count"), "{of_shop:?}");
    assert!(of_bank["count"] > of_bank["divide"], "{of_bank:?}");
    assert!(!of_bank.contains_key("parse"), "{of_bank:?}");
}

#[test]
fn a_damaged_file_is_named() {
    if !tools(&["gcc"]) {
        return;
    }
    let session = Session::new();
    session.pushed(&session.record("recording"), "a");
    let file = &session.files("samples")[0];
    let bytes = fs::read(file).unwrap();
    fs::write(file, &bytes[..bytes.len() / 2]).unwrap();
    let (status, text) = session.data("check");
    assert_eq!(status, Some(3), "{text}");
    assert!(text.contains("damaged: samples/date="), "{text}");
}

#[test]
fn other_directories_are_no_data_sets() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("notes.txt"), "text").unwrap();
    let check = fleet().args(["data", "check"]).arg(folder.path()).output();
    let check = check.unwrap();
    assert_eq!(check.status.code(), Some(1));
    assert!(errors(&check).contains("there is no data set in"));
}

/// Other users may query a data set if the umask lets them.
#[test]
fn the_umask_decides_who_may_read_files() {
    if !tools(&["gcc"]) {
        return;
    }
    let session = Session::new();
    let recording = session.record("recording");
    for (number, (umask, mode)) in [("022", 0o644), ("077", 0o600)].into_iter().enumerate() {
        let data = session.path(&format!("data-{number}"));
        let push = r#"umask "$0"; exec "$1" push "$2" "$3""#;
        let push = Command::new("sh")
            .args(["-c", push, umask])
            .arg(fleet().get_program())
            .args([&recording, &data])
            .output();
        assert!(push.unwrap().status.success());
        let mut runs = Session::files_below(data.join("runs"));
        let metadata = fs::metadata(runs.remove(0)).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, mode, "{umask}");
    }
}

#[test]
fn files_beyond_any_of_prof_are_not_read() {
    if !tools(&["gcc"]) {
        return;
    }
    let session = Session::new();
    session.pushed(&session.record("recording"), "a");
    let junk = session.files("samples")[0].with_file_name("junk.parquet");
    // A file without blocks on the disk.
    fs::File::create(&junk).unwrap().set_len(600 << 20).unwrap();
    for verb in ["check", "compact"] {
        let (_, text) = session.data(verb);
        assert!(text.contains("junk.parquet"), "{text}");
        assert!(text.contains("it has over 512 MiB"), "{text}");
    }
    let output = fleet().arg("query").arg(&session.data).output().unwrap();
    assert!(errors(&output).contains("it has over 512 MiB"));
}

#[test]
fn files_in_unexpected_folders_are_named() {
    if !tools(&["gcc"]) {
        return;
    }
    let session = Session::new();
    session.pushed(&session.record("recording"), "a");
    let file = session.files("samples")[0].clone();
    let day = file.ancestors().nth(3).unwrap();
    let check = |folder: &Path| {
        fs::create_dir_all(folder).unwrap();
        let copy = folder.join("copy.parquet");
        fs::copy(&file, &copy).unwrap();
        let (status, text) = session.data("check");
        assert_eq!(status, Some(3), "{text}");
        let inside = copy.strip_prefix(&session.data).unwrap().display();
        assert!(
            text.contains(&format!("{inside} is in a folder where")),
            "{text}"
        );
        fs::remove_file(copy).unwrap();
        assert_eq!(session.data("check").0, Some(0));
    };
    check(&session.data.join("samples"));
    check(day);
    check(&file.parent().unwrap().join("backup"));
}

#[test]
fn a_partition_may_be_a_link_to_another_disk() {
    if !tools(&["gcc"]) {
        return;
    }
    let session = Session::new();
    let (first, second) = (session.record("first"), session.record("second"));
    session.pushed(&first, "a");
    let of_first = session.query(&[]);
    let host = session.files("samples")[0].parent().unwrap().to_owned();
    let other_disk = session.path("other-disk");
    fs::rename(&host, &other_disk).unwrap();
    symlink(&other_disk, &host).unwrap();
    assert_eq!(session.query(&[]), of_first);
    assert!(session.pushed(&first, "a").contains("was pushed before"));
    session.pushed(&second, "a");
    let both = sum(&of_first, &weights(&second));
    assert_eq!(session.query(&[]), both);
    assert_eq!(session.data("compact").0, Some(0));
    assert_eq!(session.data("check").0, Some(0));
    assert_eq!(session.query(&[]), both);
    // What is behind a link must not be missing without a word.
    fs::remove_dir_all(&other_disk).unwrap();
    let (status, text) = session.data("check");
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains(&*host.to_string_lossy()), "{text}");
}

#[test]
fn links_in_a_data_set_are_named_and_nothing_is_lost() {
    if !tools(&["gcc"]) {
        return;
    }
    let session = Session::new();
    let both = [session.record("first"), session.record("second")];
    session.all_pushed(&both, "a");
    let once = sum(&weights(&both[0]), &weights(&both[1]));
    // A host under another name, and a link that leads back.
    for table in ["samples", "runs"] {
        let host = session.files(table)[0].parent().unwrap().to_owned();
        symlink("host=a", host.with_file_name("host=b")).unwrap();
        symlink(".", host.with_file_name("host=loop")).unwrap();
    }
    assert_eq!(session.query(&[]), once);
    let closing = session.closing(&[]);
    assert!(
        closing.contains("host=b is the same folder as "),
        "{closing}"
    );
    let (status, text) = session.data("check");
    assert_eq!(status, Some(3), "{text}");
    for name in ["host=b", "host=loop"] {
        assert_eq!(
            text.matches(&format!("{name} is the same folder as "))
                .count(),
            2,
            "{text}"
        );
    }
    assert!(!text.contains("repairs that"), "{text}");
    let (status, text) = session.data("compact");
    assert_eq!(status, Some(0), "{text}");
    assert_eq!(session.query(&[]), once);
    // What is pushed through a link would count as that of another host.
    let third = session.record("third");
    let output = session
        .push(std::slice::from_ref(&third), "b")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        errors(&output).contains("its folder is a link to "),
        "{}",
        errors(&output)
    );
    // A hard link to a file keeps its partition from being compacted: one name would remain.
    session.pushed(&third, "a");
    for table in ["samples", "runs"] {
        let mut folders = fs::read_dir(session.data.join(table)).unwrap();
        let day = folders.next().unwrap().unwrap().path();
        fs::remove_file(day.join("service=shop/host=loop")).unwrap();
    }
    let file = session.files("samples").remove(0);
    fs::hard_link(&file, file.with_file_name("other.parquet")).unwrap();
    let all = sum(&once, &weights(&third));
    assert_eq!(session.query(&[]), all);
    let (status, text) = session.data("compact");
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains("is the same file as "), "{text}");
    assert_eq!(session.query(&[]), all);
}

#[test]
fn a_recording_of_two_hosts_counts_on_each_and_is_reported() {
    if !tools(&["gcc"]) {
        return;
    }
    let session = Session::new();
    let recording = session.record("recording");
    session.pushed(&recording, "a");
    assert_eq!(session.data("check").0, Some(0));
    session.pushed(&recording, "b");
    let once = weights(&recording);
    assert_eq!(session.query(&[]), sum(&once, &once));
    let closing = session.closing(&[]);
    assert!(closing.contains("of 1 recording on 2 hosts;"), "{closing}");
    let (status, text) = session.data("check");
    assert_eq!(status, Some(3), "{text}");
    assert!(
        text.contains("one recording counts several times"),
        "{text}"
    );
    // The remedy.
    for table in ["runs", "samples"] {
        let files = session.files(table);
        let one = files
            .iter()
            .find(|path| path.parent().unwrap().ends_with("host=b"));
        fs::remove_file(one.unwrap()).unwrap();
    }
    let (status, text) = session.data("check");
    assert_eq!(status, Some(0), "{text}");
    assert_eq!(session.query(&[]), once);
}

#[test]
fn the_last_line_counts_what_is_shown() {
    if !tools(&["gcc"]) {
        return;
    }
    let session = Session::new();
    let recording = session.record_events("recording", "cpu-clock,page-faults/period=1/");
    session.pushed(&recording, "a");
    let profile = prof_report::read(&recording, &LoadOptions::default()).unwrap();
    let symbolized = SymbolizedProfile::without_names(profile);
    let of_event = |event: &str| {
        let filter = Filter {
            event: Some(event.into()),
            ..Filter::default()
        };
        let tree = CallTree::new(&symbolized, &filter, Split::Nothing).unwrap();
        tree.total().samples
    };
    for event in ["cpu-clock", "page-faults/period=1/"] {
        let closing = session.closing(&["--event", event]);
        let expected = counted(of_event(event), "sample") + " of 1 recording on 1 host; ";
        assert!(closing.contains(&expected), "{closing}, not {expected}");
    }
    let closing = session.closing(&["--event", "cpu-clock", "--function", "^parse$"]);
    let (_, matching) = closing.split_once("on 1 host; ").unwrap();
    let (matching, _) = matching.split_once(" of these have a function").unwrap();
    let matching: u64 = matching.parse().unwrap();
    assert!((1..of_event("cpu-clock")).contains(&matching), "{closing}");
}

#[test]
fn the_event_with_the_most_samples_is_shown() {
    if !tools(&["gcc"]) {
        return;
    }
    let session = Session::new();
    let few = session.record_events("few", "page-faults/period=10/");
    let many = session.record("many");
    session.pushed(&few, "a");
    session.pushed(&many, "b");
    assert_eq!(session.query(&[]), weights(&many));
    let faults = session.query(&["--event", "page-faults/period=10/"]);
    assert_eq!(faults, all_weights(&few));
    let closing = session.closing(&[]);
    assert!(closing.contains("on 1 host; "), "{closing}");
    assert!(
        closing.contains("--event NAME shows page-faults"),
        "{closing}"
    );
}

#[test]
fn what_was_removed_is_there_again_after_a_push() {
    if !tools(&["gcc"]) {
        return;
    }
    let session = Session::new();
    let (first, second) = (session.record("first"), session.record("second"));
    session.pushed(&first, "a");
    session.pushed(&second, "a");
    let whole = sum(&weights(&first), &weights(&second));
    let both = [first, second];
    let repaired = |what: &str| {
        let (status, text) = session.data("check");
        assert_eq!(status, Some(3), "{text}");
        assert!(text.contains(what), "{text}");
        let text = session.all_pushed(&both, "a");
        assert!(text.contains("pushed "), "{text}");
        let (status, text) = session.data("check");
        assert_eq!(status, Some(0), "{text}");
        assert_eq!(session.query(&[]), whole);
        let text = session.all_pushed(&both, "a");
        assert_eq!(text.matches("was pushed before").count(), 2, "{text}");
    };
    // One of two files, and then the one that both became.
    fs::remove_file(&session.files("samples")[0]).unwrap();
    repaired("`samples` has 0: push the recording again");
    for file in session.files("stacks") {
        fs::remove_file(file).unwrap();
    }
    let closing = session.closing(&[]);
    assert!(closing.contains("lacks the frames of"), "{closing}");
    assert!(!closing.contains("whole"), "{closing}");
    repaired("without frames");
    assert_eq!(session.data("compact").0, Some(0));
    fs::remove_file(&session.files("samples")[0]).unwrap();
    repaired("`samples` has 0: push the recording again");
    assert_eq!(session.data("compact").0, Some(0));
    fs::remove_file(&session.files("stacks")[0]).unwrap();
    repaired("without frames");
}

#[test]
fn partitions_beside_a_damaged_file_are_compacted() {
    if !tools(&["gcc"]) {
        return;
    }
    let session = Session::new();
    let both = [session.record("first"), session.record("second")];
    session.all_pushed(&both, "a");
    session.all_pushed(&both, "b");
    let files = session.files("samples");
    let damaged = files
        .iter()
        .find(|path| path.parent().unwrap().ends_with("host=a"));
    fs::write(damaged.unwrap(), "damaged").unwrap();
    let (status, text) = session.data("compact");
    assert_eq!(status, Some(1), "{text}");
    assert!(
        text.contains("host=a/") && text.contains("compacted "),
        "{text}"
    );
    assert_eq!(session.files("samples").len(), 3);
}

/// What a script in Python finds in a data set of two hosts, of both and of host 007.
fn other_engine_finds_the_same_sums(module: &str, script: &str, condition: (&str, &str)) {
    let import = format!("import {module}");
    let has = Command::new(python()).args(["-c", &import]).output();
    let name = format!("Python's {module}");
    if !tools(&["gcc"]) || !met(has.unwrap().status.success(), &name) {
        return;
    }
    let session = Session::new();
    let record = |name| session.record_events(name, "task-clock");
    let (first, second) = (record("first"), record("second"));
    session.pushed(&first, "007");
    session.pushed(&second, "7");
    let found = |script: &str| {
        let mut command = Command::new(python());
        let output = command.args(["-c", script]).arg(&session.data).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{}", errors(&output));
        by_function(&String::from_utf8(output.stdout).unwrap())
    };
    assert_eq!(found(script), sum(&weights(&first), &weights(&second)));
    let (place, condition) = condition;
    assert_eq!(script.matches(place).count(), 1);
    assert_eq!(found(&script.replace(place, condition)), weights(&first));
}

#[test]
fn duckdb_finds_the_same_sums() {
    let query = include_str!("../../sql/duckdb.sql");
    let script = format!(
        "import sys, duckdb\n\
         duckdb.execute(f\"set variable url = '{{sys.argv[1]}}'\")\n\
         for (line,) in duckdb.execute(r\"\"\"{query}\"\"\").fetchall(): print(line)"
    );
    let condition = (" -- conditions", " and host = '007'");
    other_engine_finds_the_same_sums("duckdb", &script, condition);
}

#[test]
fn polars_finds_the_same_sums() {
    let script = include_str!("../../sql/folded_polars.py");
    let condition = (
        ".is_in(event))  # conditions",
        ".is_in(event), pl.col(\"host\") == \"007\")",
    );
    other_engine_finds_the_same_sums("polars", script, condition);
}
