//! The functions that call tests and benchmarks.

use prof_report::Pattern;

/// Functions of libtest, criterion and divan that do nothing but call the user's, by any mangling.
/// What criterion does for its statistics stays: it takes time of its own.
pub(super) fn functions() -> Option<Pattern> {
    const DISPATCHERS: &str = "^<?(test::|\
         criterion::(bencher|benchmark|benchmark_group|routine|Criterion)\\b|\
         divan::(benchmark|divan|entry|main|thread_pool|util|__private|Divan)\\b|\
         core::ops::function::Fn|\
         core::panic::unwind_safe::|\
         std::(rt|panic|panicking|sys::backtrace|sys::thread|thread)\\b)|\
         ^<.* as core::ops::function::Fn";
    DISPATCHERS.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_calls_is_hidden() {
        let hidden = functions().unwrap();
        for name in [
            "test::__rust_begin_short_backtrace",
            "test::run_test_in_process",
            "criterion::bencher::Bencher<M>::iter",
            "<criterion::routine::Function<M,F,T> as criterion::routine::Routine<M,T>>::bench",
            "divan::benchmark::BenchContext::bench_loop_threaded",
            "<fn() as core::ops::function::FnOnce<()>>::call_once",
            "core::ops::function::FnOnce::call_once",
            "std::sys::backtrace::__rust_begin_short_backtrace",
            "<core::panic::unwind_safe::AssertUnwindSafe<F> as core::ops::function::FnOnce<()>>::call_once",
        ] {
            assert!(hidden.matches(name), "{name}");
        }
    }

    #[test]
    fn what_works_is_shown() {
        let hidden = functions().unwrap();
        for name in [
            "fib::test::helper",
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
