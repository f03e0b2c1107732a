//! The harnesses that call tests and benchmarks: their functions, and their own work.

use std::ffi::OsString;
use std::path::Path;

use prof_filemap::MappedFile;
use prof_report::Pattern;

/// Functions of libtest, criterion and divan that only call the user's, in any mangling, and those
/// of the standard library that are instantiated for libtest's own types. Functions of criterion's
/// statistics are not among them: they take time of their own.
pub(super) fn functions() -> Option<Pattern> {
    const DISPATCHERS: &str = "(^|[<(\\[,& ])test::|\
         ^<?(criterion::(bencher|benchmark|benchmark_group|routine|Criterion)\\b|\
         divan::(bench|benchmark|divan|entry|main|thread_pool|util|__private|Divan)\\b|\
         core::ops::function::Fn|\
         core::panic::unwind_safe::|\
         std::(rt|panic|panicking|sys::backtrace|sys::thread|thread)\\b)|\
         ^<.* as core::ops::function::Fn";
    DISPATCHERS.parse().ok()
}

/// Criterion's flag that makes it run each benchmark for this long, and nothing else: otherwise its
/// statistics take most of the CPU time. Empty if the program does not use Criterion, or the user
/// has given flags for it.
pub(super) fn profile_time(program: &Path, arguments: &[OsString], seconds: u32) -> Vec<OsString> {
    const FLAG: &[u8] = b"profile-time";
    let is_flag =
        |argument: &OsString| argument != "--bench" && argument.to_string_lossy().starts_with('-');
    let knows_flag = |program: MappedFile| program.windows(FLAG.len()).any(|it| it == FLAG);
    match arguments.iter().any(is_flag) || !MappedFile::open(program).is_ok_and(knows_flag) {
        true => Vec::new(),
        false => vec!["--profile-time".into(), seconds.to_string().into()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn criterion_only_runs_benchmarks() {
        // The texts of its flags are in each program that has them, as they are in this one.
        let program = std::env::current_exe().unwrap();
        let flags = |program: &Path, arguments: &[&str]| {
            let arguments: Vec<_> = arguments.iter().map(OsString::from).collect();
            profile_time(program, &arguments, 3)
        };
        assert_eq!(flags(&program, &["parse"]), ["--profile-time", "3"]);
        assert_eq!(flags(&program, &["--bench"]), ["--profile-time", "3"]);
        assert!(flags(&program, &["--sample-size", "10"]).is_empty());
        assert!(flags(Path::new("/bin/sh"), &[]).is_empty());
    }

    #[test]
    fn functions_that_only_call_are_hidden() {
        let hidden = functions().unwrap();
        for name in [
            "test::__rust_begin_short_backtrace",
            "test::run_test_in_process",
            "test::run_test::{closure#0}",
            "<test::run_tests::RunningTest>::join",
            "core::ptr::drop_in_place::<test::run_test::{closure#0}>",
            "core::ptr::drop_in_place<test::run_test::{{closure}}>",
            "core::ptr::drop_in_place::<(test::types::TestId, test::types::TestDescAndFn)>",
            "<alloc::sync::Arc<std::sync::poison::mutex::Mutex<core::option::Option<test::run_test::{closure#0}>>>>::drop_slow",
            "<std::thread::builder::Builder>::spawn_unchecked::<test::run_test::{closure#1}, ()>",
            "std::thread::lifecycle::spawn_unchecked::<test::run_test::{closure#1}, ()>",
            "<&test::types::TestName as core::fmt::Display>::fmt",
            "criterion::bencher::Bencher<M>::iter",
            "<criterion::routine::Function<M,F,T> as criterion::routine::Routine<M,T>>::bench",
            "divan::benchmark::BenchContext::bench_loop_threaded",
            "divan::bench::Bencher<divan::bench::BencherConfig<GenI>>::bench_values",
            "<fn() as core::ops::function::FnOnce<()>>::call_once",
            "core::ops::function::FnOnce::call_once",
            "std::sys::backtrace::__rust_begin_short_backtrace",
            "<core::panic::unwind_safe::AssertUnwindSafe<F> as core::ops::function::FnOnce<()>>::call_once",
        ] {
            assert!(hidden.matches(name), "{name}");
        }
    }

    #[test]
    fn functions_that_work_are_shown() {
        let hidden = functions().unwrap();
        for name in [
            "fib::test::helper",
            "<fib::test::Helper>::run",
            "core::ptr::drop_in_place::<fib::test::Helper>",
            "<alloc::vec::Vec<fib::latest::Word>>::push",
            "criterion::stats::univariate::kde::Kde<A,K>::estimate",
            "criterion::analysis::common",
            "divan::time::timer::Timer::precision",
            "my::benchmark::run",
            "std::collections::hash::map::HashMap<K,V,S>::insert",
        ] {
            assert!(!hidden.matches(name), "{name}");
        }
    }
}
