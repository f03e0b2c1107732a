//! Code that is compiled at run time has names without a flag, and nothing remains of how.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use prof_tests::{Need, Outcome, Program, Session, Stacks, USER_CODE, needs, own_tmp, spawn_ready};

fn program(name: &str) -> String {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs");
    directory.join(name).to_str().unwrap().to_owned()
}

fn perf_map(pid: impl std::fmt::Display) -> PathBuf {
    PathBuf::from(format!("/tmp/perf-{pid}.map"))
}

/// The samples of `light` and `heavy`, and those of all.
#[track_caller]
fn assert_named(stacks: &Stacks, light: &str, heavy: &str) {
    let in_function = |part: &str| stacks.share(|frames| frames.last().unwrap().contains(part));
    let (light, heavy) = (in_function(light), in_function(heavy));
    // The rest is the start of the runtime itself.
    assert!(light + heavy > 0.6, "{light} {heavy}:\n{stacks}");
    // Twice as many rounds; how fast each is differs from run to run, by the program's own clock,
    // too: 1.5 to 2.5 times as long with PHP.
    assert!(heavy > light, "{light} {heavy}:\n{stacks}");
}

/// All of them here. `PROF_NODES` names more than the one in `PATH`, as `PATH` does.
pub(crate) fn nodes() -> Vec<PathBuf> {
    all("node", "PROF_NODES")
}

/// All of them here: `PROF_JAVAS` names more.
fn javas() -> Vec<PathBuf> {
    all("java", "PROF_JAVAS")
}

fn all(tool: &str, variable: &str) -> Vec<PathBuf> {
    let named = std::env::var_os(variable).unwrap_or_default();
    let named = std::env::split_paths(&named).filter(|path| path.is_file());
    [PathBuf::from(tool)].into_iter().chain(named).collect()
}

fn files(session: &Session) -> Vec<OsString> {
    let entries = std::fs::read_dir(session.directory()).unwrap();
    entries.map(|entry| entry.unwrap().file_name()).collect()
}

/// The files besides recordings that were not there before.
fn added(session: &Session, before: &[OsString]) -> Vec<OsString> {
    let mut added = files(session);
    added.retain(|name| !before.contains(name) && !name.to_string_lossy().contains(".data"));
    added
}

/// It is told nothing: no variable, no argument.
#[test]
fn node_names_its_functions() {
    if !needs(&[Need::Tool("node")]) {
        return;
    }
    for node in nodes() {
        let session = Session::new();
        let script = format!(
            "console.log(process.pid, process.execArgv.length); require('{}');",
            program("hot.js")
        );
        session.write("pid.js", script.as_bytes());
        let before = files(&session);
        let node = node.to_str().unwrap();
        let behind_a_shell = ["sh", "-c", "\"$0\" pid.js; exit $?", node];
        for command in [&[node, "pid.js"][..], &behind_a_shell] {
            let arguments = [&["record", "-o", "node.data"], USER_CODE, &["--"], command];
            let outcome = session.run(arguments.concat());
            outcome.assert_code(7);
            assert!(outcome.stdout.ends_with(" nothing\n"), "{outcome}");
            let (pid, arguments) = outcome
                .stdout
                .lines()
                .next()
                .unwrap()
                .split_once(' ')
                .unwrap();
            assert_eq!(arguments, "0", "{outcome}");
            assert!(!perf_map(pid).exists(), "{outcome}");
            let report = session.run(["report", "-i", "node.data", "--folded", "-"]);
            assert_named(&Stacks::from_folded(&report.stdout), "light", "heavy");
        }
        assert_eq!(added(&session, &before), [""; 0], "{node}");
    }
}

/// V8's log would go to the working directory, and from a read-only one to the standard output.
#[test]
fn node_writes_what_it_writes_without_prof() {
    if !needs(&[Need::Tool("node")]) {
        return;
    }
    let session = Session::new();
    let script = "const { Worker } = require('worker_threads');
        new Worker('let x = 0; for (let i = 0; i < 1e7; i++) x += i % 7;', { eval: true })
            .on('exit', () => console.log('only this'));";
    session.write("worker.js", script.as_bytes());
    let worker = session.path("worker.js");
    let worker = worker.to_str().unwrap();
    let before = files(&session);
    for command in [
        &["node", worker][..],
        &["sh", "-c", "cd /proc && exec node \"$0\"", worker],
    ] {
        let recorded = session.record(USER_CODE, command);
        assert_eq!(recorded.outcome.stdout, "only this\n");
    }
    assert_eq!(added(&session, &before), [""; 0]);
}

/// There it has another process id.
#[test]
fn node_in_a_namespace_names_its_functions() {
    if !needs(&[Need::Tool("node"), Need::MountNamespaces]) {
        return;
    }
    let session = Session::new();
    let inside = format!("echo $$; exec node {}", program("hot.js"));
    let unshare = "unshare --mount --pid --fork --mount-proc sh -c \"$0\" || echo ended";
    let recorded = session.record(USER_CODE, &["sh", "-c", unshare, &inside]);
    let map = perf_map(recorded.outcome.stdout.lines().next().unwrap());
    assert!(!map.exists(), "{} remains", map.display());
    assert_named(&recorded.physical_stacks(), "light", "heavy");
}

/// Node aborts if it is to write a map and cannot.
#[test]
fn node_runs_where_no_map_can_be_written() {
    if !needs(&[Need::Tool("node"), Need::MountNamespaces]) {
        return;
    }
    let script = "mount --bind /tmp /tmp && mount --bind \"$0\" \"$0\" &&
        mount -o remount,bind,ro /tmp && cd \"$0\" && exec \"$@\"";
    for node in nodes() {
        let session = Session::new();
        let directory = session.directory().as_os_str().to_owned();
        let launcher = ["unshare", "--mount", "sh", "-c", script].map(OsString::from);
        let launcher = [&launcher[..], &[directory]].concat();
        let arguments = ["record", "--", node.to_str().unwrap(), "-p", "6 * 7"];
        let outcome = Outcome::of(session.prof_under(&launcher, arguments));
        outcome.assert_code(0);
        assert_eq!(outcome.stdout, "42\n");
    }
}

#[test]
fn a_map_that_the_user_requested_of_node_stays() {
    if !needs(&[Need::Tool("node")]) {
        return;
    }
    let session = Session::new();
    let script = format!("echo $$; exec node --perf-basic-prof {}", program("hot.js"));
    let outcome = session.run([&["record"], USER_CODE, &["--", "sh", "-c", &script]].concat());
    outcome.assert_code(7);
    assert!(!outcome.stderr.contains("kept"), "{outcome}");
    let map = perf_map(outcome.stdout.lines().next().unwrap());
    std::fs::remove_file(map).expect("the requested map");
}

/// Some JIT compilers write a perf map by default, for any profiler.
#[test]
fn perf_maps_of_other_programs_stay() {
    let session = Session::new();
    let binary = Program::c(&["jit.c"]).build();
    let script = format!("echo $$; exec {} 100", binary.display());
    let arguments = [
        &["record", "-o", "jit.data"],
        USER_CODE,
        &["--", "sh", "-c", &script],
    ];
    let outcome = session.run(arguments.concat());
    outcome.assert_code(0);
    assert!(!outcome.stderr.contains("kept"), "{outcome}");
    let map = perf_map(outcome.stdout.lines().next().unwrap());
    std::fs::remove_file(map).expect("the map that the program wrote");
}

/// What a command that is a runtime wrote in a `/tmp` where only it writes.
fn record_runtime(session: &Session, command: &[&str], variable: &str) -> Stacks {
    let launcher = own_tmp(session, "755", "");
    let arguments = [&["record"], USER_CODE, &["--"], command].concat();
    let outcome = Outcome::of(session.prof_under(&launcher, arguments));
    outcome.assert_code(0);
    outcome.assert_says(&["kept the symbols of JIT code of 1 process", variable]);
    assert!(!outcome.stdout.contains(".map"), "{outcome}");
    // They end where Erlang's processes do, except those in the virtual machine's own C code.
    let said = &outcome.stderr;
    assert!(!said.contains("the frame pointers end early"), "{said}");
    let report = session.run(["report", "--no-inline", "--folded", "-"]);
    Stacks::from_folded(&report.stdout)
}

/// Behind a script it gets no variable; the report says which one names its code.
fn check_behind_a_script(session: &Session, command: &str, variable: &str) {
    let script = format!("echo $$; exec {command}");
    let recorded = session.record(USER_CODE, &["sh", "-c", &script]);
    let outcome = &recorded.outcome;
    assert!(!outcome.stderr.contains("kept"), "{outcome}");
    assert!(
        !perf_map(outcome.stdout.lines().next().unwrap()).exists(),
        "{outcome}"
    );
    let report = recorded.report(&[]);
    let printed = format!("{}{}", report.stdout, report.stderr);
    assert!(printed.contains(variable), "{report}");
}

#[test]
fn erlang_names_its_functions() {
    if !needs(&[Need::Tool("erl"), Need::MountNamespaces]) {
        return;
    }
    let session = Session::new();
    let script = program("hot.escript");
    let stacks = record_runtime(&session, &["escript", &script], "ERL_FLAGS");
    let ends = |frames: &[String]| frames[0].starts_with("$erts_beamasm:normal_exit/0");
    assert!(stacks.share(ends) > 0.7, "{stacks}");
    assert_named(&stacks, "light", "heavy");
    check_behind_a_script(&session, &format!("escript {script}"), "ERL_FLAGS");
}

#[test]
fn mono_names_its_functions() {
    if !needs(&[Need::Tool("mono"), Need::Tool("mcs"), Need::MountNamespaces]) {
        return;
    }
    let session = Session::new();
    let compiled = session.path("hot.exe");
    let out = format!("-out:{}", compiled.display());
    let status = Command::new("mcs").arg(out).arg(program("Hot.cs")).status();
    assert!(status.is_ok_and(|status| status.success()));
    let compiled = compiled.to_str().unwrap();
    let stacks = record_runtime(&session, &["mono", compiled], "MONO_ENV_OPTIONS");
    assert_named(&stacks, "Light", "Heavy");
    check_behind_a_script(&session, &format!("mono {compiled}"), "MONO_ENV_OPTIONS");
}

#[test]
fn php_names_its_compiled_functions_if_the_user_says_so() {
    if !needs(&[Need::Tool("php")]) {
        return;
    }
    let session = Session::new();
    let php = "exec php -d opcache.enable_cli=1 -d opcache.jit=function \
               -d opcache.jit_buffer_size=64M -d opcache.jit_debug=16";
    let script = format!("echo $$; {php} {}", program("hot.php"));
    let recorded = session.record(USER_CODE, &["sh", "-c", &script]);
    let stacks = recorded.physical_stacks();
    let pid = recorded.outcome.stdout.lines().next().unwrap();
    std::fs::remove_file(perf_map(pid)).expect("the requested map");
    assert_named(&stacks, "light", "heavy");
}

/// The dump names functions otherwise than the map.
#[test]
fn erlang_with_a_dump_that_the_user_requested_has_whole_stacks() {
    if !needs(&[Need::Tool("erl")]) {
        return;
    }
    let session = Session::new();
    let script = format!("echo $$; exec escript {}", program("hot.escript"));
    let command = ["env", "ERL_FLAGS=+JPperf true", "sh", "-c", &script];
    let recorded = session.record(USER_CODE, &command);
    let report = recorded.report(&[]);
    let pid = recorded.outcome.stdout.lines().next().unwrap();
    for file in [perf_map(pid), format!("/tmp/jit-{pid}.dump").into()] {
        std::fs::remove_file(file).expect("the requested file");
    }
    assert!(report.stdout.contains("heavy"), "{report}");
    assert!(
        !report.stdout.contains("frame pointers end early"),
        "{report}"
    );
}

/// The JVM in `PATH` that runs this program, whose functions are compiled by now.
fn start_java(session: &Session, source: &str, options: &[&str]) -> Child {
    start_jvm(session, Path::new("java"), source, options)
}

fn start_jvm(session: &Session, java: &Path, source: &str, options: &[&str]) -> Child {
    // A copy: plain users may not be allowed to enter the checkout.
    let text = std::fs::read(program(source)).expect("the program");
    session.write(source, &text);
    let arguments = [options, &[source]].concat();
    spawn_ready(session.command(java, arguments))
}

fn record_running(session: &Session, process: &Child, call_graph: &str) -> Outcome {
    let pid = process.id().to_string();
    let options = ["-e", "cpu-clock:u", "-d", "2", "--call-graph", call_graph];
    let outcome = session.run([&["record"], &options[..], &["-p", &pid]].concat());
    outcome.assert_code(0);
    outcome
}

#[test]
fn a_running_jvm_names_its_functions() {
    if !needs(&[Need::Tool("java")]) {
        return;
    }
    for (is_root, call_graph) in [
        (true, "fp"),
        (false, "fp"),
        (true, "dwarf"),
        (false, "dwarf"),
    ] {
        let session = match is_root {
            true => Session::new(),
            false => Session::plain_user(),
        };
        let mut java = start_java(&session, "Hot.java", &[]);
        let outcome = record_running(&session, &java, call_graph);
        let map = perf_map(java.id());
        drop(java.stdin.take());
        let ended = java.wait_with_output().unwrap();
        let is_requested = outcome
            .stderr
            .contains("kept the symbols of JIT code of 1 process (prof requested them");
        // What is unwound is read from its memory.
        assert_eq!(is_requested, call_graph == "fp", "{outcome}");
        assert!(!map.exists(), "{} remains", map.display());
        assert!(
            ended.stdout.is_empty(),
            "{}",
            String::from_utf8_lossy(&ended.stdout)
        );
        let report = session.run(["report", "--folded", "-"]);
        // On a busy machine the JVM is still compiling.
        let lines = report.stdout.lines();
        let work: Vec<&str> = lines
            .filter(|line| !line.contains("CompileBroker"))
            .collect();
        let stacks = Stacks::from_folded(&work.join("\n"));
        assert_named(&stacks, "Hot.light", "Hot.heavy");
    }
}

/// Nothing can be requested from it: the names are read from its memory.
#[test]
fn a_jvm_behind_a_script_names_its_functions() {
    if !needs(&[Need::Tool("java")]) {
        return;
    }
    for session in [Session::new, Session::plain_user] {
        let session = session();
        let text = std::fs::read(program("Hot.java")).expect("the program");
        session.write("Hot.java", &text);
        let script = "echo $$; exec java Hot.java 4000";
        let arguments = [&["record"], USER_CODE, &["--", "sh", "-c", script]];
        let outcome = session.run(arguments.concat());
        outcome.assert_code(7);
        let (pid, rest) = outcome.stdout.split_once('\n').unwrap();
        assert_eq!(rest, "done\n", "{outcome}");
        assert!(!perf_map(pid).exists(), "{outcome}");
        let report = session.run(["report", "--folded", "-"]).stdout;
        assert_named(&Stacks::from_folded(&report), "Hot.light", "Hot.heavy");
    }
}

#[test]
fn a_jvm_without_requests_continues() {
    if !needs(&[Need::Tool("java")]) {
        return;
    }
    let session = Session::new();
    let option = "-XX:+DisableAttachMechanism";
    let mut java = start_java(&session, "Hot.java", &[option]);
    let outcome = record_running(&session, &java, "fp");
    outcome.assert_says(&["did not name the code", option]);
    drop(java.stdin.take());
    let ended = java.wait_with_output().unwrap();
    assert!(
        ended.status.success() && ended.stdout.is_empty(),
        "{ended:?}"
    );
}

/// The function that `frames`, outermost first, have at `index`, if it is one of `Pairs`.
fn pair_function(frames: &[String], index: usize) -> Option<&str> {
    let frame = frames.get(index)?;
    let (_, function) = frame.split_once("Pairs.")?;
    Some(function.split_once('(').map_or(function, |(name, _)| name))
}

/// Each function `n0` to `n9` that has a name was called by its own `f0` to `f9`.
#[track_caller]
fn assert_pairs(stacks: &Stacks) {
    let mut pairs = 0;
    for (frames, weight) in stacks.iter() {
        for index in 1..frames.len() {
            let Some(number) = pair_function(frames, index).and_then(|it| it.strip_prefix('n'))
            else {
                continue;
            };
            let caller = pair_function(frames, index - 1);
            // Recursion, parts of one of these functions, and callers without a frame.
            let is_known = caller.is_some_and(|caller| caller.starts_with(['f', 'd']));
            if number.len() == 1 && is_known {
                assert_eq!(caller, Some(&*format!("f{number}")), "{frames:?}");
                pairs += weight;
            }
        }
    }
    // JIT compilers and garbage collectors may take a part.
    assert!(pairs * 5 > stacks.total(), "{pairs}:\n{stacks}");
}

/// The stacks of a JVM that runs this program, whose functions are not inlined: those would not be
/// in stacks. Calls wait for the compiler, which on a busy machine would otherwise replace code
/// while it is recorded.
fn stacks_of_java(session: &Session, java: &Path, class: &str) -> Stacks {
    let dont_inline = format!("-XX:CompileCommand=dontinline,{class}::*");
    let options = [
        "-XX:CompileCommand=quiet",
        &dont_inline,
        "-XX:-BackgroundCompilation",
    ];
    stacks_of_java_with(session, java, class, &options)
}

fn stacks_of_java_with(session: &Session, java: &Path, class: &str, options: &[&str]) -> Stacks {
    let mut java = start_jvm(session, java, &format!("{class}.java"), options);
    record_running(session, &java, "dwarf");
    drop(java.stdin.take());
    java.wait().unwrap();
    Stacks::from_folded(&session.run(["report", "--folded", "-"]).stdout)
}

#[test]
fn stacks_of_java_are_whole_without_frame_pointers() {
    if !needs(&[Need::Tool("java")]) {
        return;
    }
    for java in javas() {
        for session in [Session::new, Session::plain_user] {
            let session = session();
            let stacks = stacks_of_java(&session, &java, "Pairs");
            stacks.assert_whole(0.98);
            assert_pairs(&stacks);
            let report = session.run(["report", "--limit", "1"]).stdout;
            assert!(!report.contains("PreserveFramePointer"), "{report}");
        }
    }
}

/// Whether a frame of code that belongs to no method is in the stack, but for the innermost one.
fn has_unnamed_caller(frames: &[String]) -> bool {
    frames.windows(2).any(|pair| pair[0] == "Interpreter")
}

#[test]
fn interpreted_methods_of_java_have_names() {
    if !needs(&[Need::Tool("java")]) {
        return;
    }
    for java in javas() {
        check_interpreted(&java);
    }
}

fn check_interpreted(java: &Path) {
    let session = Session::new();
    let stacks = stacks_of_java_with(&session, java, "Pairs", &["-Xint"]);
    stacks.assert_whole(0.97);
    assert_pairs(&stacks);
    let first = |frames: &[String]| {
        let mut indices = 0..frames.len();
        indices.find(|&index| pair_function(frames, index).is_some_and(|it| it.starts_with('n')))
    };
    let has_caller = |frames: &[String]| {
        first(frames).is_some_and(|index| {
            // A lambda calls n6.
            let callers = frames[..index].iter().rev().take(2);
            let name = pair_function(frames, index)
                .unwrap()
                .replace('n', "Pairs.f");
            callers.into_iter().any(|caller| caller.contains(&name))
        })
    };
    let (all, known) = (
        stacks.share(|frames| first(frames).is_some()),
        stacks.share(has_caller),
    );
    assert!(
        all > 0.6 && known > 0.99 * all,
        "{known} of {all}:\n{stacks}"
    );
    // Where a method begins, it has no frame.
    let unnamed = stacks.share(|frames| frames.last().unwrap() == "Interpreter");
    assert!(unnamed < 0.15, "{unnamed}:\n{stacks}");
    assert!(stacks.share(has_unnamed_caller) < 0.01, "{stacks}");
    let report = session.run(["report", "--sort", "language", "--limit", "1"]);
    let hottest = report.stdout.lines().find(|line| line.ends_with("Java"));
    let share = hottest.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    assert!(share.is_some_and(|it| it > 80.0), "{report}");
}

/// The method that runs the compiled ones is called once, so it stays interpreted.
#[test]
fn interpreted_and_compiled_methods_of_java_are_in_one_stack() {
    if !needs(&[Need::Tool("java")]) {
        return;
    }
    let stacks = stacks_of_java(&Session::new(), Path::new("java"), "Pairs");
    assert_pairs(&stacks);
    assert!(stacks.share(has_unnamed_caller) < 0.01, "{stacks}");
    let named = |frame: &String, name: &str| frame.contains(&format!("Pairs.{name}("));
    let works = |frames: &[String]| frames.iter().any(|frame| named(frame, "dive"));
    let callers = ["lambda$main$0", "work", "dive"];
    let is_whole = |frames: &[String]| {
        let mut callers_of_dive = frames.windows(3);
        callers_of_dive.any(|frames| (frames.iter().zip(callers)).all(|(it, name)| named(it, name)))
    };
    let (all, whole) = (stacks.share(works), stacks.share(is_whole));
    assert!(
        all > 0.2 && whole > 0.98 * all,
        "{whole} of {all}:\n{stacks}"
    );
}

#[test]
fn java_that_compares_and_searches_strings_has_whole_stacks() {
    if !needs(&[Need::Tool("java")]) {
        return;
    }
    for java in javas() {
        check_strings(&java);
    }
}

fn check_strings(java: &Path) {
    let stacks = stacks_of_java(&Session::new(), java, "Strings");
    stacks.assert_whole(0.95);
    let pairs = [("compares", "inComparing"), ("searches", "inSearching")];
    for (function, caller) in pairs {
        let named = |frame: &String, name: &str| frame.contains(&format!("Strings.{name}("));
        let with = |caller: &str| {
            stacks.share(|frames| {
                let mut pairs = frames.windows(2);
                pairs.any(|pair| named(&pair[0], caller) && named(&pair[1], function))
            })
        };
        let all = stacks.share(|frames| frames.iter().any(|frame| named(frame, function)));
        assert!(
            with(caller) > 0.9 * all && all > 0.05,
            "{function} {all}:\n{stacks}"
        );
    }
}
