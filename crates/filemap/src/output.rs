//! Files that we write, never through a link that another user put in the way.
//!
//! ```text
//!   DIRECTORY/out.svg      the directory is opened once and held; all else happens in it, by name
//!       (no name)          a new file in it (O_TMPFILE, 0600), of which SIGKILL leaves nothing ...
//!       .prof.PID.TIME     ... that gets this name in the end, or has it from the start (O_EXCL)
//!                          where there are no files without a name ...
//!       out.svg            ... and takes the target's by a rename: a link there is replaced
//! ```
//! Pipes and devices are written directly: they are opened and never created or replaced.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use prof_procfs::descriptor;
use rustix::fs::{AtFlags, CWD, FileType, Gid, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;

/// Where to write.
#[derive(Debug)]
pub enum Output {
    /// A pipe, a device, or an open descriptor that we inherited.
    Direct(File),
    /// A new file that has no name of its own yet.
    New(NewFile),
}

impl Output {
    /// Opens the pipe or device at `path`, or else creates a file for it.
    ///
    /// # Errors
    /// There is a directory, or nothing can be created there. A pipe that another user put into a
    /// directory where everybody may write is refused.
    pub fn create(path: &Path) -> io::Result<Self> {
        if let Some(file) = standard_stream(path)? {
            return Ok(Self::Direct(file));
        }
        let place = OutputPath::new(path)?;
        match place.found()? {
            Found::Directory => Err(ErrorKind::IsADirectory.into()),
            Found::Special => place.open_special().map(Self::Direct),
            Found::Nothing | Found::File(_) | Found::Link => place.new_file().map(Self::New),
        }
    }

    /// Calls `fill` with a buffered writer. A new file gets its name only when `fill` has
    /// succeeded, and with `on_disk` only once the data is on the disk.
    ///
    /// # Errors
    ///
    /// The error of `fill`, or the file cannot be written; a new file is then removed.
    pub fn fill<E: From<io::Error>>(
        self,
        on_disk: bool,
        fill: impl FnOnce(&mut dyn Write) -> Result<(), E>,
    ) -> Result<(), E> {
        match self {
            Self::Direct(file) => buffered(&file, fill),
            Self::New(new) => {
                buffered(new.file()?, fill)?;
                if on_disk {
                    new.file()?.sync_all()?;
                }
                new.finish()?;
                Ok(())
            }
        }
    }
}

fn buffered<E: From<io::Error>>(
    file: &File,
    fill: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    let mut out = BufWriter::new(file);
    fill(&mut out)?;
    out.flush()?;
    Ok(())
}

/// A file without its name. Dropping it removes it.
#[derive(Debug)]
pub struct NewFile {
    place: OutputPath,
    /// `None` as long as it has no name.
    temporary: Option<OsString>,
    file: Option<File>,
}

impl NewFile {
    /// The file.
    ///
    /// # Errors
    /// None, as long as [`finish`](Self::finish) was not called.
    pub fn file(&self) -> io::Result<&File> {
        self.file.as_ref().ok_or(ErrorKind::NotFound.into())
    }

    /// Gives the file its name and replaces the file that had it.
    ///
    /// # Errors
    /// The rename fails. The file that had the name is then untouched.
    pub fn finish(mut self) -> io::Result<File> {
        let at = self.place.directory.as_fd();
        let temporary = match self.temporary.take() {
            Some(name) => name,
            None => {
                let unnamed = descriptor(self.file()?);
                let follow = AtFlags::SYMLINK_FOLLOW;
                with_free_name(|name| rustix::fs::linkat(CWD, &unnamed, at, name, follow))?.1
            }
        };
        let temporary = self.temporary.insert(temporary);
        rustix::fs::renameat(at, &*temporary, at, &self.place.name)?;
        self.file.take().ok_or(ErrorKind::NotFound.into())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let (Some(name), Some(_)) = (&self.temporary, &self.file) {
            // Best effort: a destructor cannot report an error.
            let _ = self.place.remove(name);
        }
    }
}

/// A name in a directory that is held open.
#[derive(Debug)]
pub struct OutputPath {
    directory: OwnedFd,
    name: OsString,
}

/// The kind of file at an [`OutputPath`].
#[derive(Clone, Copy, Debug)]
pub enum Found {
    /// Nothing.
    Nothing,
    /// A regular file.
    File(Stat),
    /// A link to a file or to nothing, or one that must not be followed.
    Link,
    /// A pipe, a device or a socket, or a link to one.
    Special,
    /// A directory, or a link to one.
    Directory,
}

impl OutputPath {
    /// Opens the directory of `path`.
    ///
    /// # Errors
    /// It cannot be opened, or the path names no file in it.
    pub fn new(path: &Path) -> io::Result<Self> {
        let name = path.file_name().ok_or(ErrorKind::IsADirectory)?;
        if path.as_os_str().as_bytes().ends_with(b"/") {
            return Err(ErrorKind::IsADirectory.into());
        }
        let parent = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(parent.unwrap_or(Path::new(".")), flags, Mode::empty())?;
        Ok(Self {
            directory,
            name: name.to_owned(),
        })
    }

    /// The kind of file that is there now.
    ///
    /// # Errors
    /// The file cannot be examined.
    pub fn found(&self) -> io::Result<Found> {
        let found = match self.stat(AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(Found::Nothing),
            found => found?,
        };
        match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile => return Ok(Found::File(found)),
            FileType::Directory => return Ok(Found::Directory),
            FileType::Symlink if self.is_among_devices() => return Ok(Found::Special),
            FileType::Symlink => {}
            _ => return Ok(Found::Special),
        }
        if !self.is_trusted(&found)? {
            return Ok(Found::Link);
        }
        let target = self.stat(AtFlags::empty());
        Ok(
            match target.map(|found| FileType::from_raw_mode(found.st_mode)) {
                Ok(FileType::Directory) => Found::Directory,
                Ok(FileType::RegularFile) | Err(_) => Found::Link,
                Ok(_) => Found::Special,
            },
        )
    }

    /// Creates the file under its name, for its owner only.
    ///
    /// # Errors
    /// Something has the name, or the file cannot be created.
    pub fn create_new(&self) -> io::Result<File> {
        Ok(self.create(&self.name)?)
    }

    /// Renames the file to a name in the same directory and replaces the file that had it.
    ///
    /// # Errors
    /// The rename fails.
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::renameat(
            &self.directory,
            from,
            &self.directory,
            to,
        )?)
    }

    /// Like [`rename`](Self::rename), but fails if the name is taken.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`], or the system refuses for another reason.
    pub fn rename_to_free(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        let at = self.directory.as_fd();
        match rustix::fs::renameat_with(at, from, at, to, RenameFlags::NOREPLACE) {
            // Not all file systems support this.
            Err(Errno::INVAL | Errno::NOSYS) => {}
            renamed => return Ok(renamed?),
        }
        match rustix::fs::statat(at, to, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Err(ErrorKind::AlreadyExists.into()),
            Err(_) => self.rename(from, to),
        }
    }

    /// Removes a file of the same directory.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(
            &self.directory,
            name,
            AtFlags::empty(),
        )?)
    }

    /// The name in the directory.
    pub fn name(&self) -> &OsStr {
        &self.name
    }

    /// Creates a file with the mode of the file that it replaces if that is ours, else for its
    /// owner only. Another user's file is replaced as well, but its mode is not taken over.
    fn new_file(self) -> io::Result<NewFile> {
        let (file, temporary) = match self.create_unnamed() {
            Some(file) => (file, None),
            None => {
                let (file, name) = with_free_name(|name| self.create(name))?;
                (file, Some(name))
            }
        };
        let new = NewFile {
            file: Some(file),
            place: self,
            temporary,
        };
        if let Found::File(old) = new.place.found()?
            && old.st_uid == rustix::process::geteuid().as_raw()
        {
            preserve_mode(new.file()?, &old)?;
        }
        Ok(new)
    }

    /// A file without a name; `None` where the file system has no such files, or where there is no
    /// /proc, by which it gets one later.
    fn create_unnamed(&self) -> Option<File> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let file = rustix::fs::openat(&self.directory, ".", flags, mode).ok()?;
        descriptor(&file).exists().then(|| File::from(file))
    }

    fn create(&self, name: &OsStr) -> rustix::io::Result<File> {
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        rustix::fs::openat(&self.directory, name, flags, mode).map(File::from)
    }

    fn open_special(&self) -> io::Result<File> {
        let at_name = self.stat(AtFlags::SYMLINK_NOFOLLOW)?;
        if !self.is_trusted(&at_name)? {
            let why = "another user put it into a directory where everybody may write";
            return Err(io::Error::new(ErrorKind::PermissionDenied, why));
        }
        let is_link = FileType::from_raw_mode(at_name.st_mode) == FileType::Symlink;
        // What follows a descriptor to a file must not overwrite what others wrote there.
        let mut flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NOCTTY | OFlags::CLOEXEC;
        flags.set(OFlags::NOFOLLOW, !is_link);
        let file = File::from(rustix::fs::openat(
            &self.directory,
            &self.name,
            flags,
            Mode::empty(),
        )?);
        match file.metadata()?.is_file() && !self.is_among_devices() {
            true => Err(io::Error::other("it was replaced while it was opened")),
            false => Ok(file),
        }
    }

    /// Whether the kernel would follow this link, or open this pipe, with `fs.protected_symlinks`
    /// and `fs.protected_fifos`, whether these are on or not.
    fn is_trusted(&self, found: &Stat) -> io::Result<bool> {
        let directory = rustix::fs::fstat(&self.directory)?;
        let mode = Mode::from_raw_mode(directory.st_mode);
        let is_shared = mode.contains(Mode::SVTX) && mode.intersects(Mode::WOTH | Mode::WGRP);
        let ours = rustix::process::geteuid().as_raw();
        Ok(!is_shared || found.st_uid == ours || found.st_uid == directory.st_uid)
    }

    /// Links in /dev and /proc (`/dev/stdout`, `/proc/self/fd/3`) belong to the system.
    fn is_among_devices(&self) -> bool {
        std::fs::read_link(descriptor(&self.directory))
            .is_ok_and(|path| path == Path::new("/dev") || path.starts_with("/proc"))
    }

    fn stat(&self, flags: AtFlags) -> rustix::io::Result<Stat> {
        rustix::fs::statat(&self.directory, &self.name, flags)
    }
}

/// The path with `suffix` added to its last component.
pub fn with_suffix(path: &Path, suffix: impl AsRef<OsStr>) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

/// Duplicates our own descriptor, so that writing continues at its position; a file that is opened
/// again would be written from its start.
fn standard_stream(path: &Path) -> io::Result<Option<File>> {
    let is = |names: [&str; 3]| names.iter().any(|name| path == Path::new(name));
    let descriptor = if is(["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"]) {
        io::stdout().as_fd().try_clone_to_owned()?
    } else if is(["/dev/stderr", "/dev/fd/2", "/proc/self/fd/2"]) {
        io::stderr().as_fd().try_clone_to_owned()?
    } else {
        return Ok(None);
    };
    Ok(Some(descriptor.into()))
}

fn preserve_mode(file: &File, old: &Stat) -> io::Result<()> {
    let mut mode = Mode::from_raw_mode(old.st_mode) & (Mode::RWXU | Mode::RWXG | Mode::RWXO);
    let group = Some(Gid::from_raw(old.st_gid));
    if rustix::fs::fstat(file)?.st_gid != old.st_gid
        && rustix::fs::fchown(file, None, group).is_err()
    {
        // The group differs: the mode was not meant for it.
        mode -= Mode::RWXG;
    }
    Ok(rustix::fs::fchmod(file, mode)?)
}

/// Creates something under a temporary name that nothing has, which is returned, too.
fn with_free_name<T>(
    create: impl Fn(&OsStr) -> rustix::io::Result<T>,
) -> rustix::io::Result<(T, OsString)> {
    const ATTEMPTS: u32 = 100;
    let mut created = Err(Errno::EXIST);
    for _ in 0..ATTEMPTS {
        let name = temporary_name();
        created = create(&name).map(|made| (made, name));
        if !matches!(created, Err(Errno::EXIST)) {
            break;
        }
    }
    created
}

fn temporary_name() -> OsString {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.unwrap_or_default().as_nanos();
    format!(".prof.{}.{now:x}", std::process::id()).into()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;

    fn write(path: &Path, text: &str) -> io::Result<()> {
        Output::create(path)?.fill(false, |out| out.write_all(text.as_bytes()))
    }

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn a_new_file_is_for_its_owner_and_an_old_one_keeps_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        write(&path, "one").unwrap();
        assert_eq!(mode(&path), 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o4644)).unwrap();
        write(&path, "two").unwrap();
        assert_eq!(mode(&path), 0o644, "but no privileges");
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn unfinished_files_leave_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        fs::write(&path, "old").unwrap();
        drop(Output::create(&path).unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_is_replaced_and_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (precious, link) = (folder.path().join("precious"), folder.path().join("link"));
        fs::write(&precious, "precious").unwrap();
        for target in [&precious, &folder.path().join("missing")] {
            symlink(target, &link).unwrap();
            write(&link, "text").unwrap();
            assert!(fs::symlink_metadata(&link).unwrap().is_file());
            fs::remove_file(&link).unwrap();
        }
        assert_eq!(fs::read(&precious).unwrap(), b"precious");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn pipes_are_written_and_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (pipe, link) = (folder.path().join("pipe"), folder.path().join("link"));
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        symlink(&pipe, &link).unwrap();
        // Opens both ends, so that neither open waits for the other.
        let mut both = fs::OpenOptions::new();
        let mut reader = both.read(true).write(true).open(&pipe).unwrap();
        write(&pipe, "text").unwrap();
        write(&link, "text").unwrap();
        let mut written = [0; 8];
        reader.read_exact(&mut written).unwrap();
        assert_eq!(&written, b"texttext");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn files_of_others_in_shared_folders_are_ignored() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o1777)).unwrap();
        let (pipe, link) = (folder.path().join("pipe"), folder.path().join("link"));
        let theirs = folder.path().join("file");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        symlink("/dev/null", &link).unwrap();
        fs::write(&theirs, "theirs").unwrap();
        fs::set_permissions(&theirs, fs::Permissions::from_mode(0o666)).unwrap();
        for path in [&pipe, &link, &theirs] {
            std::os::unix::fs::lchown(path, Some(65534), Some(65534)).unwrap();
        }
        let refused = Output::create(&pipe).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::PermissionDenied);
        for path in [&link, &theirs] {
            write(path, "ours").unwrap();
            let found = fs::symlink_metadata(path).unwrap();
            assert!(found.is_file() && found.uid() == 0, "{}", path.display());
            assert_eq!(mode(path), 0o600);
        }
    }

    #[test]
    fn directories_and_descriptors_are_no_names_to_take() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        symlink(folder.path(), &link).unwrap();
        let slash = folder.path().join("new/");
        for path in [
            folder.path(),
            &link,
            &slash,
            Path::new("/"),
            Path::new(".."),
        ] {
            let error = Output::create(path).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::IsADirectory, "{}", path.display());
        }
        for path in ["/dev/null", "/dev/stdout", "/dev/fd/2", "/proc/self/fd/1"] {
            let output = Output::create(Path::new(path)).unwrap();
            assert!(matches!(output, Output::Direct(_)), "{path}");
        }
        // Opened anew, a file is added to.
        let file = fs::File::create(folder.path().join("file")).unwrap();
        (&file).write_all(b"one").unwrap();
        write(
            Path::new(&format!("/proc/self/fd/{}", file.as_raw_fd())),
            "two",
        )
        .unwrap();
        assert_eq!(fs::read(folder.path().join("file")).unwrap(), b"onetwo");
    }

    #[test]
    fn a_name_that_is_taken_stays() {
        let folder = tempfile::tempdir().unwrap();
        let place = OutputPath::new(&folder.path().join("a")).unwrap();
        place.create_new().unwrap();
        assert_eq!(
            place.create_new().unwrap_err().kind(),
            ErrorKind::AlreadyExists
        );
        fs::write(folder.path().join("b"), "b").unwrap();
        let taken = place
            .rename_to_free(place.name(), OsStr::new("b"))
            .unwrap_err();
        assert_eq!(taken.kind(), ErrorKind::AlreadyExists);
        place.rename_to_free(place.name(), OsStr::new("c")).unwrap();
        assert_eq!(fs::read(folder.path().join("b")).unwrap(), b"b");
    }

    #[test]
    fn an_output_that_is_not_complete_has_no_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let files = || fs::read_dir(folder.path()).unwrap().count();
        let place = OutputPath::new(&path).unwrap();
        let can_be_unnamed = place.create_unnamed().is_some();
        let Output::New(new) = Output::create(&path).unwrap() else {
            panic!("a new file");
        };
        assert_eq!(files(), usize::from(!can_be_unnamed));
        new.file().unwrap().write_all(b"text").unwrap();
        new.finish().unwrap();
        assert_eq!((files(), &*fs::read(&path).unwrap()), (1, &b"text"[..]));
        // On a file system where each file has a name.
        let (file, name) = with_free_name(|name| place.create(name)).unwrap();
        let new = NewFile {
            place,
            temporary: Some(name),
            file: Some(file),
        };
        assert_eq!(files(), 2);
        new.finish().unwrap();
        assert_eq!((files(), &*fs::read(&path).unwrap()), (1, &b""[..]));
    }
}
