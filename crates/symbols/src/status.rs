//! Why names are missing, and what to do about it.

use std::fmt;
use std::path::{Path, PathBuf};

use prof_model::{BuildId, Pid};

use crate::host::Host;

/// Whether a module's addresses could be named, and if not, why.
///
/// Its [`Display`](fmt::Display) is the reason followed by the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModuleStatus {
    /// There are symbols. Single addresses may still lie outside of all of them.
    Named,
    /// The file is there and is the right one, but holds at most the dynamic linker's symbols;
    /// no separate debug file was found, and some addresses have no name.
    Stripped {
        /// The file.
        path: PathBuf,
        /// The build id to look for debug files with.
        build_id: Option<BuildId>,
        /// The result from debuginfod servers, if they were asked.
        downloads: Option<String>,
    },
    /// The file is gone.
    Missing {
        /// Its path.
        path: PathBuf,
    },
    /// The file is another one than the one that was recorded: most likely it was rebuilt or
    /// upgraded. Its symbols are not used.
    BuildIdDiffers {
        /// The file.
        path: PathBuf,
        /// The build id of what ran.
        recorded: BuildId,
        /// The build id of the file there now, if it has one.
        found: Option<BuildId>,
    },
    /// The recording has several files of this path, and without build ids nothing says that this
    /// is the one that ran. Its symbols are not used.
    OtherFile {
        /// The file.
        path: PathBuf,
    },
    /// The file may not be read by this user.
    NoPermission {
        /// The file.
        path: PathBuf,
    },
    /// The file can't be used: not ELF, damaged, an I/O error.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The problem.
        reason: String,
    },
    /// The running kernel is another build than the one that was recorded.
    OtherKernel {
        /// The build id of the kernel that ran.
        recorded: BuildId,
        /// That of the kernel that runs now.
        found: BuildId,
    },
    /// The recording is of another machine or kernel, and has no build id for this.
    OtherHost {
        /// The recorded machine.
        recorded: Box<Host>,
        /// This one.
        found: Box<Host>,
    },
    /// `/proc/kallsyms` shows only zeros to this user.
    KernelHidden,
    /// A process made code at run time and left no map of it.
    NoJitMap {
        /// The process.
        pid: Pid,
        /// The path where the map should be.
        path: PathBuf,
    },
    /// There is a map of run-time code, but it can't be trusted.
    UntrustedJitMap {
        /// The map.
        path: PathBuf,
        /// Why it is not trusted.
        reason: String,
    },
    /// There is a map of run-time code, but more of it than is kept in memory.
    JitMapTooLarge {
        /// The map.
        path: PathBuf,
    },
    /// The recording's embedded symbols don't have this module.
    NotEmbedded,
    /// There were no names when those of the recording were stored in it.
    Archived {
        /// Why, as it was said then.
        reason: String,
    },
}

impl ModuleStatus {
    /// What remedies say of files of a distribution, whose packages are not known here.
    pub const INSTALL: &str = "install debug packages";

    /// Whether names were found.
    pub fn is_named(&self) -> bool {
        matches!(self, Self::Named)
    }

    /// The file that it is about.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::Stripped { path, .. }
            | Self::Missing { path }
            | Self::BuildIdDiffers { path, .. }
            | Self::OtherFile { path }
            | Self::NoPermission { path }
            | Self::Unreadable { path, .. }
            | Self::NoJitMap { path, .. }
            | Self::UntrustedJitMap { path, .. }
            | Self::JitMapTooLarge { path } => Some(path),
            Self::Named
            | Self::OtherKernel { .. }
            | Self::OtherHost { .. }
            | Self::KernelHidden
            | Self::NotEmbedded
            | Self::Archived { .. } => None,
        }
    }

    /// The problem, without the remedy.
    pub fn reason(&self) -> String {
        match self {
            Self::Named => "symbols found".into(),
            // The same text for all such files, which are many: they are reported together.
            Self::Stripped { downloads, .. } => match downloads {
                Some(problem) => format!("stripped, and {problem}"),
                None => "stripped".into(),
            },
            Self::Missing { path } => format!("{} does not exist", path.display()),
            Self::BuildIdDiffers {
                path,
                recorded,
                found,
            } => {
                let found = match found {
                    Some(found) => format!("build id {found}"),
                    None => "no build id".into(),
                };
                let path = path.display();
                format!("{path} is not the file that ran ({found}, recorded {recorded})")
            }
            Self::OtherFile { path } => format!(
                "the recording has several files of this path without build ids, and {} may be \
                 another one",
                path.display()
            ),
            Self::NoPermission { path } => format!("no permission to read {}", path.display()),
            Self::Unreadable { path, reason } => {
                format!("cannot read {}: {reason}", path.display())
            }
            Self::OtherKernel { recorded, found } => {
                format!("another kernel runs now (build id {found}, recorded {recorded})")
            }
            Self::OtherHost { recorded, found } => {
                format!("it was recorded elsewhere ({recorded}; here: {found}), without a build id")
            }
            Self::KernelHidden => "the kernel hides its symbols from this user".into(),
            Self::NoJitMap { pid, path } => format!(
                "process {pid} wrote no map of its run-time code ({})",
                path.display()
            ),
            Self::UntrustedJitMap { path, reason } => {
                format!("{} is not trusted: {reason}", path.display())
            }
            Self::JitMapTooLarge { path } => format!(
                "{} has more than 2,000,000 functions or 256 MiB of names, and the rest was not read",
                path.display()
            ),
            Self::NotEmbedded => "the recording has no symbols of it".into(),
            Self::Archived { reason } => format!("{reason} (on the machine that recorded)"),
        }
    }

    /// The remedy, if there is one.
    pub fn remedy(&self) -> Option<String> {
        Some(match self {
            Self::Named => return None,
            Self::Stripped {
                build_id: None, ..
            } => "build without stripping".into(),
            Self::Stripped {
                downloads: None, ..
            } => format!(
                "{}, set DEBUGINFOD_URLS to download debug info, or build without stripping",
                Self::INSTALL
            ),
            Self::Stripped { .. } => format!("{}, or build without stripping", Self::INSTALL),
            Self::Missing { .. } => "put the file back, or report before it is removed".into(),
            Self::BuildIdDiffers { .. } => {
                "record again, or put back the file that was recorded".into()
            }
            Self::OtherFile { .. } => "link the program with a build id (gcc -Wl,--build-id, \
                                       go build -ldflags=-B=gobuildid), and record again"
                .into(),
            Self::NoPermission { .. } => {
                "make the file readable, or report as a user who may read it".into()
            }
            // Whoever knows the runtime knows how it writes one.
            Self::Unreadable { .. } | Self::JitMapTooLarge { .. } | Self::NoJitMap { .. } => {
                return None;
            }
            Self::OtherKernel { .. } => {
                "report on the kernel that was recorded, install its vmlinux with debug info, or run \
                 `prof archive` where you record"
                    .into()
            }
            Self::OtherHost { .. } => {
                "report where it was recorded, or run `prof archive` there".into()
            }
            // The kernel's kallsyms_show_value().
            Self::KernelHidden => "report as root, or run `sudo sysctl kernel.kptr_restrict=0 \
                                   kernel.perf_event_paranoid=1`"
                .into(),
            Self::UntrustedJitMap { .. } => {
                "check the file, and report as the user who owns it".into()
            }
            Self::Archived { .. } => {
                "make its symbols available there, and record or archive again".into()
            }
            Self::NotEmbedded => "run `prof archive` again on the machine that recorded".into(),
        })
    }
}

impl fmt::Display for ModuleStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason())?;
        match self.remedy() {
            Some(remedy) => write!(f, "; {remedy}"),
            None => Ok(()),
        }
    }
}
