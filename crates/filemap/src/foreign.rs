//! Opening files by paths that come from others: from recorded processes or from recordings.
//!
//! Such a path may lead to a pipe that blocks, to a device that does something when it is opened,
//! out of a container, or to a file that only root may read. So a file is examined before it is
//! opened, a path inside another root directory is resolved there, and a process's file is opened
//! with the rights of its user.
//!
//! ```text
//!   /usr/lib/x.so                our own system: links are followed, our rights
//!   /proc/PID/root/usr/lib/x.so  inside the root of PID, whose rights count; links stay inside
//!   /proc/self/fd/N/usr/lib/…    inside a root directory that is held; root reads what all may
//!   /proc/PID/map_files/… , exe  what is mapped, by the kernel's own link: our rights
//! ```

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path};

use prof_procfs::descriptor;
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};

use crate::Error;
use crate::rights::Rights;

/// Whether a link at the end of a path is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// The link is followed.
    Follow,
    /// The link is refused.
    Refuse,
}

/// Opens a regular file for reading. Never blocks, and opens nothing else.
///
/// # Errors
/// There is no such file, it is no regular file, or the user it is opened for may not read it.
pub fn open(path: &Path) -> Result<File, Error> {
    open_with(path, None, Links::Follow)
}

/// Like [`open`], with the rights of the user who supplied the path, if they are known better than
/// from the path.
///
/// # Errors
/// As [`open`]; [`Error::Link`] for a link that is refused.
pub fn open_with(path: &Path, rights: Option<&Rights>, links: Links) -> Result<File, Error> {
    let failed = |source| Error::Io {
        path: path.to_owned(),
        source,
    };
    let inside = Inside::of(path);
    let known = match (rights, &inside) {
        (None, Some(inside)) => inside.rights().transpose().map_err(failed)?,
        _ => None,
    };
    let rights = rights.or(known.as_ref());
    // With our own rights: the kernel shows a process's root directory to those who may trace it.
    let root = inside.as_ref().map(Inside::open_root).transpose();
    let root = root.map_err(failed)?;
    let open = || {
        let mut flags = OFlags::PATH | OFlags::CLOEXEC;
        flags.set(OFlags::NOFOLLOW, links == Links::Refuse);
        let file = match (&root, &inside) {
            (Some(root), Some(inside)) => {
                let within = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
                rustix::fs::openat2(root, inside.path, flags, Mode::empty(), within)?
            }
            _ => rustix::fs::openat(CWD, path, flags, Mode::empty())?,
        };
        let found = rustix::fs::fstat(&file)?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile => {}
            FileType::Directory => return Ok(Err(Error::Directory { path: path.into() })),
            FileType::Symlink => return Ok(Err(Error::Link { path: path.into() })),
            _ => return Ok(Err(Error::NotRegular { path: path.into() })),
        }
        let all_may_read = Mode::from_raw_mode(found.st_mode).contains(Mode::ROTH);
        if inside.is_some() && rights.is_none() && is_root() && !all_may_read {
            return Err(ErrorKind::PermissionDenied.into());
        }
        match reopen(&file) {
            // No /proc: there are no other root directories either, so the path is opened as it is.
            Err(error) if error.kind() == ErrorKind::NotFound && inside.is_none() => {
                let file = File::from(rustix::fs::open(path, TO_READ, Mode::empty())?);
                Ok(match file.metadata()?.is_file() {
                    true => Ok(file),
                    false => Err(Error::NotRegular { path: path.into() }),
                })
            }
            reopened => reopened.map(Ok),
        }
    };
    match rights {
        Some(rights) => rights.with(open),
        None => open(),
    }
    .map_err(failed)?
}

/// Opens a file whose content is shown to users because something else named it, such as a source
/// file by its path in debug info. As root, it opens only files that everybody may read.
///
/// # Errors
/// As [`open`]; [`ErrorKind::PermissionDenied`] if root's rights would be needed.
pub fn open_to_show(path: &Path) -> Result<File, Error> {
    let file = open(path)?;
    let failed = |source| Error::Io {
        path: path.to_owned(),
        source,
    };
    let found = file.metadata().map_err(failed)?;
    if is_root() && (found.mode() & Mode::ROTH.bits() == 0 || is_of_the_system(&file)) {
        return Err(Error::Private { path: path.into() });
    }
    Ok(file)
}

/// Opens the file that was examined, without resolving its path again.
fn reopen(file: &OwnedFd) -> io::Result<File> {
    Ok(rustix::fs::open(descriptor(file), TO_READ, Mode::empty())?.into())
}

const TO_READ: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// Files of /proc and /sys show root more than they show others, whatever their mode is.
fn is_of_the_system(file: &File) -> bool {
    std::fs::read_link(descriptor(file)).map_or(true, |path| {
        ["/proc", "/sys", "/dev"]
            .iter()
            .any(|system| path.starts_with(system))
    })
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A path through another root directory.
struct Inside<'a> {
    root: std::path::PathBuf,
    path: &'a Path,
    pid: Option<i32>,
}

impl<'a> Inside<'a> {
    fn of(path: &'a Path) -> Option<Self> {
        let mut parts = path.strip_prefix("/proc").ok()?.components();
        let Some(Component::Normal(process)) = parts.next() else {
            return None;
        };
        let process = process.to_str()?;
        let mut root = Path::new("/proc").join(process);
        let part = parts.next()?;
        root.push(part);
        let pid = match part.as_os_str().to_str()? {
            "root" if process == "self" => None,
            "root" => Some(process.parse().ok()?),
            "fd" => {
                root.push(parts.next()?);
                None
            }
            _ => return None,
        };
        let path = parts.as_path();
        (!path.as_os_str().is_empty()).then_some(Self { root, path, pid })
    }

    fn rights(&self) -> Option<io::Result<Rights>> {
        self.pid.map(Rights::of_process)
    }

    fn open_root(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(rustix::fs::open(&self.root, flags, Mode::empty())?)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::io::Read;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    fn read(opened: Result<File, Error>) -> Result<String, String> {
        let mut text = String::new();
        let mut file = opened.map_err(|error| error.to_string())?;
        file.read_to_string(&mut text)
            .map_err(|error| error.to_string())?;
        Ok(text)
    }

    #[track_caller]
    fn check(opened: Result<File, Error>, expected: Result<&str, &str>) {
        match (read(opened), expected) {
            (Ok(text), Ok(expected)) => assert_eq!(text, expected),
            (Err(message), Err(expected)) => assert!(message.contains(expected), "{message}"),
            (found, expected) => panic!("{found:?}, expected {expected:?}"),
        }
    }

    fn mkfifo(path: &Path) {
        let made = std::process::Command::new("mkfifo").arg(path).status();
        assert!(made.unwrap().success());
    }

    #[test]
    fn only_files_are_opened_wherever_links_lead() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "text").unwrap();
        mkfifo(&at("fifo"));
        symlink("file", at("link")).unwrap();
        symlink("fifo", at("pipe")).unwrap();
        check(open(&at("file")), Ok("text"));
        check(open(&at("link")), Ok("text"));
        check(
            open_with(&at("link"), None, Links::Refuse),
            Err("symbolic link"),
        );
        for path in [&at("fifo"), &at("pipe"), Path::new("/dev/null")] {
            check(open(path), Err("is not a regular file"));
        }
        check(open(folder.path()), Err("is a directory"));
    }

    #[test]
    fn links_inside_another_root_stay_inside() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("root/usr")).unwrap();
        for name in ["outside", "root/usr/inside"] {
            fs::write(at(name), name).unwrap();
            fs::set_permissions(at(name), Permissions::from_mode(0o644)).unwrap();
        }
        symlink("/usr/inside", at("root/absolute")).unwrap();
        symlink("../../outside", at("root/usr/up")).unwrap();
        symlink(at("outside"), at("root/out")).unwrap();
        symlink("/proc/self/cwd", at("root/magic")).unwrap();
        let root = File::open(at("root")).unwrap();
        let inside = |name: &str| {
            let path = format!("/proc/self/fd/{}/{name}", root.as_raw_fd());
            open(Path::new(&path))
        };
        check(inside("usr/inside"), Ok("root/usr/inside"));
        check(inside("absolute"), Ok("root/usr/inside"));
        check(inside("usr/../../outside"), Err("No such file"));
        for name in ["usr/up", "out", "magic"] {
            check(inside(name), Err("No such file"));
        }
    }

    #[test]
    fn root_reads_for_others_what_they_may_read() {
        if !is_root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let secret = folder.path().join("secret");
        fs::write(&secret, "secret").unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(&secret, Permissions::from_mode(0o600)).unwrap();
        let mut command = std::process::Command::new("cat");
        command.stdin(std::process::Stdio::piped());
        std::os::unix::process::CommandExt::uid(&mut command, 65534);
        let mut process = command.spawn().unwrap();
        let relative = secret.strip_prefix("/").unwrap();
        let seen = Path::new(&format!("/proc/{}/root", process.id())).join(relative);
        let held = File::open(folder.path()).unwrap();
        let held = format!("/proc/self/fd/{}/secret", held.as_raw_fd());
        check(open(&seen), Err("Permission denied"));
        check(open(Path::new(&held)), Err("denied"));
        check(open_to_show(&secret), Err("not everybody may read it"));
        check(open(&secret), Ok("secret"));
        chown(&secret, Some(65534), None).unwrap();
        check(open(&seen), Ok("secret"));
        fs::set_permissions(&secret, Permissions::from_mode(0o644)).unwrap();
        check(open_to_show(&secret), Ok("secret"));
        check(
            open_to_show(Path::new("/proc/self/status")),
            Err("not everybody"),
        );
        drop(process.stdin.take());
        process.wait().unwrap();
    }
}
