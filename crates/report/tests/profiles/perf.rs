//! Recordings of `perf record`, made here: the loaded profile must equal the output of `perf
//! script`.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test, helpers included"
)]

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::lbr;
use prof_model::StackEnd;
use prof_perfdata::Recording;
use prof_report::format::flamegraph::{self, FlameOptions};
use prof_report::format::table::{self, TableOptions};
use prof_report::profile::{Frame, Sample};
use prof_report::view::flat::Flat;
use prof_report::{CallTree, Filter, LoadOptions, Profile, Split, SymbolizedProfile, load};
use prof_symbols::{SymbolOptions, Symbolizer};

/// A directory with a program and recordings of it.
struct Lab {
    directory: tempfile::TempDir,
}

impl Lab {
    fn new(flags: &[&str]) -> Self {
        let lab = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/busy.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-O2", "-g"]).args(flags);
        run(compiler.arg("-o").arg(lab.path("busy")).arg(source));
        lab
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn record(&self, call_graph: &str) -> PathBuf {
        let file = self.path("perf.data");
        self.record_to(call_graph, &file);
        file
    }

    fn record_to(&self, call_graph: &str, file: &Path) {
        let mut perf = Command::new("perf");
        perf.args(RECORD).args(["-e", "cpu-clock", "-F", "1999"]);
        perf.args(["--call-graph", call_graph, "-o"]).arg(file);
        run(perf.arg("--").arg(self.path("busy")));
    }
}

/// If another program samples all CPUs and requests build ids, as prof does, the kernel delivers
/// them to everybody, and perf 6.1 aborts unless it has requested them, too.
const RECORD: [&str; 3] = ["record", "-q", "--buildid-mmap"];

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Whether perf may be used here. Without it these tests check nothing, so CI must have it.
fn has_perf() -> bool {
    let mut probe = Command::new("perf");
    probe
        .args(RECORD)
        .args(["-e", "cpu-clock", "-o", "/dev/null", "true"]);
    let works = probe.output().is_ok_and(|output| output.status.success());
    if !works {
        assert!(
            std::env::var_os("CI").is_none(),
            "perf record does not work"
        );
        eprintln!("SKIPPED: perf record does not work here; nothing was compared with perf");
    }
    works
}

/// A frame as perf script prints it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PerfFrame {
    address: u64,
    name: String,
    module: String,
}

/// Time in ns to frames, innermost first, of every sample.
fn perf_script(file: &Path) -> HashMap<u64, Vec<PerfFrame>> {
    let mut perf = Command::new("perf");
    perf.args([
        "script",
        "--ns",
        "--no-inline",
        "-F",
        "time,ip,sym,dso",
        "-i",
    ]);
    let text = run(perf.arg(file));
    let paragraphs = text.split("\n\n").filter(|text| !text.trim().is_empty());
    paragraphs.map(perf_sample).collect()
}

fn perf_sample(text: &str) -> (u64, Vec<PerfFrame>) {
    let mut lines = text.trim_start_matches('\n').lines();
    let time = lines.next().unwrap().trim().trim_end_matches(':');
    let frame = |line: &str| {
        let (address, rest) = line.trim().split_once(' ').unwrap();
        let (name, module) = rest.rsplit_once(" (").unwrap();
        PerfFrame {
            address: u64::from_str_radix(address, 16).unwrap(),
            name: name.split('@').next().unwrap().to_owned(),
            module: module.trim_end_matches(')').to_owned(),
        }
    };
    (
        time.replace('.', "").parse().unwrap(),
        lines.map(frame).collect(),
    )
}

/// Our frames as perf would print them; `callers` is the number that perf adds to the lookup
/// addresses of callers.
fn our_frames(symbolized: &SymbolizedProfile, sample: &Sample, callers: u64) -> Vec<PerfFrame> {
    let profile = symbolized.profile();
    let mut frames = Vec::new();
    let mut previous_is_kernel = None;
    for id in profile.stacks.frames(sample.stack) {
        let name = |id| {
            let physical = symbolized.locations(id).last().unwrap();
            symbolized[physical.function].name.to_string()
        };
        let (address, module, kernel) = match profile.frames[id] {
            Frame::Module { module, offset } => {
                let path = &profile.modules[module].path;
                (offset.0, path.display().to_string(), false)
            }
            Frame::Kernel(address) => (address, "[kernel.kallsyms]".to_owned(), true),
            Frame::Jit { address, .. } | Frame::Unknown(address) => {
                (address, "[unknown]".to_owned(), false)
            }
            _ => continue,
        };
        let is_caller = previous_is_kernel == Some(kernel);
        let added = match (is_caller, kernel) {
            (false, _) => 0,
            // The kernel gives return addresses.
            (true, true) => 1,
            (true, false) => callers,
        };
        previous_is_kernel = Some(kernel);
        let name = name(id);
        frames.push(PerfFrame {
            address: address + added,
            name,
            module,
        });
    }
    frames
}

fn loaded(file: &Path) -> SymbolizedProfile {
    let recording = Recording::open(file).unwrap();
    let profile: Profile = load(recording, &LoadOptions::default()).unwrap();
    SymbolizedProfile::new(profile, &Symbolizer::new(SymbolOptions::default()))
}

/// Compares all samples; returns how many are equal, and how many there are.
fn compare(file: &Path, callers: u64) -> (usize, usize) {
    let symbolized = loaded(file);
    let mut theirs = perf_script(file);
    let samples = &symbolized.profile().samples;
    assert_eq!(samples.len(), theirs.len(), "samples");
    assert!(samples.len() > 100, "too few samples");
    let mut equal = 0;
    for sample in samples.iter() {
        let mut theirs = theirs.remove(&sample.time).unwrap();
        theirs.retain(|frame| frame.address != 0);
        let ours = our_frames(&symbolized, &sample, callers);
        let same = ours.len() == theirs.len()
            && ours
                .iter()
                .zip(&theirs)
                .all(|(ours, theirs)| same(ours, theirs));
        if same {
            equal += 1;
        } else {
            eprintln!("ours:   {ours:x?}\ntheirs: {theirs:x?}\n");
        }
    }
    (equal, samples.len())
}

/// Same place and, in the program itself, same name. Libraries have several names for one address,
/// of which each tool picks another. Stubs of the procedure linkage table are in no symbol; perf
/// 6.1 shows them as the symbol before.
fn same(ours: &PerfFrame, theirs: &PerfFrame) -> bool {
    if theirs.module == "[unknown]" {
        return true;
    }
    let is_stub = theirs.name == "_init" || ours.name.ends_with("@plt");
    let names_agree = !ours.module.ends_with("/busy") || ours.name == theirs.name || is_stub;
    ours.address == theirs.address && ours.module == theirs.module && names_agree
}

/// The table and the picture of a recording, named by this many threads.
fn views(file: &Path, threads: usize) -> (String, String) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    let symbolized = pool.build().unwrap().install(|| loaded(file));
    let tree = CallTree::new(&symbolized, &Filter::default(), Split::Name).unwrap();
    let (mut text, mut svg) = (Vec::new(), Vec::new());
    table::write(
        &tree,
        &Flat::new(&tree),
        &TableOptions::default(),
        &mut text,
    )
    .unwrap();
    flamegraph::write(&tree, &FlameOptions::default(), &mut svg).unwrap();
    (
        String::from_utf8(text).unwrap(),
        String::from_utf8(svg).unwrap(),
    )
}

#[test]
fn one_thread_and_many_give_the_same_views() {
    if !has_perf() {
        return;
    }
    let lab = Lab::new(&[]);
    let file = lab.record("dwarf");
    let (text, svg) = views(&file, 1);
    assert!(text.contains("inlined"), "{text}");
    assert!(svg.ends_with("</svg>"));
    assert_eq!((text, svg), views(&file, 4));
}

#[test]
fn the_rest_of_a_truncated_recording_is_loaded() {
    if !has_perf() {
        return;
    }
    let lab = Lab::new(&["-fno-omit-frame-pointer"]);
    let file = lab.record("fp");
    let whole = loaded(&file).profile().samples.len();
    let length = std::fs::metadata(&file).unwrap().len();
    let cut = std::fs::OpenOptions::new().write(true).open(&file).unwrap();
    cut.set_len(length * 6 / 10).unwrap();
    let symbolized = loaded(&file);
    let left = symbolized.profile().samples.len();
    assert!(whole / 4 < left && left < whole, "{left} of {whole}");
    assert!(symbolized.quality().losses.truncated_file);
}

#[test]
fn frame_pointer_chains_are_those_of_perf_script() {
    if !has_perf() {
        return;
    }
    let lab = Lab::new(&["-fno-omit-frame-pointer"]);
    let file = lab.record("fp");
    let (equal, all) = compare(&file, 1);
    assert_eq!(equal, all);
    // The names show which chains end at the root: the sums and the samples say the same.
    let symbolized = loaded(&file);
    let samples = symbolized.profile().samples.iter();
    let whole = samples.filter(|sample| sample.end.is_whole()).count() as u64;
    assert!(whole > 0);
    assert_eq!(
        symbolized.quality().stacks.get(&StackEnd::Root),
        Some(&whole)
    );
}

#[test]
fn unwound_dumps_are_those_of_perf_script() {
    if !has_perf() {
        return;
    }
    let lab = Lab::new(&[]);
    let (equal, all) = compare(&lab.record("dwarf"), 0);
    assert!(
        equal * 100 >= all * 97,
        "{equal} of {all} samples are equal"
    );
}

#[test]
fn branch_stacks_of_open_calls_are_those_of_perf_script() {
    if !has_perf() {
        return;
    }
    let lab = Lab::new(&["-fno-omit-frame-pointer"]);
    let recorded = std::fs::read(lab.record("fp")).unwrap();
    let file = lab.path("lbr.data");
    std::fs::write(&file, lbr::from_frame_pointers(&recorded)).unwrap();
    let (equal, all) = compare(&file, 0);
    assert_eq!(equal, all);
    let stacks = |file: &Path| {
        let symbolized = loaded(file);
        let samples = symbolized.profile().samples.iter();
        let names = samples.map(|sample| {
            let frames = our_frames(&symbolized, &sample, 0).into_iter();
            frames.map(|frame| frame.name).collect::<Vec<_>>()
        });
        names.collect::<Vec<_>>()
    };
    assert_eq!(stacks(&file), stacks(&lab.path("perf.data")));
}

/// The branches that `perf record -b` adds to each sample do not change its stack.
#[test]
fn branch_stacks_of_any_branches_leave_the_call_chain() {
    if !has_perf() {
        return;
    }
    let lab = Lab::new(&["-fno-omit-frame-pointer"]);
    let recorded = std::fs::read(lab.record("fp")).unwrap();
    let file = lab.path("branches.data");
    std::fs::write(&file, lbr::with_branches(&recorded)).unwrap();
    let mut perf = Command::new("perf");
    let branches = run(perf.args(["script", "-F", "brstack", "-i"]).arg(&file));
    assert!(branches.contains("0x"), "perf finds them: {branches}");
    let (equal, all) = compare(&file, 1);
    assert_eq!(equal, all);
}

/// Samples and sum of the periods of each event, as perf has them.
fn perf_sums(file: &Path) -> HashMap<String, (usize, u64)> {
    let mut perf = Command::new("perf");
    let text = run(perf.args(["script", "-F", "event,period", "-i"]).arg(file));
    let mut sums: HashMap<String, (usize, u64)> = HashMap::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let period: u64 = words.next().unwrap().parse().unwrap();
        let event = words.next().unwrap().trim_end_matches(':');
        let sum = sums.entry(event.to_owned()).or_default();
        *sum = (sum.0 + 1, sum.1 + period);
    }
    sums
}

/// The sums of these events are those of perf, in plain and in compressed recordings.
fn check_sums(events: &str) {
    if !has_perf() {
        return;
    }
    let lab = Lab::new(&[]);
    let file = lab.path("perf.data");
    for (more, compressed) in [(&[][..], ""), (&["-g", "-z"], "compressed, ")] {
        let mut perf = Command::new("perf");
        perf.args(RECORD)
            .args(["-F", "1999", "-e", events])
            .args(more)
            .arg("-o")
            .arg(&file);
        run(perf.arg("--").arg(lab.path("busy")));
        let theirs = perf_sums(&file);
        let symbolized = loaded(&file);
        let mut ours = HashMap::new();
        for event in &symbolized.profile().events {
            let filter = Filter {
                event: Some(event.name.clone()),
                ..Filter::default()
            };
            if let Ok(tree) = CallTree::new(&symbolized, &filter, Split::Nothing) {
                let total = tree.total();
                ours.insert(event.name.clone(), (total.samples as usize, total.value));
            }
        }
        assert_eq!(ours, theirs, "{compressed}{events}");
        assert!(ours.len() > 1, "{ours:?}");
    }
}

#[test]
fn groups_sum_up_as_with_perf() {
    check_sums("{cpu-clock,page-faults,task-clock}:S");
}

#[test]
fn groups_beside_other_events_sum_up_as_with_perf() {
    check_sums("{cpu-clock,page-faults},task-clock");
}

#[test]
fn several_events_sum_up_as_with_perf() {
    check_sums("cpu-clock,page-faults");
}
