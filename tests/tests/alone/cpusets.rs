//! With cpusets, which allow only some CPUs: nothing is refused and nothing lost.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use prof_tests::{Endless, Need, Outcome, Program, Session, cpusets, needs};

const NEEDS: &[Need] = &[Need::Root, Need::Cpusets, Need::Tool("perf")];
const THREADS: Program = Program::c(&["threads.c"]);
const OPTIONS: [&str; 5] = ["record", "-e", "cpu-clock", "-F", "499"];

/// A cgroup whose members may run on the last CPU only.
struct Cpuset {
    folder: PathBuf,
    cpu: String,
}

impl Cpuset {
    fn new(name: &str) -> Self {
        let parent = cpusets().expect("a cpuset controller");
        let folder = parent.join(format!("prof-test-{name}-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let cpu = online().pop_last().expect("a CPU").to_string();
        let set = Self { folder, cpu };
        // In version 1, a cpuset needs both settings before it can have members.
        let memory = parent.join("cpuset.mems");
        if let Ok(nodes) = std::fs::read_to_string(memory) {
            std::fs::write(set.folder.join("cpuset.mems"), nodes.trim()).unwrap();
        }
        std::fs::write(set.folder.join("cpuset.cpus"), &set.cpu).unwrap();
        set
    }

    /// A shell that joins, then becomes `$0` with its arguments.
    fn joining(&self) -> String {
        let members = self.folder.join("cgroup.procs");
        format!("echo $$ > {} && exec \"$0\" \"$@\"", members.display())
    }
}

impl Drop for Cpuset {
    /// Its members have ended.
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.folder);
    }
}

/// The CPUs that are online: `0-3,6`.
fn online() -> BTreeSet<u32> {
    let list = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
    let ranges = list.trim().split(',').map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        first.parse::<u32>().unwrap()..=last.parse().unwrap()
    });
    ranges.flatten().collect()
}

/// The CPUs that samples come from, by perf.
fn sampled_cpus(file: &Path) -> BTreeSet<u32> {
    let mut perf = Command::new("perf");
    perf.args(["script", "-G", "-F", "cpu", "-i"]).arg(file);
    let outcome = Outcome::of(perf);
    outcome.assert_code(0);
    let numbers = outcome
        .stdout
        .lines()
        .map(|line| line.trim().trim_matches(['[', ']']));
    numbers.map(|number| number.parse().unwrap()).collect()
}

#[track_caller]
fn assert_all_there(outcome: &Outcome) {
    outcome.assert_code(0).assert_says(&["no sample lost"]);
}

/// A program that joins a cpuset while it is recorded, and one that is recorded from within.
#[test]
fn a_program_and_its_recorder_on_one_cpu() {
    if !needs(NEEDS) {
        return;
    }
    let session = Session::alone();
    let set = Cpuset::new("program");
    let (joining, prof, program) = (set.joining(), prof_tests::prof(), THREADS.build());
    let join = ["sh", "-c", &joining];
    let prof = [&[prof.to_str().unwrap()][..], &OPTIONS, &["--"]].concat();
    let program = [program.to_str().unwrap(), "200"];
    for command in [
        [&prof[..], &join, &program].concat(),
        [&join[..], &prof, &program].concat(),
    ] {
        let outcome = Outcome::of(session.command(Path::new(command[0]), &command[1..]));
        assert_all_there(&outcome);
        let cpus = sampled_cpus(&session.path("prof.data"));
        assert!(cpus.contains(&set.cpu.parse().unwrap()), "{cpus:?}");
        let covered = covered(&session);
        assert!((0.95..1.05).contains(&covered), "{covered}: {outcome}");
    }
}

/// The coverage: the weight of the samples divided by the kernel's count.
fn covered(session: &Session) -> f64 {
    let outcome = session.run(["report", "--json", "-"]);
    let json: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
    let sum = |field: &str| -> f64 {
        let names = json["quality"]["coverage"].as_array().unwrap();
        names.iter().map(|one| one[field].as_f64().unwrap()).sum()
    };
    sum("sampled") / sum("used")
}

/// All CPUs are sampled, whichever prof itself may run on.
#[test]
fn all_cpus_from_one_of_them() {
    if !needs(NEEDS) {
        return;
    }
    let session = Session::alone();
    let set = Cpuset::new("all");
    let busy: Vec<Endless> = (online().iter())
        .map(|cpu| {
            let program = Endless::install(&session, &format!("busy-{cpu}"));
            Endless::start(session.command(&program, ["1"]))
        })
        .collect();
    let (joining, prof, program) = (set.joining(), prof_tests::prof(), THREADS.build());
    let mut shell = session.command(Path::new("sh"), ["-c", &joining]);
    shell.arg(prof).args(OPTIONS).args(["-a", "--"]);
    shell.arg(program).arg("200");
    let outcome = Outcome::of(shell);
    drop(busy);
    assert_all_there(&outcome);
    assert_eq!(sampled_cpus(&session.path("prof.data")), online());
}
