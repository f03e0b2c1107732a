//! The filter that the page begins with.

use super::head::{Start, ThreadHead};
use crate::error::Error;
use crate::filter::Filter;
use crate::filter::selection::Selection;
use crate::pattern::Pattern;
use crate::symbolize::SymbolizedProfile;

pub(super) fn of(
    symbolized: &SymbolizedProfile,
    filter: &Filter,
    threads: &[ThreadHead<'_>],
    zero: u64,
) -> Result<Start, Error> {
    let text = |pattern: &Option<Pattern>| {
        pattern
            .as_ref()
            .map_or_else(String::new, Pattern::to_string)
    };
    let last = symbolized
        .profile()
        .samples
        .iter()
        .map(|sample| sample.time)
        .max();
    let nanoseconds =
        |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let end = last.unwrap_or(zero) - zero + 1;
    let range = (filter.since.is_some() || filter.until.is_some()).then(|| {
        let from = filter.since.map_or(0, nanoseconds).min(end);
        (from, filter.until.map_or(end, nanoseconds).min(end))
    });
    let any = |list: &[i32], value| list.is_empty() || list.contains(&value);
    let named = !filter.pids.is_empty() || !filter.tids.is_empty();
    let threads = named.then(|| {
        let all = threads.iter().enumerate();
        let wanted = all.filter(|(_, it)| any(&filter.pids, it.pid) && any(&filter.tids, it.tid));
        wanted.map(|(index, _)| index).collect()
    });
    let languages: Vec<&str> = filter.languages.iter().map(|it| it.name()).collect();
    Ok(Start {
        event: Selection::new(symbolized, filter)?.event(),
        range,
        threads,
        cpus: (!filter.cpus.is_empty()).then(|| filter.cpus.clone()),
        comm: text(&filter.comm),
        module: text(&filter.module),
        function: text(&filter.function),
        language: languages.join(","),
        ignore: text(&filter.ignore),
        hide: text(&filter.hide),
        no_kernel: filter.no_kernel,
        no_inline: filter.no_inline,
        fold_async: filter.fold_async,
    })
}
