//! A model of data sets that people and kills have changed: pushes, compactions and queries of any
//! layout yield the right sums, or an error or the check names what is wrong.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use prof_model::StackEnd;
use prof_report::profile::{Event, Frame, Sample, Unit};
use prof_report::{Profile, SymbolizedProfile};

use super::{check, compact};
use crate::dataset::DataSet;
use crate::destination::Destination;
use crate::error::Error;
use crate::query::{Selection, scan};
use crate::run::{Run, RunId};
use crate::store::{Store, kills};

const HOSTS: [&str; 3] = ["a", "b", "c"];
const RUNS: u8 = 4;
/// Noon of a day, in ns since 1970, and a day.
const NOON: i128 = 1_795_521_600_000_000_000;
const DAY: u64 = 86_400_000_000_000;

/// A recording of two stacks. Every second one goes on over midnight.
fn run(number: u8, host: &str) -> Run {
    let mut profile = Profile::default();
    profile.events.push(Event {
        name: "cpu-clock".into(),
        unit: Unit::Nanoseconds,
    });
    let name = profile.names.intern("work");
    for sample in 0..4 {
        let frame = Frame::Kernel(u64::from(number) * 0x100 + sample / 2);
        let frame = profile.frames.intern(frame);
        let stack = profile.stacks.intern(None, frame);
        let day = DAY * u64::from(number % 2) * (sample / 2);
        profile.samples.push(Sample {
            time: day + sample * 20_000_000_000,
            pid: 1,
            tid: 1,
            cpu: None,
            event: 0,
            period: weight(number) / 4,
            count: 1,
            name,
            stack,
            end: StackEnd::Root,
            remote_read: 0,
        });
    }
    Run {
        id: RunId([number; 16]),
        service: "shop".into(),
        host: host.into(),
        labels: BTreeMap::new(),
        own_events: 1,
        profile: SymbolizedProfile::without_names(profile),
        clock_zero: NOON,
    }
}

/// Each sum of these says which runs it is of.
fn weight(number: u8) -> u64 {
    4 << (8 * number)
}

/// A data set, and what must be in it.
struct Model {
    root: PathBuf,
    /// The least and the most that each run of a host weighs: a killed push may have stored some.
    pushed: BTreeMap<(u8, usize), (u64, u64)>,
    random: fastrand::Rng,
}

/// What a person or a disk does to a data set.
const DAMAGES: [fn(&mut Model); 6] = [
    Model::link_a_host,
    Model::link_a_loop,
    Model::link_a_file,
    Model::copy_a_file,
    Model::copy_to_another_host,
    Model::cut_a_file,
];

impl Model {
    fn store(&self) -> Store {
        let root = self.root.to_str().expect("text");
        Store::open(root).expect("opened").expect("a directory")
    }

    /// The weight of all samples.
    fn query(&self) -> Result<u64, Error> {
        let found = scan(&self.store(), &Selection::default())?;
        Ok(found.sums.values().map(|weight| weight.value).sum())
    }

    fn push(&mut self) {
        let (number, host) = (self.random.u8(0..RUNS), self.random.usize(0..HOSTS.len()));
        let is_killed = self.random.bool();
        if is_killed {
            kills::after(self.random.usize(0..5));
        }
        let pushed = DataSet::new(self.store()).push(&run(number, HOSTS[host]));
        kills::after(usize::MAX);
        let known = self.pushed.entry((number, host)).or_default();
        known.1 = weight(number);
        match pushed {
            Ok(_) => known.0 = weight(number),
            // Nobody can tell what is in a damaged file.
            Err(error) => assert!(is_killed || names_a_file(&error), "{error}"),
        }
    }

    /// Compacts, which changes no sum, wherever it is killed.
    fn compact(&mut self) {
        let before = self.query();
        if self.random.bool() {
            kills::after(self.random.usize(0..8));
        }
        let compacted = compact(&self.store());
        kills::after(usize::MAX);
        let after = self.query();
        match (before, after) {
            (Ok(before), Ok(after)) => assert_eq!(before, after, "{compacted:?}"),
            // A damaged file stays.
            (Err(_), Err(_)) => {}
            (before, after) => panic!("{before:?} became {after:?}: {compacted:?}"),
        }
    }

    /// The sum of all that was pushed is there, or an error or the check says what is wrong.
    fn verify(&self) {
        let sum = |of: fn(&(u64, u64)) -> u64| self.pushed.values().map(of).sum::<u64>();
        let (least, most) = (sum(|it| it.0), sum(|it| it.1));
        match self.query() {
            Ok(found) if (least..=most).contains(&found) => {}
            Ok(found) => {
                let health = check(&self.store()).expect("readable");
                assert!(health.is_bad(), "{found} of {least} to {most}: {health:?}");
            }
            Err(error) => assert!(names_a_file(&error), "{error}"),
        }
    }

    /// The files and folders below a folder, without following links.
    fn paths(&self, folder: &Path) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten() {
                let entry = entry.expect("an entry");
                if entry.file_type().expect("its type").is_dir() {
                    folders.push(entry.path());
                }
                found.push(entry.path());
            }
        }
        found.sort();
        found
    }

    fn file(&mut self) -> Option<PathBuf> {
        let mut files = self.paths(&self.root);
        files.retain(|path| path.symlink_metadata().is_ok_and(|it| it.is_file()));
        self.random.choice(files)
    }

    /// A folder of samples or runs of a service on a day.
    fn service(&mut self) -> Option<PathBuf> {
        let mut folders = self.paths(&self.root);
        folders.retain(|path| {
            path.ends_with("service=shop") && !path.starts_with(self.root.join("stacks"))
        });
        self.random.choice(folders)
    }

    fn link_a_host(&mut self) {
        if let Some(folder) = self.service() {
            let (from, to) = (self.random.choice(HOSTS), self.random.choice(HOSTS));
            let names = [from, to].map(|host| format!("host={}", host.expect("one")));
            if folder.join(&names[1]).is_dir() {
                // It fails if the other host has a folder.
                let _ = symlink(&names[1], folder.join(&names[0]));
            }
        }
    }

    fn link_a_loop(&mut self) {
        if let Some(folder) = self.service() {
            let _ = symlink(".", folder.join("host=loop"));
        }
    }

    fn link_a_file(&mut self) {
        let folder = self.service();
        if let (Some(file), Some(folder)) = (self.file(), folder) {
            let root = &self.root;
            let table = |path: &Path| {
                let inside = path.strip_prefix(root).expect("inside").components();
                inside.take(1).collect::<PathBuf>()
            };
            let other = folder.join("host=b");
            let is_same = table(&file) == table(&folder) && other.is_dir();
            let own = file.parent().expect("a folder").to_owned();
            let name = format!("link-{}.parquet", self.random.u8(..));
            let _ = fs::hard_link(&file, if is_same { other } else { own }.join(name));
        }
    }

    fn copy_a_file(&mut self) {
        if let Some(file) = self.file() {
            let name = format!("copy-{}.parquet", self.random.u8(..));
            copy(&file, &file.with_file_name(name));
        }
    }

    fn copy_to_another_host(&mut self) {
        if let Some(file) = self
            .file()
            .filter(|it| it.starts_with(self.root.join("samples")))
        {
            let folder = file.parent().and_then(Path::parent).expect("a service");
            let host = folder.join(format!("host={}", self.random.choice(HOSTS).expect("one")));
            if fs::create_dir_all(&host).is_ok() {
                copy(&file, &host.join("copy.parquet"));
            }
        }
    }

    /// As a copy of a data set leaves a file that was interrupted.
    fn cut_a_file(&mut self) {
        if let Some(file) = self.file() {
            let bytes = fs::read(&file).expect("read");
            // Another file: links to the old one keep it.
            fs::remove_file(&file).expect("removed");
            fs::write(&file, &bytes[..bytes.len() / 2]).expect("written");
        }
    }
}

/// A copy that is too old for a push that goes on.
fn copy(from: &Path, to: &Path) {
    if !to.exists() {
        fs::copy(from, to).expect("copied");
        let hours_ago = SystemTime::now() - Duration::from_secs(2 * 3600);
        let file = File::options().append(true).open(to);
        file.expect("opened").set_modified(hours_ago).expect("set");
    }
}

/// Whether an error says which file it is about.
fn names_a_file(error: &Error) -> bool {
    error.to_string().contains("date=")
}

fn model(seed: u64, folder: &Path) -> Model {
    Model {
        root: folder.join(seed.to_string()),
        pushed: BTreeMap::new(),
        random: fastrand::Rng::with_seed(seed),
    }
}

/// How many layouts are tried; `PROF_LAYOUTS` multiplies them.
fn seeds(usual: u64) -> u64 {
    let times = std::env::var("PROF_LAYOUTS");
    usual * times.map_or(1, |times| times.parse().expect("a number"))
}

#[test]
fn sums_are_right_or_what_is_wrong_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    for seed in 0..seeds(100) {
        let mut model = model(seed, folder.path());
        for _ in 0..12 {
            match model.random.u8(0..6) {
                0..3 => model.push(),
                3 | 4 => model.compact(),
                _ => {
                    let damage = model.random.choice(DAMAGES).expect("one");
                    damage(&mut model);
                }
            }
            model.verify();
        }
    }
}

/// Links add nothing: nothing that is said to be wrong excuses a wrong sum.
#[test]
fn links_change_no_sum_and_no_file_gets_lost() {
    let folder = tempfile::tempdir().expect("a folder");
    for seed in 0..seeds(50) {
        let mut model = model(seed, folder.path());
        for _ in 0..3 {
            model.push();
        }
        for _ in 0..6 {
            let link = [Model::link_a_host, Model::link_a_loop, Model::link_a_file];
            let link = model.random.choice(link).expect("one");
            link(&mut model);
            let before = model.query().expect("a sum");
            model.compact();
            model.verify();
            assert_eq!(model.query().expect("a sum"), before, "{seed}");
        }
    }
}
