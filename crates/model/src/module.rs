//! Modules: the files (and things like files) that code is mapped from.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::text::printable;

/// A GNU build id: up to 20 bytes that name one exact link of a program.
///
/// Source: the `NT_GNU_BUILD_ID` note. `PERF_RECORD_MMAP2` holds up to 20 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BuildId {
    length: u8,
    bytes: [u8; Self::MAX_LENGTH],
}

impl BuildId {
    /// The longest build id that a recording can hold, in bytes.
    pub const MAX_LENGTH: usize = 20;

    /// A build id of these bytes; longer ones are cut as the kernel cuts them. `None` if there is
    /// nothing but zeros, which is how the kernel says that a file has none.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let length = bytes.len().min(Self::MAX_LENGTH);
        if bytes[..length].iter().all(|&byte| byte == 0) {
            return None;
        }
        let mut id = Self {
            length: length as u8,
            bytes: [0; Self::MAX_LENGTH],
        };
        id.bytes[..length].copy_from_slice(&bytes[..length]);
        Some(id)
    }

    /// The bytes of the id.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes()
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BuildId({self})")
    }
}

/// Which file on which device: distinguishes two files of one path that have no build id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileIdentity {
    /// Major and minor number of the device.
    pub device: (u32, u32),
    /// Inode number on that device.
    pub inode: u64,
    /// Generation of the inode number, zero where the file system has none.
    pub generation: u64,
}

impl FileIdentity {
    /// Whether both may name the same file. `/proc` does not show generations, so that records
    /// made from it have zero where the kernel's have a number.
    pub fn may_be(&self, other: &Self) -> bool {
        let generations = [self.generation, other.generation];
        (self.device, self.inode) == (other.device, other.inode)
            && (self.generation == other.generation || generations.contains(&0))
    }
}

/// The kind of a module, which decides where its tables are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ModuleKind {
    /// An ordinary file.
    File,
    /// The kernel's `[vdso]` page.
    Vdso,
    /// Memory without a file: JIT code, `//anon`, `[heap]`, `[stack]`.
    Anonymous,
    /// The kernel image (`[kernel.kallsyms]`) or one of its modules.
    Kernel,
}

/// All that identifies a module.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Module {
    /// Its kind.
    pub kind: ModuleKind,
    /// The path as the process saw it, in the process's own mount namespace.
    pub path: PathBuf,
    /// The build id, if it was recorded.
    pub build_id: Option<BuildId>,
    /// Device and inode, if they were recorded.
    pub identity: Option<FileIdentity>,
}

impl Module {
    /// A module by its path; its kind follows from the names that the kernel uses.
    pub fn from_path(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self {
            kind: ModuleKind::of_path(&path),
            path,
            build_id: None,
            identity: None,
        }
    }

    /// The name for users: that of the file, or the whole bracketed name; [`printable`].
    pub fn short_name(&self) -> String {
        let path = self.path.to_string_lossy();
        let name = match self.kind {
            ModuleKind::File => short_file_name(&path),
            _ => self.path.file_name().map_or(path, OsStr::to_string_lossy),
        };
        printable(&name).into_owned()
    }
}

/// The last component of a file's path. What is no file has a name in brackets, such as `[kernel]`:
/// a file that could be taken for it keeps the slash before its name.
pub fn short_file_name(path: &str) -> Cow<'_, str> {
    match path.rsplit_once('/').map_or(path, |(_, name)| name) {
        "" => Cow::Borrowed(path),
        name if name.starts_with('[') => Cow::Owned(format!("/{name}")),
        name => Cow::Borrowed(name),
    }
}

impl ModuleKind {
    /// Finds the kind by the name that the kernel gives to a mapping.
    fn of_path(path: &Path) -> Self {
        use std::os::unix::ffi::OsStrExt;
        match path.as_os_str().as_bytes() {
            b"[vdso]" => Self::Vdso,
            name if name.starts_with(b"[kernel") || name.starts_with(b"[guest.kernel") => {
                Self::Kernel
            }
            name if name.ends_with(b".ko") || name.starts_with(b"[bpf") => Self::Kernel,
            b"" | b"//anon" | b"[heap]" | b"[stack]" | b"[anon]" | b"[vsyscall]" => Self::Anonymous,
            name if name.starts_with(b"[") || name.starts_with(b"/dev/zero") => Self::Anonymous,
            name if name.starts_with(b"/SYSV") || name.starts_with(b"/anon_hugepage") => {
                Self::Anonymous
            }
            // What .NET compiles, in memory that it maps elsewhere for writing:
            // dotnet/runtime, docs/design/features/wxorx.md.
            name if name.starts_with(b"/memfd:doublemapper") => Self::Anonymous,
            // What Erlang compiles: asmjit, src/asmjit/core/virtmem.cpp.
            name if name.starts_with(b"/memfd:vmem") => Self::Anonymous,
            _ => Self::File,
        }
    }
}

/// The index of a module in a [`Modules`] table; cheap to copy and to index by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModuleId(u32);

impl ModuleId {
    /// The position in the table, from zero without gaps: an index for side tables.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Every module seen, each once.
#[derive(Clone, Debug, Default)]
pub struct Modules {
    modules: Vec<Arc<Module>>,
    /// Of the modules as they were recorded.
    ids: HashMap<Arc<Module>, ModuleId>,
}

impl Modules {
    /// The id of `module`, which is added if it is new.
    pub fn intern(&mut self, module: Module) -> ModuleId {
        if let Some(&id) = self.ids.get(&module) {
            return id;
        }
        let id = ModuleId(self.modules.len() as u32);
        let module = Arc::new(module);
        self.modules.push(Arc::clone(&module));
        self.ids.insert(module, id);
        id
    }

    /// Adds the build id of a module that was recorded without one. The module as it was recorded
    /// still has the same id.
    pub fn set_build_id(&mut self, id: ModuleId, build_id: BuildId) {
        Arc::make_mut(&mut self.modules[id.index()]).build_id = Some(build_id);
    }

    /// How many modules there are.
    pub fn len(&self) -> usize {
        self.modules.len()
    }

    /// Whether there are none yet.
    pub fn is_empty(&self) -> bool {
        self.modules.is_empty()
    }

    /// All modules with their ids, in the order they were first seen.
    pub fn iter(&self) -> impl Iterator<Item = (ModuleId, &Module)> {
        self.modules
            .iter()
            .enumerate()
            .map(|(index, module)| (ModuleId(index as u32), &**module))
    }

    /// Whether a Java VM is among them.
    pub fn have_java_vm(&self) -> bool {
        let mut names = self.modules.iter().map(|module| module.path.file_name());
        names.any(|name| name == Some("libjvm.so".as_ref()))
    }
}

impl std::ops::Index<ModuleId> for Modules {
    type Output = Module;

    fn index(&self, id: ModuleId) -> &Module {
        &self.modules[id.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_do_not_pass_for_what_is_none() {
        let check =
            |path: &str, expected| assert_eq!(Module::from_path(path).short_name(), expected);
        check("[kernel.kallsyms]", "[kernel.kallsyms]");
        check("[vdso]", "[vdso]");
        check("/usr/lib/libc.so.6", "libc.so.6");
        check("/tmp/[kernel]", "/[kernel]");
        check("/tmp/[jit]", "/[jit]");
        check("", "");
        // A script, as PHP names it.
        assert_eq!(short_file_name("[kernel]"), "/[kernel]");
        assert_eq!(short_file_name("/srv/app.php"), "app.php");
    }
}
