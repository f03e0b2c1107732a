//! PMUs as sysfs describes them: a folder each, with the files
//!
//! ```text
//!   type              the number for perf_event_attr.type
//!   format/event      config:0-7,32-35        which bits of which field the term `event` fills
//!   events/ref-cycles event=0x120,umask=0x01  terms under one name
//!   events/X.scale, events/X.unit             the value of a count of one
//!   cpumask           0                       the only CPUs to open it on
//! ```
//!
//! (Documentation/ABI/testing/sysfs-bus-event_source-devices-* in the kernel's sources)

mod format;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use prof_model::similar;

use super::catalog::{Catalog, names_in};
use super::cursor::Located;
use super::error::Problem;
use super::meaning::Meaning;
use super::pattern::matches;
use super::spec::{Encoding, Family};
use super::terms::{self, Term};
use crate::system::parse_list;
use format::Format;

/// A PMU: something that counts, with a folder in sysfs.
#[derive(Clone, Debug, PartialEq)]
pub struct Pmu {
    /// The folder's name.
    pub name: String,
    /// The number for `perf_event_attr.type`.
    pub kind: u32,
    /// The only CPUs to open its events on, if it counts for more than one at a time.
    pub cpus: Option<Vec<u32>>,
    /// The events that it names itself, by name.
    pub events: BTreeMap<String, PmuEvent>,
    formats: BTreeMap<String, Format>,
}

/// An event that a PMU names itself.
#[derive(Clone, Debug, PartialEq)]
pub struct PmuEvent {
    /// The terms for the name, such as `event=0xc0,umask=0x1`.
    pub terms: String,
    /// The value of a count of one: a factor and its unit.
    pub scale: Option<(f64, String)>,
}

/// The field that a term such as `config1` fills as a whole.
pub(super) fn config_field(name: &str) -> Option<fn(&mut Encoding) -> &mut u64> {
    match name {
        "config" => Some(|encoding| &mut encoding.config),
        "config1" => Some(|encoding| &mut encoding.config1),
        "config2" => Some(|encoding| &mut encoding.config2),
        "config3" => Some(|encoding| &mut encoding.config3),
        _ => None,
    }
}

impl Catalog {
    /// The PMUs of this machine, by name. Unreadable ones are left out.
    pub fn pmus(&self) -> Vec<Pmu> {
        let names = names_in(&self.devices);
        names
            .iter()
            .filter_map(|name| Pmu::load(&self.devices, name))
            .collect()
    }
}

/// The PMUs for a name: the one of that name; else all that fit the pattern; else all of a kind,
/// such as `uncore_imc_0` and `uncore_imc_1` for `imc` or `uncore_imc`.
pub(super) fn find(catalog: &Catalog, name: &str) -> Result<Vec<Pmu>, Problem> {
    if !name.contains('/')
        && let Some(pmu) = Pmu::load(&catalog.devices, name)
    {
        return Ok(vec![pmu]);
    }
    let names = names_in(&catalog.devices);
    let pmus: Vec<Pmu> = names
        .iter()
        .filter(|full| matches(name, full) || is_instance(full, name))
        .filter_map(|full| Pmu::load(&catalog.devices, full))
        .collect();
    if pmus.is_empty() {
        let nearest = similar(name, names.iter().map(String::as_str));
        return Err(Problem::UnknownPmu {
            name: name.to_owned(),
            nearest,
            all: names.join(", "),
        });
    }
    Ok(pmus)
}

fn is_instance(full: &str, kind: &str) -> bool {
    let own = full.trim_end_matches(|c: char| c.is_ascii_digit());
    let own = own.strip_suffix('_').unwrap_or(own);
    own == kind || own.strip_prefix("uncore_") == Some(kind)
}

/// The event of that name, of each PMU that has it.
pub(super) fn find_event(catalog: &Catalog, name: &str) -> Vec<Meaning> {
    if name.contains(['*', '?', '/']) {
        return Vec::new();
    }
    let pmus: Vec<Pmu> = catalog
        .pmus()
        .into_iter()
        .filter(|pmu| pmu.events.contains_key(name))
        .collect();
    let several = pmus.len() > 1;
    let term = Term {
        name,
        value: None,
        place: 0..name.len(),
    };
    pmus.iter()
        .filter_map(|pmu| {
            let (mut meaning, _) = pmu.meaning(std::slice::from_ref(&term)).ok()?;
            meaning.name = several.then(|| format!("{}/{name}/", pmu.name));
            Some(meaning)
        })
        .collect()
}

/// The names of all events that PMUs name themselves.
pub(super) fn event_names(catalog: &Catalog) -> Vec<String> {
    catalog
        .pmus()
        .into_iter()
        .flat_map(|pmu| pmu.events.into_keys())
        .collect()
}

impl Pmu {
    /// The terms that it takes between slashes, in order.
    pub fn terms(&self) -> impl Iterator<Item = &str> {
        self.formats.keys().map(String::as_str)
    }

    fn load(devices: &Path, name: &str) -> Option<Self> {
        let folder = devices.join(name);
        let kind = read(&folder.join("type"))?.parse().ok()?;
        let formats = names_in(&folder.join("format"))
            .into_iter()
            .filter_map(|term| {
                let format = Format::parse(&read(&folder.join("format").join(&term))?)?;
                Some((term, format))
            })
            .collect();
        let cpus = read(&folder.join("cpumask")).and_then(|list| parse_list(&list));
        let events = events_in(&folder.join("events"));
        Some(Self {
            name: name.to_owned(),
            kind,
            cpus,
            events,
            formats,
        })
    }

    /// The meaning of the terms between the slashes, and the name that they set.
    pub(super) fn meaning(&self, terms: &[Term<'_>]) -> Result<(Meaning, Option<String>), Located> {
        let encoding = Encoding {
            kind: self.kind,
            ..Encoding::default()
        };
        let mut meaning = Meaning::new(Family::Pmu(self.name.clone()), encoding);
        meaning.cpus.clone_from(&self.cpus);
        let mut name = None;
        for term in terms {
            match self.events.get(term.name) {
                Some(event) if term.value.is_none() && !self.formats.contains_key(term.name) => {
                    self.apply_event(event, &mut meaning, term)?;
                }
                _ => self.apply(term, &mut meaning, &mut name)?,
            }
        }
        Ok((meaning, name))
    }

    fn apply_event(
        &self,
        event: &PmuEvent,
        meaning: &mut Meaning,
        typed: &Term<'_>,
    ) -> Result<(), Located> {
        meaning.scale.clone_from(&event.scale);
        for part in event.terms.split(',') {
            let (name, value) = match part.split_once('=') {
                Some((name, value)) => (name.trim(), Some(value.trim())),
                None => (part.trim(), None),
            };
            if value == Some("?") {
                let expected = "a value (this event needs more terms, see its file in sysfs)";
                return Err(typed.problem(Problem::Expected { expected }));
            }
            let term = Term {
                name,
                value,
                place: typed.place.clone(),
            };
            self.apply(&term, meaning, &mut None)?;
        }
        Ok(())
    }

    fn apply(
        &self,
        term: &Term<'_>,
        meaning: &mut Meaning,
        name: &mut Option<String>,
    ) -> Result<(), Located> {
        if let Some(format) = self.formats.get(term.name) {
            let value = term.number()?;
            return format.put(value, &mut meaning.encoding).ok_or_else(|| {
                let bits = format.bits();
                term.problem(Problem::TooLarge {
                    term: term.name.to_owned(),
                    bits,
                    value,
                })
            });
        }
        if let (Some(field), Some(_)) = (config_field(term.name), term.value) {
            *field(&mut meaning.encoding) = term.number()?;
            return Ok(());
        }
        if let ("name", Some(value)) = (term.name, term.value) {
            *name = Some(value.to_owned());
            return Ok(());
        }
        if meaning.terms.take(term)? {
            return Ok(());
        }
        match raw(term) {
            Some(config) => meaning.encoding.config = config,
            None => return Err(self.unknown(term)),
        }
        Ok(())
    }

    fn unknown(&self, term: &Term<'_>) -> Located {
        let known = || {
            self.formats
                .keys()
                .chain(self.events.keys())
                .map(String::as_str)
        };
        let nearest = similar(term.name, known().chain(terms::COMMON));
        let takes: Vec<&str> = known().collect();
        let name = term.name.to_owned();
        term.problem(Problem::UnknownTerm {
            name,
            nearest,
            takes: takes.join(", "),
        })
    }
}

/// `r1c2` between slashes: the number as the PMU takes it.
fn raw(term: &Term<'_>) -> Option<u64> {
    let digits = term
        .name
        .strip_prefix('r')
        .filter(|_| term.value.is_none())?;
    u64::from_str_radix(digits, 16).ok()
}

fn events_in(folder: &Path) -> BTreeMap<String, PmuEvent> {
    const ABOUT_EVENTS: [&str; 4] = [".scale", ".unit", ".per-pkg", ".snapshot"];
    let names = names_in(folder).into_iter();
    names
        .filter(|name| !ABOUT_EVENTS.iter().any(|suffix| name.ends_with(suffix)))
        .filter_map(|name| {
            let terms = read(&folder.join(&name))?;
            let scale = read(&folder.join(format!("{name}.scale")))
                .and_then(|scale| scale.parse().ok())
                .unwrap_or(1.0);
            let unit = read(&folder.join(format!("{name}.unit")));
            let scale = (unit.is_some() || scale != 1.0).then(|| (scale, unit.unwrap_or_default()));
            Some((name, PmuEvent { terms, scale }))
        })
        .collect()
}

fn read(file: &Path) -> Option<String> {
    Some(fs::read_to_string(file).ok()?.trim().to_owned())
}

/// The number for `perf_event_attr.type`, and a term's bit, of a PMU that only has to be there.
pub(super) fn kind_of(catalog: &Catalog, name: &str) -> Option<Pmu> {
    Pmu::load(&catalog.devices, name)
}

impl Pmu {
    /// Sets a term, if the PMU has it.
    pub(super) fn set(&self, term: &str, value: u64, encoding: &mut Encoding) -> Option<()> {
        self.formats.get(term)?.put(value, encoding)
    }
}
