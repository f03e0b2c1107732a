//! One event.
//!
//! ```text
//!   "uprobe:" | "uretprobe:"  FILE ":" FUNCTION [ "+" OFFSET ]     terms, modifiers
//!   "mem:" ADDRESS [ "/" LENGTH ] [ ":" rwx ]                      modifiers
//!   NAME                        symbolic, r + hexadecimal, or an event of some PMU
//!   NUMBER ":" NUMBER           type and config
//!   PMU "/" terms "/"
//!   SYSTEM ":" NAME             tracepoint; both may hold * and ?
//!     terms     = [ "/" TERM [ "=" VALUE ] { "," ... } "/" ]
//!     modifiers = [ ":" LETTERS ], the colon may be missing after a slash
//! ```

use perf_event_open_sys::bindings as sys;
use prof_model::similar;

use super::catalog::Catalog;
use super::cursor::{Cursor, Located};
use super::error::Problem;
use super::meaning::Meaning;
use super::modifiers::Modifiers;
use super::spec::{Encoding, EventSpec, Family};
use super::terms::{self, Term, Terms, parse_number};
use super::tracepoint::NameProblem;
use super::{breakpoint, pmu, symbolic, tracepoint, uprobe};

/// Reads one event; several if the name is a pattern, or names several PMUs of a kind.
pub(super) fn read(cursor: &mut Cursor<'_>, catalog: &Catalog) -> Result<Vec<EventSpec>, Located> {
    let start = cursor.at();
    let probe = |cursor: &mut Cursor<'_>, prefix| cursor.eat(prefix);
    if probe(cursor, "uprobe:") {
        let meaning = uprobe::read(cursor, catalog, false)?;
        return finish(cursor, start, vec![meaning]);
    }
    if probe(cursor, "uretprobe:") {
        let meaning = uprobe::read(cursor, catalog, true)?;
        return finish(cursor, start, vec![meaning]);
    }
    if probe(cursor, "mem:") {
        let meaning = breakpoint::read(cursor)?;
        return finish(cursor, start, vec![meaning]);
    }
    let head = cursor.take_while(is_name);
    match (head, cursor.peek()) {
        ("", _) => Err(cursor.here(Problem::Empty)),
        (_, Some('/')) if find(head).is_none() => pmu_event(cursor, start, catalog),
        (_, Some(':')) if find(head).is_none() => with_colon(cursor, start, head, catalog),
        _ => {
            let meanings =
                bare(head, catalog).ok_or_else(|| unknown(cursor, start, head, catalog))?;
            finish(cursor, start, meanings)
        }
    }
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '*' | '?' | '@' | '!' | '[' | ']')
}

/// Names that mean the same on all machines.
fn find(name: &str) -> Option<Meaning> {
    let raw = || {
        let config = u64::from_str_radix(name.strip_prefix('r')?, 16).ok()?;
        let encoding = Encoding {
            kind: sys::PERF_TYPE_RAW,
            config,
            ..Encoding::default()
        };
        Some((Family::Raw, encoding))
    };
    let (family, encoding) = symbolic::find(name).or_else(raw)?;
    Some(Meaning::new(family, encoding))
}

fn bare(name: &str, catalog: &Catalog) -> Option<Vec<Meaning>> {
    let of_pmu = || {
        let found = pmu::find_event(catalog, name);
        (!found.is_empty()).then_some(found)
    };
    find(name).map(|meaning| vec![meaning]).or_else(of_pmu)
}

fn unknown(cursor: &Cursor<'_>, start: usize, name: &str, catalog: &Catalog) -> Located {
    let names = symbolic::all_names();
    let of_pmus = pmu::event_names(catalog);
    let all = names.iter().chain(&of_pmus).map(String::as_str);
    let nearest = similar(name, all);
    cursor.from(
        start,
        Problem::UnknownEvent {
            name: name.to_owned(),
            nearest,
        },
    )
}

/// `PMU/terms/`: the slash comes next.
fn pmu_event(
    cursor: &mut Cursor<'_>,
    start: usize,
    catalog: &Catalog,
) -> Result<Vec<EventSpec>, Located> {
    let pmus =
        pmu::find(catalog, cursor.since(start)).map_err(|problem| cursor.from(start, problem))?;
    cursor.eat("/");
    let terms = terms::read(cursor)?;
    let mut meanings = Vec::new();
    let mut name = None;
    for pmu in &pmus {
        let (mut meaning, named) = pmu.meaning(&terms)?;
        if pmus.len() > 1 {
            let typed = cursor.since(start);
            let terms = typed
                .find('/')
                .and_then(|at| typed.get(at..))
                .unwrap_or_default();
            meaning.name = Some(format!("{}{terms}", pmu.name));
        }
        meanings.push(meaning);
        name = named;
    }
    let typed = cursor.since(start);
    let modifiers = modifiers(cursor, true)?;
    let terms = meanings
        .first()
        .map(|meaning| meaning.terms.clone())
        .unwrap_or_default();
    Ok(specs(typed, meanings, modifiers, &terms, name.as_deref()))
}

/// A colon comes next, and the name before it is unknown: type and config in numbers, a PMU's event
/// with modifiers, or a tracepoint.
fn with_colon(
    cursor: &mut Cursor<'_>,
    start: usize,
    head: &str,
    catalog: &Catalog,
) -> Result<Vec<EventSpec>, Located> {
    let mut ahead = *cursor;
    ahead.eat(":");
    let second_at = ahead.at();
    let second = ahead.take_while(is_name);
    if let (Some(kind), Some(config)) = (parse_number(head), parse_number(second)) {
        *cursor = ahead;
        let kind = u32::try_from(kind).map_err(|_| {
            let problem = Problem::BadNumber {
                text: head.to_owned(),
                what: "an event's type",
            };
            (start..start + head.len(), problem)
        })?;
        let encoding = Encoding {
            kind,
            config,
            ..Encoding::default()
        };
        return finish(cursor, start, vec![Meaning::new(Family::Raw, encoding)]);
    }
    if let Some(meanings) = bare(head, catalog) {
        return finish(cursor, start, meanings);
    }
    if second.is_empty() {
        return Err(ahead.here(Problem::Expected {
            expected: "a tracepoint's name or a modifier",
        }));
    }
    // `cycels:u` is a name mistyped rather than the tracepoint u of the system cycels.
    if Modifiers::are_all(second) && !tracepoint::has_system(catalog, head) {
        return Err(unknown(cursor, start, head, catalog));
    }
    *cursor = ahead;
    let found = tracepoint::find(catalog, head, second);
    let meanings = found.map_err(|problem| match problem {
        NameProblem::System(problem) => cursor.from(start, problem),
        NameProblem::Name(problem) => cursor.from(second_at, problem),
    })?;
    finish(cursor, start, meanings)
}

/// Reads the terms and modifiers that may follow any name.
fn finish(
    cursor: &mut Cursor<'_>,
    start: usize,
    mut meanings: Vec<Meaning>,
) -> Result<Vec<EventSpec>, Located> {
    let mut terms = Terms::default();
    let mut name = None;
    let slashes = cursor.eat("/");
    if slashes {
        for term in terms::read(cursor)? {
            common_term(&term, &mut terms, &mut name, &mut meanings)?;
        }
    }
    let typed = cursor.since(start);
    let modifiers = modifiers(cursor, slashes)?;
    Ok(specs(typed, meanings, modifiers, &terms, name.as_deref()))
}

fn common_term(
    term: &Term<'_>,
    terms: &mut Terms,
    name: &mut Option<String>,
    meanings: &mut [Meaning],
) -> Result<(), Located> {
    if term.name == "name" && term.value.is_some() {
        *name = term.value.map(str::to_owned);
        return Ok(());
    }
    let config = pmu::config_field(term.name);
    if let (Some(field), Some(_)) = (config, term.value) {
        let value = term.number()?;
        for meaning in meanings {
            *field(&mut meaning.encoding) = value;
        }
        return Ok(());
    }
    if terms.take(term)? {
        return Ok(());
    }
    let nearest = similar(term.name, terms::COMMON);
    let takes = terms::COMMON.join(", ");
    Err(term.problem(Problem::UnknownTerm {
        name: term.name.to_owned(),
        nearest,
        takes,
    }))
}

/// The modifiers after a colon; directly, if they may follow a slash.
fn modifiers(cursor: &mut Cursor<'_>, after_slash: bool) -> Result<Modifiers, Located> {
    let mut modifiers = Modifiers::default();
    let colon = cursor.eat(":");
    if colon || after_slash && cursor.peek().is_some_and(char::is_alphanumeric) {
        let at = cursor.at();
        let letters = cursor.take_while(char::is_alphanumeric);
        modifiers.add(letters, at)?;
    }
    Ok(modifiers)
}

fn specs(
    typed: &str,
    meanings: Vec<Meaning>,
    modifiers: Modifiers,
    terms: &Terms,
    name: Option<&str>,
) -> Vec<EventSpec> {
    meanings
        .into_iter()
        .map(|meaning| {
            let mut terms = terms.clone();
            terms.rate = terms.rate.or(meaning.terms.rate);
            EventSpec {
                name: name
                    .map(str::to_owned)
                    .or(meaning.name)
                    .unwrap_or_else(|| typed.to_owned()),
                family: meaning.family,
                encoding: meaning.encoding,
                modifiers,
                terms,
                scale: meaning.scale,
                cpus: meaning.cpus,
            }
        })
        .collect()
}
