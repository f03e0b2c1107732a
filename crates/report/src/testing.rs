//! Profiles for tests, and expected outputs in files.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use prof_model::{FileOffset, Module, StackEnd, UnwindFailure};
use prof_symbols::SymbolFrame;

use crate::filter::Filter;
use crate::profile::{Answer, CodePlace, Difference, StackCheck};
use crate::profile::{
    Event, Frame, FrameId, FunctionKind, NamedFrame, NamedId, Profile, Sample, StackId, Unit,
};
use crate::symbolize::SymbolizedProfile;

/// Builds a profile sample by sample.
#[derive(Default)]
pub(crate) struct TestProfile {
    pub(crate) profile: Profile,
    /// By frame number: names, innermost first.
    names: Vec<Vec<String>>,
    /// How many of the outermost frames of the lines to come were read from live memory.
    pub(crate) remote_read: u16,
}

impl TestProfile {
    /// A profile of one event, `cpu-clock`.
    pub(crate) fn new() -> Self {
        let mut test = Self::default();
        test.profile.events.push(Event {
            name: "cpu-clock".into(),
            unit: Unit::Nanoseconds,
        });
        test.profile.header.command_line =
            ["prof", "record", "--", "demo"].map(String::from).into();
        test
    }

    /// Each line is `thread stack milliseconds`: thread name, process and thread as `comm/pid/tid`;
    /// stack from the outermost frame inwards, separated by `;`.
    ///
    /// A frame is `function`, `function+inlined+innermost`, `library!function`, `k:function`,
    /// `jit:function`, `cut` for a truncated stack, or `left:123` for frames left out. A function
    /// `?` has no name.
    pub(crate) fn of(lines: &[&str]) -> SymbolizedProfile {
        let mut test = Self::new();
        for line in lines {
            test.line(line);
        }
        test.finish()
    }

    pub(crate) fn line(&mut self, line: &str) {
        let (thread, rest) = line.split_once(' ').unwrap();
        let (stack, weight) = rest.rsplit_once(' ').unwrap();
        let mut thread = thread.split('/');
        let comm = thread.next().unwrap();
        let pid = thread.next().map_or(1, |pid| pid.parse().unwrap());
        let tid = thread.next().map_or(pid, |tid| tid.parse().unwrap());
        let mut id = None;
        for frame in stack.split(';') {
            let frame = self.frame(frame);
            id = Some(self.profile.stacks.intern(id, frame));
        }
        self.push(comm, (pid, tid), id.unwrap(), weight.parse().unwrap());
    }

    fn push(&mut self, comm: &str, (pid, tid): (i32, i32), stack: StackId, milliseconds: u64) {
        let name = self.profile.names.intern(comm);
        let end = match self.profile.stacks.frames(stack).last() {
            Some(frame) => match self.profile.frames[frame] {
                Frame::Cut(end) => end,
                _ => StackEnd::Root,
            },
            None => StackEnd::NoUserState,
        };
        self.profile.quality.samples += 1;
        self.profile.quality.count_stack(end);
        self.profile.samples.push(Sample {
            time: self.profile.samples.len() as u64 * 1_000_000,
            pid,
            tid,
            cpu: Some((tid % 2) as u32),
            event: 0,
            period: milliseconds * 1_000_000,
            count: 1,
            name,
            stack,
            end,
            remote_read: self.remote_read,
        });
    }

    fn frame(&mut self, text: &str) -> FrameId {
        let address = 0x1000 + text.bytes().map(u64::from).sum::<u64>();
        let (frame, names) = match text.split_once(':') {
            Some(("k", name)) => (Frame::Kernel(address), name),
            Some(("jit", name)) => (Frame::Jit { pid: 1, address }, name),
            Some(("no", language)) => (Frame::Named(self.missing(language)), "?"),
            Some(("left", count)) => (Frame::LeftOut(count.parse().unwrap()), "?"),
            _ if text == "cut" => (Frame::Cut(StackEnd::NoUnwindInfo), "?"),
            _ if text == "open" => (Frame::Cut(StackEnd::FramePointersEnded), "?"),
            _ => {
                let (library, names) = text.split_once('!').unwrap_or(("demo", text));
                let module = Module::from_path(format!("/bin/{library}"));
                let module = self.profile.modules.intern(module);
                let offset = FileOffset(address);
                (Frame::Module { module, offset }, names)
            }
        };
        let id = self.profile.frames.intern(frame);
        self.names.resize(self.profile.frames.len(), Vec::new());
        if names != "?" {
            self.names[id.index()] = names.split('+').rev().map(String::from).collect();
        }
        id
    }

    /// The mark where the functions of an interpreter are missing.
    fn missing(&mut self, language: &str) -> NamedId {
        let function = format!("[no {language} frames: not read]");
        self.profile.named.intern(NamedFrame {
            module: language.into(),
            kind: FunctionKind::Missing,
            functions: vec![SymbolFrame {
                function: function.into(),
                file: None,
                line: None,
                inlined: false,
            }],
        })
    }

    /// A thread that lives from one millisecond to another.
    pub(crate) fn life(&mut self, pid: i32, tid: i32, milliseconds: std::ops::Range<u64>) {
        let thread_lifetimes = &mut self.profile.thread_lifetimes;
        thread_lifetimes.begin(pid, tid, milliseconds.start * 1_000_000);
        thread_lifetimes.end(pid, tid, milliseconds.end * 1_000_000);
    }

    pub(crate) fn finish(self) -> SymbolizedProfile {
        self.finish_with(Some("/src/demo.c"))
    }

    /// By frame number: the names of the frame's functions, innermost first.
    pub(crate) fn names(&self) -> Vec<Vec<String>> {
        self.names.clone()
    }

    /// With this source file, or as if there were no debug info.
    pub(crate) fn finish_with(self, file: Option<&str>) -> SymbolizedProfile {
        let names = self.names.iter();
        let answers: Vec<Vec<SymbolFrame>> = names.map(|names| symbols(names, file)).collect();
        SymbolizedProfile::with_names(self.profile, |id| &answers[id.index()])
    }
}

fn symbols(names: &[String], file: Option<&str>) -> Vec<SymbolFrame> {
    let symbol = |(index, name): (usize, &String)| SymbolFrame {
        function: Arc::from(name.as_str()),
        file: file.map(Arc::from),
        line: file.map(|_| 10 + index as u32),
        inlined: index + 1 < names.len(),
    };
    names.iter().enumerate().map(symbol).collect()
}

/// The profile that the golden outputs are of: inlined functions, recursion, a library, the
/// kernel, run-time code, threads, and all that can be missing.
pub(crate) fn demo() -> SymbolizedProfile {
    TestProfile::of(&[
        "demo _start;main;compute 500",
        "demo _start;main;compute+ns::inner+ns::innermost 250",
        "demo _start;main;fib;fib;fib 100",
        "demo _start;main;libc.so.6!write;k:entry_SYSCALL_64;k:vfs_write 30",
        "worker/1/2 libc.so.6!clone3;worker_main;jit:Interpreter 20",
        "worker/1/3 libc.so.6!clone3;worker_main;jit:? 10",
        "child/7 cut;libz.so.1!? 40",
        "child/7 _start;main;left:11900;fib 15",
        "kworker/9 k:ret_from_fork;k:kthread 35",
    ])
}

/// A profile with unwind failures.
pub(crate) fn demo_with_failures() -> SymbolizedProfile {
    let mut test = TestProfile::new();
    for line in [
        "a cut;libz.so.1!deflate 3",
        "a cut;libz.so.1!? 2",
        "a _start;main 5",
    ] {
        test.line(line);
    }
    let failure = |module: &str, offset, count| UnwindFailure {
        end: StackEnd::NoUnwindInfo,
        module: module.into(),
        offset,
        count,
    };
    let offset = match test.profile.frames.iter().nth(1) {
        Some((_, Frame::Module { offset, .. })) => offset.0,
        other => panic!("{other:?}"),
    };
    test.profile.quality.failures = vec![
        failure("/bin/libz.so.1", offset, 1200),
        failure("", 0x7f00_1234, 10),
        failure("/bin/libz.so.1", 0x99, 1),
    ];
    test.finish()
}

/// A profile whose stacks two unwinders do not agree on.
pub(crate) fn demo_with_stack_check() -> SymbolizedProfile {
    let mut test = TestProfile::new();
    test.line("a _start;libz.so.1!deflate 3");
    let offset = match test.profile.frames.iter().nth(1) {
        Some((_, Frame::Module { offset, .. })) => offset.0,
        other => panic!("{other:?}"),
    };
    let place = |module: &str, offset| CodePlace {
        module: module.into(),
        offset,
    };
    let difference = |place, prof, framehop, stacks| Difference {
        place,
        prof,
        framehop,
        stacks,
    };
    let deflate = place("/bin/libz.so.1", offset);
    test.profile.stack_check = Some(StackCheck {
        stacks: 1300,
        same: 80,
        same_frames: 10,
        whole_by_prof: 1290,
        whole_by_framehop: 1100,
        differences: vec![
            difference(
                place("/bin/libz.so.1", 0x99),
                Answer::Caller(deflate.clone()),
                Answer::Caller(place("", 3)),
                1200,
            ),
            difference(
                deflate,
                Answer::End(StackEnd::Root),
                Answer::End(StackEnd::TruncatedDump),
                10,
            ),
            difference(
                place("", 0x7f00_1234),
                Answer::End(StackEnd::NotCode),
                Answer::Caller(place("", 5)),
                10,
            ),
        ],
    });
    test.finish()
}

/// Two recordings of a program: one of its functions is gone in the second, and another is new.
pub(crate) fn two_recordings() -> (SymbolizedProfile, SymbolizedProfile) {
    let mut before = vec!["t main;work;slow 10"; 50];
    before.extend(["t main;work 10"; 40]);
    before.extend(["t main;gone 10"; 10]);
    let mut after = vec!["t main;work;slow 20"; 20];
    after.extend(["t main;work 20"; 42]);
    after.extend(["t main;ns::new|<T> 20"; 38]);
    (TestProfile::of(&before), TestProfile::of(&after))
}

/// No conditions.
pub(crate) fn everything() -> Filter {
    Filter::default()
}

/// Compares `actual` with the file of this name in tests/golden; `PROF_BLESS=1` writes it instead.
pub(crate) fn check_golden(name: &str, actual: &[u8]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    if std::env::var_os("PROF_BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, actual).unwrap();
    }
    let expected = fs::read(&path).unwrap_or_default();
    assert!(
        expected == actual,
        "{} differs; PROF_BLESS=1 makes this the expected output:\n{}",
        path.display(),
        String::from_utf8_lossy(actual)
    );
}
