//! Files in a directory where everybody may write: other users neither take prof's place there nor
//! find anything of its.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};

use prof_tests::{Need, Outcome, Program, Session, USER_CODE, dotnet, needs, own_tmp};

/// A command may leave programs running, which keep its environment: what that names must not be a
/// place that others can fill once prof has left it. So nothing is set.
#[test]
fn nothing_that_outlives_prof_points_to_where_others_can_write() {
    let session = Session::new();
    // Whatever runtimes are installed: theirs need not be executable to be found.
    for runtime in ["php", "node", "erl", "mono", "dotnet"] {
        session.write(runtime, b"");
    }
    let path = std::env::var("PATH").unwrap();
    let path = format!("PATH={path}:{}", session.directory().display());
    let printed = |command: &[&str]| {
        let words = [&[&*path], command].concat();
        let outcome = Outcome::of(session.command("env".as_ref(), words));
        outcome.assert_code(0);
        let mut variables: Vec<_> = outcome.stdout.lines().map(String::from).collect();
        // The shell's own: the command that it runs.
        variables.retain(|line| !line.starts_with("_="));
        variables.sort();
        variables
    };
    let prof = prof_tests::prof().to_str().unwrap();
    let before = printed(&["sh", "-c", "env"]);
    let during = printed(&[prof, "record", "--", "sh", "-c", "env"]);
    assert_eq!(during, before);
}

fn program(name: &str) -> String {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs");
    directory.join(name).to_str().unwrap().to_owned()
}

/// Commands of each runtime that writes perf maps, as far as they are installed.
fn commands() -> Vec<Vec<String>> {
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    let dotnet = dotnet().map(|path| path.display().to_string());
    [
        words(&["node", "-p", "6 * 7"]),
        words(&["escript", &program("hot.escript")]),
        words(&["mono", "--version"]),
        words(&[&dotnet.unwrap_or("dotnet".to_owned()), "--info"]),
    ]
    .to_vec()
}

/// Another user has put links to a file of root where the runtimes of root's command would write.
/// Its process ids are small, because it has a namespace of its own.
#[test]
fn links_in_place_of_perf_maps_are_not_followed() {
    if !needs(&[Need::MountNamespaces]) {
        return;
    }
    let session = Session::new();
    let precious = session.write("precious", b"precious");
    // All at once: each process that a script starts takes another process id.
    let links = session.path("links");
    fs::create_dir(&links).unwrap();
    fs::set_permissions(&links, Permissions::from_mode(0o1777)).unwrap();
    for pid in 1..2000 {
        let link = links.join(format!("perf-{pid}.map"));
        symlink(&precious, &link).unwrap();
        lchown(&link, Some(65534), Some(65534)).unwrap();
    }
    let launcher = own_tmp(&session, "1777", "cp -a \"$0\"/links/. /tmp/");
    for command in commands() {
        for behind_a_script in [false, true] {
            let mut words = vec!["record".to_owned(), "--".to_owned()];
            if behind_a_script {
                words.extend(["sh", "-c", "\"$@\"; exit $?", "sh"].map(String::from));
            }
            words.extend(command.clone());
            let outcome = Outcome::of(session.prof_under(&launcher, words));
            // 127: it is not installed.
            assert!(matches!(outcome.status.code(), Some(0 | 127)), "{outcome}");
            assert_eq!(fs::read(&precious).unwrap(), b"precious", "{outcome}");
        }
    }
}

/// A program that writes a perf map, under the name of a runtime that does so on request.
fn fake_mono(session: &Session) -> PathBuf {
    let folder = session.path("bin");
    fs::create_dir_all(&folder).unwrap();
    let fake = folder.join("mono");
    prof_tests::copy_executable(&Program::c(&["jit.c"]).build(), &fake);
    fake
}

#[test]
fn a_map_is_requested_only_where_nobody_else_can_take_its_name() {
    if !needs(&[Need::MountNamespaces]) {
        return;
    }
    let session = Session::new();
    let fake = fake_mono(&session);
    let arguments = [
        &["record"],
        USER_CODE,
        &["--", fake.to_str().unwrap(), "100"],
    ]
    .concat();
    for (mode, is_requested) in [("755", true), ("1777", false), ("1775", false)] {
        let launcher = own_tmp(&session, mode, "");
        let outcome = Outcome::of(session.prof_under(&launcher, &arguments));
        outcome.assert_code(0);
        // The fake writes one in any case.
        let is_removed = !outcome.stdout.contains(".map");
        let said = outcome.stderr.contains("set MONO_ENV_OPTIONS for them");
        assert_eq!(
            (is_removed, said),
            (is_requested, is_requested),
            "{mode} {outcome}"
        );
    }
}

/// SIGKILL leaves the map that was requested and the note about it; the next prof removes both, and
/// nothing else, once the process has ended.
#[test]
fn what_a_killed_prof_has_requested_is_removed_at_the_next_start() {
    if !needs(&[Need::MountNamespaces]) {
        return;
    }
    let session = Session::new();
    let fake = fake_mono(&session);
    let script = session.write(
        "script",
        b"prof=$1 mono=$2
        echo other > /tmp/perf-1.map
        \"$prof\" record -o killed.data -- sh -c 'exit 0' || exit 1
        \"$prof\" record -o killed.data -- \"$mono\" 100000000 &
        killed=$!
        until \"$prof\" report -i killed.data --sort module 2>/dev/null | grep -q mono; do
            kill -0 $killed || exit 2
        done
        kill -9 $killed
        wait $killed
        ls /run/prof-maps-$killed || exit 3
        map=$(ls /tmp/perf-*.map | grep -v perf-1.map)
        \"$prof\" record -o next.data -- true
        echo while it runs: /tmp/perf-*.map
        running=${map#/tmp/perf-}
        kill -9 ${running%.map}
        while kill -0 ${running%.map} 2>/dev/null; do :; done
        \"$prof\" record -o next.data -- true
        echo then: /tmp/perf-*.map
        ! ls /run/prof-maps-* 2>/dev/null
        ",
    );
    let mut launcher = own_tmp(&session, "755", "mount -t tmpfs -o mode=755 none /run");
    launcher.extend(["sh".into(), script.into()]);
    let outcome = Outcome::of(session.prof_under(&launcher, [fake]));
    outcome.assert_code(0);
    let line = |start: &str| {
        let mut lines = outcome.stdout.lines();
        lines
            .find_map(|line| line.strip_prefix(start))
            .unwrap_or_else(|| panic!("{outcome}"))
    };
    assert_eq!(line("while it runs: ").split(' ').count(), 2, "{outcome}");
    assert_eq!(line("then: "), "/tmp/perf-1.map", "{outcome}");
}
