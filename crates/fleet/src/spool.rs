//! The folder in which recordings wait to be pushed.
//!
//! ```text
//!   recording                 being written by a collector
//!   recording.TIMESTAMP       complete: waits
//!   recording.unfinished.N    the file of a killed collector: waits as well
//!   recording.RUN             a recording that `prof push` could not push
//!   origin.RUN                whose it is: there before the recording is
//!   origin                    whose the recordings of a collector are
//!   origin.TIMESTAMP          whose a recording of an earlier collector is, if not of that one
//!   new                       a recording or an origin while it is written
//! ```

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use prof_model::counted;
use rustix::fs::{FlockOperation, flock};

use crate::destination::{Failures, Pushed};
use crate::error::Error;
use crate::run::{Origin, RunId};

/// The folder of one collector, or of one destination of `prof push`.
#[derive(Debug)]
pub(crate) struct Spool {
    folder: PathBuf,
    /// The most bytes of waiting recordings.
    most_bytes: u64,
    /// Receives messages for people.
    report: fn(&str),
    /// Held, so that no other process uses the folder.
    _lock: File,
}

/// A recording that waits.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    written: SystemTime,
    path: PathBuf,
    bytes: u64,
}

impl Spool {
    const RECORDING: &str = "recording";
    const ORIGIN: &str = "origin";
    const NEW: &str = "new";

    /// Takes the folder, which is created if need be.
    ///
    /// # Errors
    /// It cannot be created, or another collector has it.
    pub(crate) fn open(folder: &Path, most_bytes: u64, report: fn(&str)) -> Result<Self, Error> {
        let how = FlockOperation::NonBlockingLockExclusive;
        Self::locked(folder, most_bytes, report, how)
    }

    /// Locks the folder unless another process has it.
    ///
    /// # Errors
    /// It cannot be created.
    pub(crate) fn open_when_free(
        folder: &Path,
        most_bytes: u64,
        report: fn(&str),
    ) -> Result<Self, Error> {
        let how = FlockOperation::LockExclusive;
        Self::locked(folder, most_bytes, report, how)
    }

    fn locked(
        folder: &Path,
        most_bytes: u64,
        report: fn(&str),
        how: FlockOperation,
    ) -> Result<Self, Error> {
        let failed = |source| unusable(folder, source);
        fs::create_dir_all(folder).map_err(failed)?;
        let lock = File::open(folder).map_err(failed)?;
        flock(&lock, how).map_err(|errno| match errno {
            rustix::io::Errno::WOULDBLOCK => Error::SpoolInUse {
                folder: folder.to_owned(),
            },
            errno => failed(errno.into()),
        })?;
        Ok(Self {
            folder: folder.to_owned(),
            most_bytes,
            report,
            _lock: lock,
        })
    }

    /// The recorder's output.
    pub(crate) fn recording(&self) -> PathBuf {
        self.folder.join(Self::RECORDING)
    }

    /// Adds an incomplete recording of an earlier recorder to the waiting ones.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub(crate) fn adopt_unfinished(&self) -> io::Result<()> {
        let free = (0..).map(|number| format!("{}.unfinished.{number}", Self::RECORDING));
        let mut free = free.map(|name| self.folder.join(name));
        match (free.find(|path| !path.exists()), self.recording()) {
            (Some(name), recording) if recording.exists() => fs::rename(recording, name),
            _ => Ok(()),
        }
    }

    /// Notes whose recordings a collector writes from now on. Those of an earlier one keep theirs.
    ///
    /// # Errors
    /// The folder cannot be read or written.
    pub(crate) fn begin(&self, origin: &Origin) -> Result<(), Error> {
        let begin = || -> io::Result<()> {
            let (path, new) = (self.folder.join(Self::ORIGIN), serde_json::to_vec(origin)?);
            let earlier = match fs::read(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                read => Some(read?),
            };
            // Nothing is written for the same collector, which may start while the disk is full.
            if earlier.as_ref() == Some(&new) {
                return Ok(());
            }
            self.adopt_unfinished()?;
            if let Some(earlier) = earlier {
                let waiting = self.find()?.into_iter();
                let origins = waiting.map(|waiting| origin_of(&waiting.path));
                for unknown in origins.filter(|origin| !origin.exists()) {
                    self.replace(&unknown, &*earlier)?;
                }
            }
            self.replace(&path, &*new)
        };
        begin().map_err(|source| self.unusable(source))
    }

    /// Writes a file, which appears completely or not at all. Only its owner can read it, as the
    /// recorder's files.
    fn replace(&self, path: &Path, mut from: impl io::Read) -> io::Result<()> {
        let new = self.folder.join(Self::NEW);
        let mut options = File::options();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(&new)?;
        io::copy(&mut from, &mut file)?;
        file.sync_all()?;
        fs::rename(new, path)
    }

    /// Adds a copy of a recording to the waiting ones.
    ///
    /// # Errors
    /// It is larger than the spool, or the folder cannot be written.
    pub(crate) fn add(&self, recording: &Path, run: RunId, origin: &Origin) -> Result<(), Error> {
        let path = self.folder.join(format!("{}.{run}", Self::RECORDING));
        let copy = || -> io::Result<bool> {
            if fs::metadata(recording)?.len() > self.most_bytes {
                return Ok(false);
            }
            let origin = serde_json::to_vec(origin)?;
            self.replace(&origin_of(&path), &*origin)?;
            self.replace(&path, File::open(recording)?)?;
            Ok(true)
        };
        let copied = copy();
        if copied.is_err() {
            // The disk may be full. The first error is the one to report.
            let _ = fs::remove_file(self.folder.join(Self::NEW));
            if !path.exists() {
                let _ = fs::remove_file(origin_of(&path));
            }
        }
        match copied.map_err(|source| self.unusable(source))? {
            true => self.drop_oldest(),
            false => Err(Error::SpoolTooSmall {
                path: recording.to_owned(),
            }),
        }
    }

    /// Whose recording it is that waits.
    ///
    /// # Errors
    /// It does not say so.
    pub(crate) fn origin(&self, recording: &Path) -> Result<Origin, Error> {
        let mut path = origin_of(recording);
        if !path.exists() {
            path = self.folder.join(Self::ORIGIN);
        }
        let origin = fs::read(&path).map_err(|source| self.unusable(source))?;
        serde_json::from_slice(&origin).map_err(|source| Error::Origin { path, source })
    }

    /// Pushes all that waits, the oldest first, unless the receiver is down. What fails keeps its
    /// place.
    ///
    /// # Errors
    /// The last one of `push`, unless the recording is to blame: such a one is dropped, and said.
    /// Or the folder cannot be read or written.
    pub(crate) fn push_all(
        &self,
        failures: &mut Failures,
        mut push: impl FnMut(&Path) -> Result<Pushed, Error>,
    ) -> Result<(), Error> {
        let found = self.find().map_err(|source| self.unusable(source))?;
        let mut found = VecDeque::from(found);
        let mut done = Ok(());
        while !failures.is_down() {
            // After a failure the newest are next: old ones that always fail do not hold them up.
            let next = match done {
                Ok(()) => found.pop_front(),
                Err(_) => found.pop_back(),
            };
            let Some(Waiting { path, .. }) = next else {
                break;
            };
            let pushed = push(&path);
            failures.count(&pushed);
            match pushed {
                Ok(_) => {}
                Err(error) if error.is_of_recording() => {
                    (self.report)(&format!("dropped a recording: {error}"));
                }
                Err(error) => {
                    done = Err(error);
                    continue;
                }
            }
            remove(&path).map_err(|source| self.unusable(source))?;
        }
        done
    }

    /// Removes the oldest recordings until the others fit, and reports that.
    ///
    /// # Errors
    /// The folder cannot be read or written.
    pub(crate) fn drop_oldest(&self) -> Result<(), Error> {
        let unusable = |source| self.unusable(source);
        let found = self.find().map_err(unusable)?;
        let mut bytes: u64 = found.iter().map(|waiting| waiting.bytes).sum();
        let mut dropped = 0;
        for waiting in found {
            if bytes <= self.most_bytes {
                break;
            }
            remove(&waiting.path).map_err(unusable)?;
            bytes -= waiting.bytes;
            dropped += 1;
        }
        if dropped > 0 {
            let dropped = counted(dropped, "recording");
            (self.report)(&format!(
                "the spool is full: dropped {dropped}, the oldest (--spool-size)"
            ));
        }
        Ok(())
    }

    /// How many recordings wait.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub(crate) fn count(&self) -> io::Result<u64> {
        Ok(self.find()?.len() as u64)
    }

    /// The error that this is.
    pub(crate) fn unusable(&self, source: io::Error) -> Error {
        unusable(&self.folder, source)
    }

    fn find(&self) -> io::Result<Vec<Waiting>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let suffix = name.to_string_lossy();
            let suffix = suffix.strip_prefix(Self::RECORDING);
            if !suffix.is_some_and(|suffix| suffix.starts_with('.')) {
                continue;
            }
            let metadata = entry.metadata()?;
            found.push(Waiting {
                written: metadata.modified()?,
                path: entry.path(),
                bytes: metadata.len(),
            });
        }
        found.sort();
        Ok(found)
    }
}

/// The file with a recording's service, host and labels.
fn origin_of(recording: &Path) -> PathBuf {
    let suffix = recording.extension().unwrap_or_default();
    recording
        .with_file_name(Spool::ORIGIN)
        .with_extension(suffix)
}

fn remove(recording: &Path) -> io::Result<()> {
    fs::remove_file(recording)?;
    match fs::remove_file(origin_of(recording)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

fn unusable(folder: &Path, source: io::Error) -> Error {
    Error::Spool {
        folder: folder.to_owned(),
        source: match source.kind() {
            // The answer to creating a folder where a file is.
            io::ErrorKind::AlreadyExists => io::ErrorKind::NotADirectory.into(),
            _ => source,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::HttpError;

    /// One round.
    fn push_all(
        spool: &Spool,
        push: impl FnMut(&Path) -> Result<Pushed, Error>,
    ) -> Result<(), Error> {
        spool.push_all(&mut Failures::default(), push)
    }

    /// Of a receiver.
    fn refusal() -> Error {
        Error::Http(HttpError::Refused {
            url: "http://host".into(),
            status: 500,
            message: String::new(),
            advice: "",
        })
    }

    #[test]
    fn recordings_that_fail_do_not_hold_up_others() {
        let directory = tempfile::tempdir().expect("a directory");
        let folder = directory.path();
        let spool = Spool::open(folder, 1000, |_| ()).expect("free");
        for number in 1..=6 {
            let path = folder.join(format!("recording.{number}"));
            let file = File::create(path).expect("created");
            let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(number);
            file.set_modified(time).expect("set");
        }
        // What is tried, in this order, if these fail.
        let check = |failing: &[&str], tried: &[&str]| {
            let mut names = Vec::new();
            let push = |path: &Path| {
                let number = path.extension().unwrap_or_default().to_string_lossy();
                names.push(number.to_string());
                match failing.contains(&&*number) {
                    true => Err(refusal()),
                    false => Ok(Pushed::Stored),
                }
            };
            let done = push_all(&spool, push);
            assert_eq!(done.is_err(), !failing.is_empty(), "{done:?}");
            assert_eq!(names, tried);
        };
        let all = ["1", "2", "3", "4", "5", "6"];
        // The receiver is down: not all are tried.
        check(&all, &["1", "6"]);
        // Old ones fail always.
        check(&["1", "2"], &["1", "6", "5", "4", "3", "2"]);
        check(&["1"], &["1", "2"]);
        check(&[], &["1"]);
        assert_eq!(spool.count().expect("readable"), 0);
    }

    #[test]
    fn recordings_wait_within_the_bound() {
        let directory = tempfile::tempdir().expect("a directory");
        let folder = directory.path().join("deep/spool");
        let spool = Spool::open(&folder, 100, |_| ()).expect("free");
        let other = Spool::open(&folder, 100, |_| ());
        assert!(matches!(other, Err(Error::SpoolInUse { .. })), "{other:?}");
        let minute = |number: u64| std::time::Duration::from_secs(60 * number);
        for number in 1..=4 {
            let path = folder.join(format!("recording.{}", 10 - number));
            fs::write(&path, [0; 40]).expect("written");
            let time = SystemTime::UNIX_EPOCH + minute(number);
            let file = File::options().write(true).open(&path).expect("there");
            file.set_modified(time).expect("set");
        }
        fs::write(spool.recording(), [0; 400]).expect("written");
        fs::write(folder.join("notes"), [0; 400]).expect("written");
        spool.drop_oldest().expect("readable");
        let names = |spool: &Spool| -> Vec<_> {
            let waiting = spool.find().expect("readable");
            let names = waiting
                .iter()
                .filter_map(|waiting| waiting.path.file_name());
            names
                .map(|name| name.to_string_lossy().into_owned())
                .collect()
        };
        assert_eq!(names(&spool), ["recording.7", "recording.6"]);
        spool.adopt_unfinished().expect("renamed");
        spool.adopt_unfinished().expect("nothing to do");
        let all = ["recording.7", "recording.6", "recording.unfinished.0"];
        assert_eq!(names(&spool), all);
    }

    #[test]
    fn recordings_of_an_earlier_collector_keep_their_origin() {
        let directory = tempfile::tempdir().expect("a directory");
        let folder = directory.path();
        let begin = |version: &str| {
            let spool = Spool::open(folder, 100, |_| ()).expect("free");
            let labels = [("version".to_owned(), version.to_owned())];
            let origin = Origin {
                labels: labels.into(),
                ..Origin::default()
            };
            spool.begin(&origin).expect("writable");
            spool
        };
        let version = |spool: &Spool, name: &str| {
            let origin = spool.origin(&folder.join(name)).expect("there");
            origin.labels["version"].clone()
        };
        let write = |name: &str| fs::write(folder.join(name), "").expect("written");
        drop(begin("1"));
        write("recording.2026");
        write("recording");
        let spool = begin("1");
        assert_eq!(version(&spool, "recording.2026"), "1");
        drop(spool);
        let spool = begin("2");
        write("recording.2027");
        assert_eq!(version(&spool, "recording.2026"), "1");
        assert_eq!(version(&spool, "recording.unfinished.0"), "1");
        assert_eq!(version(&spool, "recording.2027"), "2");
        drop(spool);
        let spool = begin("3");
        assert_eq!(version(&spool, "recording.2026"), "1");
        assert_eq!(version(&spool, "recording.2027"), "2");
        push_all(&spool, |_| Ok(Pushed::Stored)).expect("pushed");
        let left = fs::read_dir(folder).expect("readable");
        assert_eq!(left.count(), 1, "only the origin of the next ones");
    }

    #[test]
    fn only_the_owner_can_read_what_waits() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().expect("a directory");
        let folder = directory.path().join("spool");
        let spool = Spool::open(&folder, 100, |_| ()).expect("free");
        spool.begin(&Origin::default()).expect("writable");
        let recording = directory.path().join("prof.data");
        fs::write(&recording, "samples").expect("written");
        let all = fs::Permissions::from_mode(0o644);
        fs::set_permissions(&recording, all).expect("ours");
        let added = spool.add(&recording, RunId([1; 16]), &Origin::default());
        added.expect("space");
        let mut files = 0;
        for entry in fs::read_dir(&folder).expect("readable") {
            let entry = entry.expect("readable");
            let mode = entry.metadata().expect("there").permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{:?}", entry.path());
            files += 1;
        }
        assert_eq!(files, 3, "two origins and a recording");
    }

    #[test]
    fn unpushed_recordings_keep_their_origin() {
        let directory = tempfile::tempdir().expect("a directory");
        let folder = directory.path().join("spool");
        let spool = Spool::open_when_free(&folder, 100, |_| ()).expect("free");
        let recording = directory.path().join("prof.data");
        let origin = |service: &str| Origin {
            service: Some(service.into()),
            ..Origin::default()
        };
        let add = |number: u8, bytes: usize| {
            fs::write(&recording, vec![number; bytes]).expect("written");
            let service = format!("service-{number}");
            spool.add(&recording, RunId([number; 16]), &origin(&service))
        };
        let services = || -> Vec<_> {
            let waiting = spool.find().expect("readable");
            let origins = waiting.iter().map(|waiting| spool.origin(&waiting.path));
            origins
                .map(|origin| origin.expect("there").service)
                .collect()
        };
        for number in 1..=3 {
            add(number, 40).expect("space");
        }
        assert_eq!(
            services(),
            ["service-2", "service-3"].map(|name| Some(name.into()))
        );
        let large = add(4, 101);
        assert!(
            matches!(large, Err(Error::SpoolTooSmall { .. })),
            "{large:?}"
        );
        // The second one has to wait longer.
        let mut pushed = 0;
        let push = |_: &Path| {
            pushed += 1;
            match pushed {
                1 => Ok(Pushed::Stored),
                _ => Err(refusal()),
            }
        };
        assert!(push_all(&spool, push).is_err());
        assert_eq!(services(), [Some("service-3".into())]);
        // As on a full disk, the recording is there in part.
        let unreadable = Path::new("/proc/self/mem");
        let failed = spool.add(unreadable, RunId([5; 16]), &origin("service-5"));
        assert!(matches!(failed, Err(Error::Spool { .. })), "{failed:?}");
        push_all(&spool, |_| Ok(Pushed::Stored)).expect("pushed");
        assert_eq!(
            fs::read_dir(&folder).expect("readable").count(),
            0,
            "nothing is left"
        );
    }
}
