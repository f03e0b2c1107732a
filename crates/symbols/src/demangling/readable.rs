//! Names as people wrote them.

use std::borrow::Cow;

use crate::demangling::shorten::shorten;

/// A demangled name with the compiler's own words for what has no name replaced by what people
/// wrote: `{closure#0}`, `{closure_env#0}` and `{{closure}}` become `{closure}`, `{impl#3}`
/// becomes `{impl}`, `{async_fn_env#0}` becomes `{async fn}`.
///
/// The first of its kind in a function goes without a number; later ones count from 1, as the
/// compiler does.
///
/// ```
/// # use prof_symbols::readable;
/// assert_eq!(readable("app::run::{async_block_env#0}"), "app::run::{async block}");
/// assert_eq!(readable("app::run::{closure#1}"), "app::run::{closure#1}");
/// ```
pub fn readable(name: &str) -> Cow<'_, str> {
    if !name.contains('{') {
        return Cow::Borrowed(name);
    }
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(start) = rest.find('{') {
        let (before, braced) = rest.split_at(start);
        out.push_str(before);
        match unnamed(braced) {
            Some((text, after)) => {
                out.push_str(&text);
                rest = after;
            }
            None => {
                out.push('{');
                rest = braced.get(1..).unwrap_or_default();
            }
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The compiler's words for things without a name, and those that people use.
const KINDS: [(&str, &str); 10] = [
    ("closure", "closure"),
    ("closure_env", "closure"),
    ("impl", "impl"),
    ("async_fn", "async fn"),
    ("async_fn_env", "async fn"),
    ("async_block", "async block"),
    ("async_block_env", "async block"),
    ("async_closure", "async closure"),
    ("async_closure_env", "async closure"),
    ("constant", "const"),
];

/// Rewrites `{closure_env#2}` or `{{closure}}` at the start of `text`; what follows it comes back
/// as well.
fn unnamed(text: &str) -> Option<(String, &str)> {
    let doubled = text.starts_with("{{");
    let (open, close) = if doubled { ("{{", "}}") } else { ("{", "}") };
    let (inner, after) = text.strip_prefix(open)?.split_once(close)?;
    let (word, number) = match inner.split_once('#') {
        Some((word, number)) => (word, Some(number)),
        None => (inner, None),
    };
    let (_, people) = KINDS.iter().find(|(compiler, _)| *compiler == word)?;
    let text = match number.filter(|&number| number != "0") {
        Some(number) => format!("{{{people}#{number}}}"),
        None => format!("{{{people}}}"),
    };
    Some((text, after))
}

/// Whether a demangled name belongs to the machinery that runs futures: an executor, the
/// combinators and the adapters of the standard library that a poll passes through between two
/// functions that people wrote.
///
/// ```
/// # use prof_symbols::is_async_plumbing;
/// assert!(is_async_plumbing("<core::pin::Pin<P> as core::future::future::Future>::poll"));
/// assert!(!is_async_plumbing("app::run::{async fn}"));
/// ```
pub fn is_async_plumbing(name: &str) -> bool {
    let short = shorten(name);
    PLUMBING.iter().any(|prefix| short.starts_with(prefix))
}

const PLUMBING: [&str; 30] = [
    "alloc::boxed::Box::call_once",
    "alloc::boxed::Box::poll",
    "async_executor::",
    "async_global_executor::",
    "async_io::driver::",
    "async_std::task::",
    "async_task::",
    "blocking::",
    "core::future::",
    "core::ops::function::",
    "core::panic::unwind_safe::",
    "core::pin::Pin",
    "core::task::",
    "futures_core::",
    "futures_executor::",
    "futures_lite::future::",
    "futures_util::",
    "smol::",
    "std::panic::",
    "std::panicking::",
    "std::sys::backtrace::__rust_begin_short_backtrace",
    "std::thread::local::",
    "tokio::loom::",
    "tokio::runtime::",
    "tokio::task::",
    "tokio::time::timeout::",
    "tokio::util::",
    "tokio_util::",
    "tracing::instrument::",
    "tracing::span::",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_name_reads_as_it_was_written() {
        let check = |name: &str, expected: &str| assert_eq!(readable(name), expected);
        check("main", "main");
        check("app::main::{{closure}}", "app::main::{closure}");
        check("app::main::{closure#0}", "app::main::{closure}");
        check(
            "app::main::{closure#3}::{closure#0}",
            "app::main::{closure#3}::{closure}",
        );
        check(
            "map<u32, app::main::{closure_env#1}>",
            "map<u32, app::main::{closure#1}>",
        );
        check("app::{impl#3}::run", "app::{impl#3}::run");
        check("app::{impl#0}::run", "app::{impl}::run");
        check(
            "Pin<&mut app::run::{async_fn_env#0}>",
            "Pin<&mut app::run::{async fn}>",
        );
        check("app::run::{async_block#2}", "app::run::{async block#2}");
        check(
            "main::{lambda(int)#1}::operator()",
            "main::{lambda(int)#1}::operator()",
        );
        check("app::f::{shim:vtable#0}", "app::f::{shim:vtable#0}");
        check("{{{{", "{{{{");
        check("{closure", "{closure");
    }

    #[test]
    fn executors_are_plumbing_and_peoples_code_is_not() {
        let check = |name: &str, expected| assert_eq!(is_async_plumbing(name), expected, "{name}");
        check(
            "tokio::runtime::task::raw::poll::<app::run::{async fn}>",
            true,
        );
        check("tokio::runtime::task::core::Core<T,S>::poll", true);
        check(
            "<tokio::runtime::task::core::Core<app::Task, Arc<Handle>>>::poll",
            true,
        );
        check(
            "<core::pin::Pin<P> as core::future::future::Future>::poll",
            true,
        );
        check(
            "<core::panic::unwind_safe::AssertUnwindSafe<F> as core::ops::function::FnOnce<()>>::call_once",
            true,
        );
        check("std::panicking::catch_unwind::do_call", true);
        check(
            "<futures_util::future::future::map::Map<Fut,F> as core::future::future::Future>::poll",
            true,
        );
        check("app::serve::{async fn}", false);
        check("<app::Server as core::future::future::Future>::poll", false);
        check("tokio::net::tcp::stream::TcpStream::read", false);
        check("main", false);
    }
}
