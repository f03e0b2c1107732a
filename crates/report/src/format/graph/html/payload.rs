//! The data of the page: a head in JSON, then the columns of each profile.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::Arc;

use prof_model::StackEnd;
use prof_symbols::{is_async_plumbing, shorten};
use rustc_hash::FxHashMap;

use super::HtmlInput;
use super::columns::Columns;
use super::head::{
    Code, CodeLine, EventHead, Head, Lifetime, ProfileHead, Recording, SourceText, ThreadHead,
    VERSION, VerdictText,
};
use super::start;
use crate::error::Error;
use crate::filter::Filter;
use crate::format::tools::strings::StringTable;
use crate::profile::{Event, Frame, Profile, Sample};
use crate::source::Sources;
use crate::symbolize::primitives::is_primitive;
use crate::symbolize::{Function, FunctionKind, Language, Languages, SymbolizedProfile};
use crate::view::annotate::CodeListing;

/// Bytes of source text in a page at most.
const MOST_SOURCE: usize = 4 << 20;
/// Lines shown around those with samples.
const CONTEXT: u32 = 4;

/// Writes the head's length (32 bits, little-endian), the head and the columns.
pub(super) fn write(
    title: &str,
    inputs: &[HtmlInput<'_>],
    filter: &Filter,
    sources: &Sources,
    out: &mut impl Write,
) -> Result<(), Error> {
    let mut bytes = Vec::new();
    let mut head = Head {
        version: VERSION,
        title,
        languages: Language::ALL.map(Language::name),
        profiles: Vec::new(),
    };
    for input in inputs {
        let (profile, columns) = profile_head(input, filter, sources, bytes.len())?;
        head.profiles.push(profile);
        bytes.extend(columns);
    }
    let head = serde_json::to_vec(&head).map_err(io::Error::from)?;
    let length = u32::try_from(head.len()).map_err(io::Error::other)?;
    out.write_all(&length.to_le_bytes())?;
    out.write_all(&head)?;
    Ok(out.write_all(&bytes)?)
}

fn profile_head<'a>(
    input: &'a HtmlInput<'a>,
    filter: &Filter,
    sources: &Sources,
    base: usize,
) -> Result<(ProfileHead<'a>, Vec<u8>), Error> {
    let symbolized = input.profile;
    let profile = symbolized.profile();
    let mut strings = StringTable::default();
    let mut columns = Columns::default();
    add_functions(symbolized, &mut strings, &mut columns);
    let files = add_frames(symbolized, &mut strings, &mut columns);
    add_stacks(symbolized, &mut columns);
    let zero = profile.samples.iter().map(|sample| sample.time).min();
    let zero = zero.unwrap_or(0);
    let (threads, ends) = add_samples(profile, zero, &mut columns);
    let (bytes, places) = columns.finish(base);
    let head = ProfileHead {
        recording: recording(profile),
        verdict: verdict(symbolized),
        has_times: !profile.missing_data.times,
        has_threads: !profile.missing_data.threads,
        events: profile.events.iter().map(event).collect(),
        start: start::of(symbolized, filter, &threads, zero)?,
        threads,
        lifetimes: lifetimes(profile, zero),
        sources: source_texts(symbolized, &files, sources),
        strings: strings.into_strings(),
        ends,
        code: input.code.iter().map(code).collect(),
        columns: places,
    };
    Ok((head, bytes))
}

fn recording(profile: &Profile) -> Recording<'_> {
    let header = &profile.header;
    Recording {
        command: header.command_line.join(" "),
        hostname: header.hostname.as_deref().unwrap_or(""),
        kernel: header.os_release.as_deref().unwrap_or(""),
        arch: header.arch.as_deref().unwrap_or(""),
    }
}

fn verdict(symbolized: &SymbolizedProfile) -> Option<VerdictText> {
    let known = !symbolized.profile().missing_data.quality;
    known.then(|| {
        let verdict = symbolized.verdict();
        VerdictText {
            grade: verdict.grade.to_string(),
            summary: verdict.summary().to_owned(),
            problems: verdict.problems().iter().map(ToString::to_string).collect(),
        }
    })
}

fn event(event: &Event) -> EventHead<'_> {
    EventHead {
        name: &event.name,
        unit: event.unit.name(),
        for_callers: event.is_off_cpu() || event.allocates(),
    }
}

fn lifetimes(profile: &Profile, zero: u64) -> Vec<Lifetime> {
    let mut all: Vec<Lifetime> = (profile.thread_lifetimes.by_thread().into_values().flatten())
        .map(|life| Lifetime {
            pid: life.pid,
            tid: life.tid,
            start: life.start.map(|time| time.saturating_sub(zero)),
            end: life.end.map(|time| time.saturating_sub(zero)),
        })
        .collect();
    all.sort_by_key(|life| (life.pid, life.tid, life.start));
    all
}

fn code(listing: &CodeListing) -> Code<'_> {
    let instructions = listing.instructions.as_deref().unwrap_or_default();
    let line = |places: &[prof_symbols::SymbolFrame]| places.first()?.line;
    Code {
        function: &listing.function,
        module: &listing.module,
        instructions: instructions
            .iter()
            .map(|one| CodeLine {
                address: one.address,
                text: &one.text,
                line: line(&one.places).unwrap_or(0),
                own: one.own.value,
                total: one.total.value,
            })
            .collect(),
    }
}

fn add_functions(symbolized: &SymbolizedProfile, strings: &mut StringTable, columns: &mut Columns) {
    let functions = symbolized.functions();
    let names: Vec<_> = functions.iter().map(|it| strings.index(&it.name)).collect();
    let short: Vec<_> = functions
        .iter()
        .map(|it| strings.index(&short_name(it)) as u64)
        .collect();
    columns.add("function_short", short);
    let modules: Vec<_> = functions
        .iter()
        .map(|it| strings.index(&it.module))
        .collect();
    columns.add("function_name", names.into_iter().map(|it| it as u64));
    columns.add("function_module", modules.into_iter().map(|it| it as u64));
    columns.add(
        "function_kind",
        functions.iter().map(|it| kind_number(it.kind)),
    );
    let languages = Languages::of(symbolized);
    let language = |id| languages.get(id).map_or(0, |it| it as u8 + 1);
    columns.add("function_language", symbolized.function_ids().map(language));
    let plumbing = functions.iter().map(|it| is_async_plumbing(&it.name));
    columns.add("function_plumbing", plumbing);
    let native = symbolized.profile().native;
    let primitive = functions.iter().map(|it| !native && is_primitive(it));
    columns.add("function_primitive", primitive);
}

/// The name for a box, which has little room.
fn short_name(function: &Function) -> Cow<'_, str> {
    match function.kind {
        FunctionKind::User | FunctionKind::Jit => shorten(&function.name),
        _ => Cow::Borrowed(&function.name),
    }
}

/// The number of a kind, which the page has in the same order (web/src/data.ts).
fn kind_number(kind: FunctionKind) -> u8 {
    match kind {
        FunctionKind::User => 0,
        FunctionKind::Kernel => 1,
        FunctionKind::Jit => 2,
        FunctionKind::Interpreted(_) => 3,
        FunctionKind::Missing => 4,
        FunctionKind::State => 5,
    }
}

/// By file: its index in the strings, and its sampled lines.
type Files = FxHashMap<Arc<str>, (usize, (u32, u32))>;

fn add_frames(
    symbolized: &SymbolizedProfile,
    strings: &mut StringTable,
    columns: &mut Columns,
) -> Files {
    let frames = &symbolized.profile().frames;
    let all = || frames.iter().flat_map(|(id, _)| symbolized.locations(id));
    let counts = frames
        .iter()
        .map(|(id, _)| symbolized.locations(id).len() as u64);
    columns.add("frame_locations", counts);
    columns.add(
        "frame_depth",
        frames.iter().map(|(_, frame)| match frame {
            Frame::Cut(_) => 0,
            Frame::LeftOut(count) => count,
            _ => 1,
        }),
    );
    let function = all().map(|it| (it.function.index() as u64) << 1 | u64::from(it.inlined));
    columns.add("location_function", function);
    let mut files = Files::default();
    let mut numbers = Vec::new();
    for location in all() {
        let Some(file) = &location.file else {
            numbers.push(0_u64);
            continue;
        };
        let line = location.line.unwrap_or(1);
        let entry = files.entry(Arc::clone(file));
        let (number, lines) = entry.or_insert_with(|| (strings.index(file), (line, line)));
        *lines = (lines.0.min(line), lines.1.max(line));
        numbers.push(*number as u64 + 1);
    }
    columns.add("location_file", numbers);
    columns.add("location_line", all().map(|it| it.line.unwrap_or(0)));
    files
}

fn add_stacks(symbolized: &SymbolizedProfile, columns: &mut Columns) {
    let stacks = &symbolized.profile().stacks;
    let distance = |id| {
        let prefix = symbolized.prefix(id);
        prefix.map_or(0, |prefix| (id.index() - prefix.index()) as u64)
    };
    columns.add("stack_prefix", stacks.iter().map(distance));
    let frame = |id| stacks.frame(id).index() as u64;
    columns.add("stack_frame", stacks.iter().map(frame));
}

fn add_samples<'a>(
    profile: &'a Profile,
    zero: u64,
    columns: &mut Columns,
) -> (Vec<ThreadHead<'a>>, Vec<&'static str>) {
    let samples = &profile.samples;
    let column = |of: fn(&Sample) -> u64| samples.iter().map(move |sample| of(&sample));
    let mut before = zero;
    let times = samples.iter().map(|sample| {
        let passed = sample.time - before;
        before = sample.time;
        passed
    });
    columns.add("sample_time", times);
    let mut threads = Vec::new();
    let mut numbers = FxHashMap::default();
    let thread = samples.iter().map(|sample| {
        *numbers
            .entry((sample.pid, sample.tid, sample.name))
            .or_insert_with(|| {
                threads.push(sample);
                threads.len() as u64 - 1
            })
    });
    columns.add("sample_thread", thread);
    columns.add("sample_event", column(|sample| sample.event.into()));
    columns.add("sample_stack", column(|sample| sample.stack.index() as u64));
    columns.add("sample_period", column(|sample| sample.period));
    columns.add("sample_count", column(|sample| sample.count));
    let cpu = column(|sample| sample.cpu.map_or(0, |cpu| u64::from(cpu) + 1));
    columns.add("sample_cpu", cpu);
    columns.add("sample_remote", column(|sample| sample.remote_read.into()));
    let mut ends: Vec<StackEnd> = Vec::new();
    let end = samples.iter().map(|sample| {
        let known = ends.iter().position(|&end| end == sample.end);
        known.unwrap_or_else(|| {
            ends.push(sample.end);
            ends.len() - 1
        }) as u64
    });
    columns.add("sample_end", end);
    let described = ends.into_iter().map(StackEnd::describe).collect();
    (threads_of(profile, &threads), described)
}

fn threads_of<'a>(profile: &'a Profile, first_samples: &[Sample]) -> Vec<ThreadHead<'a>> {
    let name = |sample: &Sample| &profile.names[sample.name];
    let processes = profile.process_names();
    first_samples
        .iter()
        .map(|sample| ThreadHead {
            pid: sample.pid,
            tid: sample.tid,
            name: name(sample),
            process: processes
                .get(&sample.pid)
                .map_or("", |&name| &profile.names[name]),
        })
        .collect()
}

/// The text around the sampled lines, of the files with the most innermost frames first, up to the
/// limit.
fn source_texts(
    symbolized: &SymbolizedProfile,
    files: &Files,
    sources: &Sources,
) -> Vec<SourceText> {
    let mut space = MOST_SOURCE;
    let mut texts = Vec::new();
    for file in by_weight(symbolized) {
        let Some(&(number, (first, last))) = files.get(&file) else {
            continue;
        };
        let Ok(text) = sources.find(&file) else {
            continue;
        };
        let first = first.saturating_sub(CONTEXT).max(1);
        let lines = (first..=last.saturating_add(CONTEXT)).map_while(|line| text.line(line));
        let lines: Vec<String> = lines.map(str::to_owned).collect();
        let size: usize = lines.iter().map(|line| line.len() + 4).sum();
        let Some(left) = space.checked_sub(size) else {
            continue;
        };
        space = left;
        texts.push(SourceText {
            file: number,
            first,
            lines,
        });
    }
    texts
}

/// The files of the sampled functions, the heaviest first.
fn by_weight(symbolized: &SymbolizedProfile) -> Vec<Arc<str>> {
    let profile = symbolized.profile();
    let mut stacks = vec![0_u64; profile.stacks.len()];
    for sample in profile.samples.iter() {
        let weight = &mut stacks[sample.stack.index()];
        *weight = weight.saturating_add(sample.count);
    }
    let mut weights: FxHashMap<Arc<str>, u64> = FxHashMap::default();
    for (id, weight) in profile.stacks.iter().zip(stacks) {
        for location in symbolized.locations(profile.stacks.frame(id)) {
            if let Some(file) = &location.file {
                *weights.entry(Arc::clone(file)).or_default() += weight;
            }
        }
    }
    let mut files: Vec<_> = weights.into_iter().collect();
    files.sort_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
    files.into_iter().map(|(file, _)| file).collect()
}
