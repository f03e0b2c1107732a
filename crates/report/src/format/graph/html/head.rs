//! The head of the page's data, in JSON. `web/src/data.ts` reads it.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::symbolize::Language;

/// Raised when the page of an earlier version could not read the data.
pub(super) const VERSION: u32 = 3;

#[derive(Serialize)]
pub(super) struct Head<'a> {
    pub(super) version: u32,
    pub(super) title: &'a str,
    /// In the order of the numbers in the column `function_language`, from 1; 0 is none.
    pub(super) languages: [&'static str; Language::ALL.len()],
    pub(super) profiles: Vec<ProfileHead<'a>>,
}

#[derive(Serialize)]
pub(super) struct ProfileHead<'a> {
    pub(super) recording: Recording<'a>,
    pub(super) verdict: Option<VerdictText>,
    pub(super) has_times: bool,
    pub(super) has_threads: bool,
    pub(super) events: Vec<EventHead<'a>>,
    pub(super) start: Start,
    pub(super) threads: Vec<ThreadHead<'a>>,
    pub(super) lifetimes: Vec<Lifetime>,
    pub(super) strings: Vec<String>,
    pub(super) ends: Vec<&'static str>,
    pub(super) sources: Vec<SourceText>,
    pub(super) code: Vec<Code<'a>>,
    pub(super) columns: BTreeMap<&'static str, (usize, usize)>,
}

/// A [`Filter`](crate::Filter) as the page keeps it: by indexes, times counted from the first
/// sample.
#[derive(Serialize)]
pub(super) struct Start {
    pub(super) event: u16,
    /// Nanoseconds, from and up to but without.
    pub(super) range: Option<(u64, u64)>,
    pub(super) threads: Option<Vec<usize>>,
    pub(super) cpus: Option<Vec<u32>>,
    pub(super) comm: String,
    pub(super) module: String,
    pub(super) function: String,
    /// Names of languages, separated by commas.
    pub(super) language: String,
    pub(super) ignore: String,
    pub(super) hide: String,
    pub(super) no_kernel: bool,
    pub(super) no_inline: bool,
    pub(super) fold_async: bool,
}

#[derive(Serialize)]
pub(super) struct Recording<'a> {
    pub(super) command: String,
    pub(super) hostname: &'a str,
    pub(super) kernel: &'a str,
    pub(super) arch: &'a str,
}

#[derive(Serialize)]
pub(super) struct VerdictText {
    pub(super) grade: String,
    pub(super) summary: String,
    pub(super) problems: Vec<String>,
}

#[derive(Serialize)]
pub(super) struct EventHead<'a> {
    pub(super) name: &'a str,
    pub(super) unit: &'a str,
    pub(super) for_callers: bool,
}

#[derive(Serialize)]
pub(super) struct ThreadHead<'a> {
    pub(super) pid: i32,
    pub(super) tid: i32,
    pub(super) name: &'a str,
    pub(super) process: &'a str,
}

#[derive(Serialize)]
pub(super) struct Lifetime {
    pub(super) pid: i32,
    pub(super) tid: i32,
    pub(super) start: Option<u64>,
    pub(super) end: Option<u64>,
}

#[derive(Serialize)]
pub(super) struct SourceText {
    pub(super) file: usize,
    pub(super) first: u32,
    pub(super) lines: Vec<String>,
}

#[derive(Serialize)]
pub(super) struct Code<'a> {
    pub(super) function: &'a str,
    pub(super) module: &'a str,
    pub(super) instructions: Vec<CodeLine<'a>>,
}

#[derive(Serialize)]
pub(super) struct CodeLine<'a> {
    pub(super) address: u64,
    pub(super) text: &'a str,
    pub(super) line: u32,
    pub(super) own: u64,
    pub(super) total: u64,
}
