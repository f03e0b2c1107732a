//! `prof top`: on a full screen, driven through a pseudo-terminal, and in tables.

use std::path::{Path, PathBuf};

use prof_tests::{Endless, Need, Outcome, Session, needs};

/// Runs a program on a terminal of its own, 80 columns wide. The first argument has the steps, one
/// on a line: `see TEXT` waits until the screen shows it, `type KEYS` types, `signal NUMBER` sends
/// a signal, `stop NUMBER` waits until this signal has stopped the program, uses the terminal as a
/// shell does, and continues the program, whose first line must come back. Then it waits for the
/// end, checks that the terminal is as it was, and prints all that was written to it. `close`
/// closes the terminal, whose state is not checked then.
const DRIVER: &str = r#"
import codecs, fcntl, os, re, select, signal, struct, sys, termios
master, slave = os.openpty()
fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
before = termios.tcgetattr(slave)
pid = os.fork()
if pid == 0:
    os.close(master)
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for descriptor in (0, 1, 2):
        os.dup2(slave, descriptor)
    os.execvp(sys.argv[2], sys.argv[2:])
written = b""
text = codecs.getincrementaldecoder("utf-8")()
screen, row, column, rest = [[" "] * 80 for _ in range(25)], 0, 0, ""
TOKEN = re.compile(r"\x1b\[([?\d;]*)([A-Za-z])|([^\x1b])")
def read():
    """Keeps what is written, and what the screen then shows."""
    global written, screen, row, column, rest
    if not select.select([master], [], [], 60)[0]:
        sys.exit("nothing came: " + "\n".join(map("".join, screen)))
    piece = os.read(master, 65536)
    written += piece
    rest += text.decode(piece)
    while token := TOKEN.match(rest):
        rest = rest[token.end():]
        parameters, command, character = token.groups()
        if command == "H":
            row, column = [int(number) - 1 for number in (parameters or "1;1").split(";")]
        elif command == "J":
            screen = [[" "] * 80 for _ in range(25)]
        elif character and character >= " " and row < 24 and column < 80:
            screen[row][column] = character
            column += 1
for step in sys.argv[1].splitlines():
    what, _, wanted = step.partition(" ")
    if what == "see":
        while all(wanted not in "".join(line) for line in screen):
            read()
    elif what == "stop":
        os.kill(pid, int(wanted))
        while not os.waitpid(pid, os.WNOHANG | os.WUNTRACED)[0]:
            if select.select([master], [], [], 0.01)[0]:
                read()
        if int(wanted) == signal.SIGTSTP:
            assert termios.tcgetattr(slave) == before, "the terminal is as it was"
        while select.select([master], [], [], 0)[0]:
            read()
        termios.tcsetattr(slave, termios.TCSANOW, before)
        screen = [[" "] * 80 for _ in range(25)]
        os.kill(pid, signal.SIGCONT)
        while not "".join(screen[0]).strip():
            read()
        assert not termios.tcgetattr(slave)[3] & termios.ICANON, "the terminal is raw"
    elif what == "type":
        os.write(master, wanted.encode().decode("unicode_escape").encode())
    elif what == "close":
        os.close(master)
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    else:
        os.kill(pid, int(wanted))
ended = 0
while not ended:
    ended, status = os.waitpid(pid, os.WNOHANG)
    if select.select([master], [], [], 0.01)[0]:
        read()
assert termios.tcgetattr(slave) == before, "the terminal is as it was"
left = written.rfind(b"\x1b[?1049l")
assert left > written.rfind(b"\x1b[?1049h") >= 0, "the screen is as it was: %r" % written[-200:]
assert written.rfind(b"\x1b[?25h") > written.rfind(b"\x1b[?25l"), "the cursor is shown"
sys.stdout.buffer.write(written)
sys.exit(os.waitstatus_to_exitcode(status))
"#;

/// A program that is busy, and `prof top` of it, with these steps.
fn on_a_terminal(session: &Session, options: &[&str], steps: &[&str]) -> Outcome {
    let program = Endless::install(session, "endless");
    let busy = Endless::start(session.command(&program, [""; 0]));
    let driver = session.write("driver.py", DRIVER.as_bytes());
    let mut command = session.command(Path::new("python3"), [driver]);
    command.arg(steps.join("\n")).arg(prof_tests::prof());
    command.args(["top", "-e", "cpu-clock:u", "-d", "100ms"]);
    command.arg(format!("--pid={}", busy.pid()));
    command.args(options);
    command.env("TERM", "xterm").env("LANG", "C.UTF-8");
    command.env("NO_COLOR", "1");
    Outcome::of(command)
}

fn recordings(session: &Session) -> Vec<PathBuf> {
    let files = session.directory().read_dir().unwrap();
    let files = files.map(|file| file.unwrap().path());
    files
        .filter(|path| path.to_string_lossy().contains("prof.data"))
        .collect()
}

#[test]
fn a_running_program_is_watched_searched_frozen_and_written() {
    if !needs(&[Need::Tool("python3")]) {
        return;
    }
    let session = Session::new();
    let steps = [
        "see leading",
        "see 100 % whole",
        "type /helping\\r",
        "type /no_such_function\\r",
        "see nothing found",
        "type 3",
        "see descend",
        "type 4",
        "see helper",
        "type \\x20",
        "see FROZEN",
        "type w",
        "see wrote prof.data.",
        "type q",
    ];
    let outcome = on_a_terminal(&session, &[], &steps);
    outcome.assert_code(0);
    // Bold and reversed text, but neither foreground nor background.
    let colored = (30..38).chain(40..48).map(|color| format!("\x1b[{color}m"));
    let mut colored = colored.chain(["\x1b[38;".into(), "\x1b[48;".into()]);
    assert!(
        colored.all(|code| !outcome.stdout.contains(&code)),
        "{outcome:?}"
    );
    let written = recordings(&session);
    let [file] = &written[..] else {
        panic!("not one file: {written:?}");
    };
    let report = session.run(["report", "--no-inline", "-i", file.to_str().unwrap()]);
    report.assert_code(0);
    assert!(report.stdout.contains("leading"), "{report}");
    assert!(report.stdout.contains("verdict"), "{report}");
}

#[test]
fn a_recording_that_cannot_be_written_ends_nothing() {
    if !needs(&[Need::Tool("python3")]) {
        return;
    }
    let session = Session::new();
    let steps = [
        "see leading",
        "type w",
        "see No such file or directory",
        "type 2",
        "see calls",
        "type q",
    ];
    on_a_terminal(&session, &["-o", "missing/prof.data"], &steps).assert_code(0);
}

#[test]
fn the_terminal_is_whole_after_ctrl_c_and_signals() {
    if !needs(&[Need::Tool("python3")]) {
        return;
    }
    let session = Session::new();
    for end in ["type \\x03", "signal 2", "signal 15", "signal 1"] {
        on_a_terminal(&session, &[], &["see leading", end]).assert_code(0);
    }
    assert!(recordings(&session).is_empty(), "none was requested");
}

/// A shell that has stopped prof has the terminal, and gives it back.
#[test]
fn the_screen_is_whole_after_prof_was_stopped() {
    if !needs(&[Need::Tool("python3")]) {
        return;
    }
    let session = Session::new();
    const STOP: i32 = 19;
    const TERMINAL_STOP: i32 = 20;
    for signal in [STOP, TERMINAL_STOP] {
        let stop = format!("stop {signal}");
        let steps = ["see leading", &stop, "see leading", "type q"];
        on_a_terminal(&session, &[], &steps).assert_code(0);
    }
}

/// A connection breaks, or a window is closed: the drawing is lost.
#[test]
fn it_ends_with_its_terminal() {
    if needs(&[Need::Tool("python3")]) {
        let session = Session::new();
        on_a_terminal(&session, &[], &["see leading", "close"]).assert_code(0);
    }
}

#[test]
fn tables_are_printed_where_there_is_no_terminal() {
    let session = Session::new();
    let program = Endless::install(&session, "endless");
    let busy = Endless::start(session.command(&program, [""; 0]));
    let pid = format!("--pid={}", busy.pid());
    let outcome = session.run(["top", "-e", "cpu-clock:u", &pid, "--iterations", "2"]);
    outcome.assert_code(0);
    let tables: Vec<&str> = outcome.stdout.split("\n\n").collect();
    assert!(tables.len() >= 2, "{outcome}");
    assert!(tables[1].contains("leading (endless)"), "{outcome}");
    assert!(tables[1].contains(" 0 lost"), "{outcome}");
}

#[test]
fn a_command_has_its_own_status_and_its_output_is_apart() {
    let session = Session::new();
    let arguments = [
        "top",
        "-e",
        "cpu-clock:u",
        "--",
        "sh",
        "-c",
        "echo said; exit 7",
    ];
    let outcome = session.run(arguments);
    outcome.assert_code(7);
    assert!(
        outcome.stderr.contains("said") && !outcome.stdout.contains("said"),
        "{outcome}"
    );
    session
        .run(["top", "--", "/no/such/program"])
        .assert_code(127);
}

#[test]
fn a_plain_user_watches_all_their_processes() {
    if !needs(&[Need::Root, Need::Tool("setpriv"), Need::PlainSampling]) {
        return;
    }
    let session = Session::plain_user();
    let program = Endless::install(&session, "endless");
    let _busy = Endless::start(session.command(&program, [""; 0]));
    let outcome = session.run(["top", "--iterations", "2"]);
    outcome.assert_code(0);
    assert!(outcome.stderr.contains("only your processes"), "{outcome}");
    assert!(outcome.stdout.contains("leading (endless)"), "{outcome}");
    // A request for all CPUs reports the missing permission.
    let outcome = session.run(["top", "-a", "--iterations", "1"]);
    assert!(!outcome.status.success(), "{outcome}");
    assert!(outcome.stderr.contains("-a needs"), "{outcome}");
}
