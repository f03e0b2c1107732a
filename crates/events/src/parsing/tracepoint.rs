//! Tracepoints: the kernel's own places of interest, numbered in tracefs.

use std::fs;
use std::io;
use std::path::Path;

use perf_event_open_sys::bindings as sys;
use prof_model::similar;

use super::catalog::{Catalog, names_in};
use super::error::Problem;
use super::meaning::Meaning;
use super::pattern::matches;
use super::spec::{Encoding, Family};

/// Whether there is such a system; `false` also if tracefs is not readable.
pub(super) fn has_system(catalog: &Catalog, system: &str) -> bool {
    catalog
        .tracepoints()
        .is_ok_and(|events| events.join(system).is_dir())
}

/// A problem with a tracepoint's name, and the part that it is about.
pub(super) enum NameProblem {
    System(Problem),
    Name(Problem),
}

/// The tracepoints that fit; both names may hold `*` and `?`.
pub(super) fn find(
    catalog: &Catalog,
    system: &str,
    name: &str,
) -> Result<Vec<Meaning>, NameProblem> {
    let refused = |path: &Path, error: &io::Error| Problem::NoTracepoints {
        path: path.display().to_string(),
        reason: error.to_string(),
    };
    let events = catalog
        .tracepoints()
        .map_err(|(path, error)| NameProblem::System(refused(&path, &error)))?;
    let systems = names_in(&events);
    let mut found = Vec::new();
    let mut others = Vec::new();
    for system in systems.iter().filter(|known| matches(system, known)) {
        for known in names_in(&events.join(system)) {
            if !matches(name, &known) {
                others.push(known);
                continue;
            }
            let file = events.join(system).join(&known).join("id");
            match fs::read_to_string(&file) {
                Ok(id) => {
                    found.extend(id.trim().parse().ok().map(|id| meaning(system, &known, id)))
                }
                // `enable` and `filter` lie next to the tracepoints, and `ftrace` has some
                // without a number.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                    ) => {}
                Err(error) => return Err(NameProblem::Name(refused(&file, &error))),
            }
        }
    }
    if found.is_empty() {
        return Err(unknown(system, name, &systems, &others));
    }
    Ok(found)
}

fn meaning(system: &str, name: &str, id: u64) -> Meaning {
    let encoding = Encoding {
        kind: sys::PERF_TYPE_TRACEPOINT,
        config: id,
        ..Encoding::default()
    };
    let mut meaning = Meaning::new(Family::Tracepoint, encoding);
    meaning.name = Some(format!("{system}:{name}"));
    meaning
}

fn unknown(system: &str, name: &str, systems: &[String], others: &[String]) -> NameProblem {
    let in_system = similar(name, others.iter().map(String::as_str));
    let nearest = match others {
        [] => similar(system, systems.iter().map(String::as_str)),
        _ => in_system
            .into_iter()
            .map(|near| format!("{system}:{near}"))
            .collect(),
    };
    let full = format!("{system}:{name}");
    let problem = Problem::UnknownTracepoint {
        name: full,
        nearest,
    };
    match others {
        [] => NameProblem::System(problem),
        _ => NameProblem::Name(problem),
    }
}
