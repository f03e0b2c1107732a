//! perf reads our files, and sees the same as `prof report`.

use std::collections::BTreeMap;
use std::process::Command;

use prof_tests::{Aliases, Need, Outcome, Program, Recorded, Session, Variant, needs, perf_script};

/// Asserts that `perf script` and `prof report --folded` show the same stacks with the same
/// weights.
#[track_caller]
fn check(recorded: &Recorded<'_>) {
    let aliases = Aliases::of_the_c_library();
    let common_name = |name: &str| aliases.representative(plain_name(name));
    let mut by_perf: BTreeMap<Vec<String>, u64> = BTreeMap::new();
    for sample in perf_script(&recorded.file) {
        let frames = sample
            .frames
            .iter()
            .rev()
            .map(|name| common_name(name))
            .collect();
        *by_perf.entry(frames).or_default() += sample.period;
    }
    let mut by_prof: BTreeMap<Vec<String>, u64> = BTreeMap::new();
    for (frames, weight) in recorded.physical_stacks().iter() {
        // A mark that the stack is not whole is ours alone.
        let frames = frames.iter().filter(|name| !name.starts_with("[truncated"));
        let frames = frames.map(|name| common_name(name)).collect();
        *by_prof.entry(frames).or_default() += weight;
    }
    // If the kernel counted more than was sampled, all weights are corrected by one factor: each of
    // these programs has one name.
    let sum = |weights: &BTreeMap<Vec<String>, u64>| weights.values().sum::<u64>() as f64;
    let correction = sum(&by_prof) / sum(&by_perf);
    assert!((0.8..1.25).contains(&correction), "{correction}");
    let only =
        |ours: &BTreeMap<Vec<String>, u64>, theirs: &BTreeMap<Vec<String>, u64>, factor: f64| {
            let same = |our: u64, their: u64| {
                let expected = their as f64 * factor;
                (our as f64 - expected).abs() <= expected / 1000.0
            };
            let missing = ours.iter().filter(|(frames, our)| {
                !theirs.get(*frames).is_some_and(|their| same(**our, *their))
            });
            let lines = missing.map(|(frames, weight)| format!("{weight} {}\n", frames.join(";")));
            lines.take(10).collect::<String>()
        };
    let (perf_only, prof_only) = (
        only(&by_perf, &by_prof, 1.0 / correction),
        only(&by_prof, &by_perf, correction),
    );
    assert!(
        perf_only.is_empty() && prof_only.is_empty(),
        "only perf says:\n{perf_only}only prof says:\n{prof_only}"
    );
    assert!(
        by_perf.values().sum::<u64>() > 100_000_000,
        "hardly any samples: {by_perf:?}"
    );
}

/// Normalizes the spelling of clones and unnamed functions.
fn plain_name(name: &str) -> &str {
    let name = name.strip_suffix("_[k]").unwrap_or(name);
    // Parts and clones of a function, made by the compiler.
    let clone = [".part.", ".constprop.", ".isra.", ".cold"]
        .iter()
        .find_map(|c| name.find(c));
    let name = name.get(..clone.unwrap_or(name.len())).unwrap_or(name);
    // The selector of a libc function's variants has two names.
    let name = name.strip_suffix("_ifunc").unwrap_or(name);
    // For perf, `_init` extends over the stubs of the PLT, or they have no names, only `@plt`.
    let stub = name == "_init" || name.ends_with("@plt");
    if stub || name == "[unknown]" || name.contains("+0x") {
        return "?";
    }
    name
}

#[track_caller]
fn check_program(program: Program, variant: Variant, arguments: &[&str]) {
    if !needs(&[Need::Tool("perf")]) {
        return;
    }
    let session = Session::new();
    let binary = program.build_as(variant);
    let mut command = vec![binary.to_str().unwrap()];
    command.extend(arguments);
    check(&session.record(&["-F", "1999", "-e", "cpu-clock:u"], &command));
}

#[test]
fn on_shallow_stacks() {
    check_program(Program::c(&["shares.c"]), Variant::PLAIN, &["500"]);
}

#[test]
fn on_deep_recursion() {
    check_program(Program::c(&["deep.c"]), Variant::PLAIN, &["2000", "200"]);
}

#[test]
fn on_threads_and_a_static_executable() {
    check_program(Program::c(&["threads.c"]), Variant::PLAIN, &["200"]);
    check_program(Program::c(&["threads.c"]), Variant::STATIC, &["200"]);
}

#[test]
fn on_forks_and_execs() {
    check_program(Program::c(&["forks.c"]), Variant::PLAIN, &["200"]);
    check_program(Program::c(&["execs.c"]), Variant::PLAIN, &["10", "20"]);
}

#[test]
fn on_callbacks_and_signals() {
    check_program(Program::c(&["callbacks.c"]), Variant::PLAIN, &["10"]);
    check_program(
        Program::c(&["signals.c"]),
        Variant::PLAIN,
        &["alternate", "200"],
    );
}

#[test]
fn other_readers_open_the_file() {
    if !needs(&[Need::Tool("perf")]) {
        return;
    }
    let session = Session::new();
    let binary = Program::c(&["shares.c"]).build();
    let recorded = session.record(&[], &[binary.to_str().unwrap(), "300"]);
    for (arguments, words) in [
        (
            &["report", "--stdio", "--no-children", "-g", "none"][..],
            &["burn_sixty", "shares"][..],
        ),
        (&["buildid-list"], &["shares", "libc.so.6"]),
        (
            &["report", "--header-only"],
            &[
                "captured on",
                "cmdline",
                "arch",
                "nrcpus",
                "event : name = ",
            ],
        ),
    ] {
        let mut perf = Command::new("perf");
        perf.args(arguments)
            .arg("-i")
            .arg(&recorded.file)
            .env("HOME", "/nonexistent");
        let outcome = Outcome::of(perf);
        outcome.assert_code(0);
        for word in words {
            assert!(outcome.stdout.contains(word), "no {word}: {outcome}");
        }
        assert!(
            !outcome.stderr.to_lowercase().contains("warning"),
            "{outcome}"
        );
    }
}

/// Rows `share name …` of a table, by name: the common part of `perf report` and `prof report`.
fn shares(table: &str) -> BTreeMap<String, f64> {
    let rows = table.lines().filter_map(|line| {
        let share = line.split_whitespace().next()?.trim_end_matches('%');
        share.find('.')?;
        let cells = line.split("  ").map(str::trim);
        let name = cells.filter(|cell| !cell.is_empty()).last()?;
        let share = share.parse().ok().filter(|&share| share > 0.0)?;
        Some((name.to_owned(), share))
    });
    rows.collect()
}

#[test]
fn sorted_by_the_same_keys_shares_are_the_same() {
    if !needs(&[Need::Tool("perf")]) {
        return;
    }
    let session = Session::new();
    let binary = Program::c(&["callbacks.c"]).build();
    // A single name: weights of several may be corrected by more than one factor.
    let command = [binary.to_str().unwrap(), "10"];
    let recorded = session.record(&["-F", "1999", "-e", "cpu-clock:u"], &command);
    for key in ["dso", "comm", "pid"] {
        let mut perf = Command::new("perf");
        perf.args([
            "report",
            "--stdio",
            "--no-children",
            "-g",
            "none",
            "--sort",
            key,
        ])
        .arg("-i")
        .arg(&recorded.file)
        .env("HOME", "/nonexistent");
        let perf = Outcome::of(perf);
        perf.assert_code(0);
        let prof = recorded.report(&["--stdio", "--sort", key]);
        let (theirs, ours) = (shares(&perf.stdout), shares(&prof.stdout));
        assert!(!ours.is_empty(), "{prof}");
        let share = |shares: &BTreeMap<String, f64>, share: f64| {
            shares.values().any(|other| (other - share).abs() < 0.02)
        };
        let same = ours.values().all(|&each| share(&theirs, each))
            && theirs.values().all(|&each| share(&ours, each));
        let named = key == "pid" || ours.keys().eq(theirs.keys());
        assert!(same && named, "by {key}\nperf: {theirs:?}\nprof: {ours:?}");
    }
}
