//! Functions that allocate or wait for whoever calls them: of these it says nothing that they did.
//!
//! The names of allocators are those that `prof record --alloc` probes
//! (`events/src/request/allocators.rs`), and what programs call around them.

use super::Function;
use crate::profile::FunctionKind;

/// How the names of libraries begin that are nothing else.
const LIBRARIES: [&str; 17] = [
    // The C library: glibc (in parts before 2.34), musl.
    "libc.so",
    "libc-2.",
    "libpthread",
    "ld-linux",
    "ld-musl-",
    "libc.musl-",
    // That of C++.
    "libstdc++.",
    "libc++.",
    // Allocators in the place of the C library's.
    "libjemalloc",
    "libtcmalloc",
    "libmimalloc",
    // Interpreters and virtual machines.
    "libpython",
    "libphp",
    "libruby",
    "libnode",
    "libuv.",
    "libjvm.",
];

/// Programs that are interpreters, without their versions.
const INTERPRETERS: [&str; 4] = ["python", "php", "ruby", "node"];

/// How the names of functions begin, wherever they are: in static programs, and of languages whose
/// library becomes a part of the program.
const STARTS: [&str; 27] = [
    // C++ and Rust have a `std::`.
    "std::",
    "<std::",
    "__gnu_cxx::",
    "operator new",
    "core::",
    "<core::",
    "alloc::",
    "<alloc::",
    "hashbrown::",
    "<hashbrown::",
    "parking_lot",
    "<parking_lot",
    "__rust_",
    "__rdl_",
    // Go.
    "runtime.",
    "sync.",
    "syscall.",
    "internal/",
    "time.Sleep",
    // Allocators.
    "je_",
    "_rjem_",
    "mi_",
    "_mi_",
    "tc_",
    "tcmalloc::",
    "g_malloc",
    "g_realloc",
];

/// Functions of C, without leading underscores.
const FUNCTIONS: [&str; 54] = [
    // Allocate.
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "posix_memalign",
    "aligned_alloc",
    "memalign",
    "valloc",
    "pvalloc",
    "mmap",
    "mmap64",
    "mremap",
    "strdup",
    "strndup",
    "xmalloc",
    "xcalloc",
    "xrealloc",
    "xstrdup",
    "g_slice_alloc",
    // Wait.
    "read",
    "pread64",
    "readv",
    "write",
    "pwrite64",
    "writev",
    "poll",
    "ppoll",
    "select",
    "pselect",
    "epoll_wait",
    "epoll_pwait",
    "nanosleep",
    "clock_nanosleep",
    "clock_nanosleep_time64",
    "sleep",
    "usleep",
    "accept",
    "accept4",
    "connect",
    "recv",
    "recvfrom",
    "recvmsg",
    "send",
    "sendto",
    "sendmsg",
    "wait4",
    "waitpid",
    "waitid",
    "pause",
    "fsync",
    "fdatasync",
    "sem_wait",
    "syscall",
    "syscall_cancel",
];

/// How functions of C begin, without leading underscores.
const C_STARTS: [&str; 5] = ["futex_", "pthread_", "lll_", "sem_", "syscall_cancel"];

/// Whether a function allocates or waits for whoever calls it.
pub(crate) fn is_primitive(function: &Function) -> bool {
    if function.kind != FunctionKind::User {
        return false;
    }
    let (name, module) = (&*function.name, &*function.module);
    let program = module.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    LIBRARIES.iter().any(|start| module.starts_with(start))
        || INTERPRETERS.contains(&program)
        || STARTS.iter().any(|start| name.starts_with(start))
        || is_of_c(name)
}

fn is_of_c(name: &str) -> bool {
    // glibc: `__GI___libc_read`.
    let plain = name.trim_start_matches('_');
    let plain = plain.strip_prefix("GI_").unwrap_or(plain);
    let plain = plain.trim_start_matches('_');
    let plain = plain.strip_prefix("libc_").unwrap_or(plain);
    FUNCTIONS.contains(&plain) || C_STARTS.iter().any(|start| plain.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_call_to_allocate_or_wait_is_known() {
        let check = |name: &str, module: &str, expected| {
            let function = Function {
                name: name.into(),
                module: module.into(),
                kind: FunctionKind::User,
            };
            assert_eq!(is_primitive(&function), expected, "{name} in {module}");
        };
        check("anything", "libc.so.6", true);
        check("list_append", "python3.11", true);
        check("node_exporter", "node_exporter", false);
        check("__futex_abstimed_wait_common64", "app", true);
        check("__GI___libc_read", "app", true);
        check("__libc_malloc", "app", true);
        check("alloc::raw_vec::finish_grow", "app", true);
        check("operator new(unsigned long)", "app", true);
        check("runtime.mallocgc", "app", true);
        check("read_all", "app", false);
        check("main", "app", false);
    }
}
