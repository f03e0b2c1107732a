//! Programs that run without their privileges because they are traced.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use prof_model::Pid;
use prof_procfs::Task;
use rustix::fs::{StatVfsMountFlags, getxattr, statvfs};

/// Whether a process that has called exec lacks the privileges that its file gives (setuid, setgid,
/// file capabilities): the kernel withholds them if the tracer has no privileges itself.
pub fn lacks_privileges(pid: Pid) -> bool {
    const SET_USER: u32 = 0o4000;
    /// Without the second bit, the first one is about locks of the file.
    const SET_GROUP: u32 = 0o2010;
    let process = Task::of(pid);
    let program = process.exe();
    let (Ok(file), Ok(status)) = (fs::metadata(&program), process.status()) else {
        return false;
    };
    let (Some(users), Some(groups)) = (status.users(), status.groups()) else {
        return false;
    };
    let lacks_user = file.mode() & SET_USER != 0 && file.uid() != users.effective;
    let lacks_group = file.mode() & SET_GROUP == SET_GROUP && file.gid() != groups.effective;
    let lacks_capabilities = status.capabilities() == Some(0) && gives_capabilities(&program);
    (lacks_user || lacks_group || lacks_capabilities)
        && !status.gains_no_privileges()
        && !is_on_mount_without_privileges(&program)
}

/// Whether a program has capabilities as soon as it is executed: the first byte of this attribute
/// holds `VFS_CAP_FLAGS_EFFECTIVE` (linux/capability.h).
fn gives_capabilities(program: &Path) -> bool {
    let mut value = [0; 32];
    let read = getxattr(program, c"security.capability", &mut value);
    read.is_ok_and(|length| length > 0) && value[0] & 1 != 0
}

fn is_on_mount_without_privileges(program: &Path) -> bool {
    statvfs(program).is_ok_and(|found| found.f_flag.contains(StatVfsMountFlags::NOSUID))
}
