//! `prof list`: the events that this machine and this user can use, tried one by one.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, Result};
use prof_events::counting::{Ability, Answer, Prober};
use prof_events::parsing::{
    Catalog, EventSpec, NamedEvent, cache_events, hardware_events, matches, software_events,
};
use prof_events::system::System;
use serde::Serialize;

use crate::flags::ListFlags;
use crate::output::write_stdout;

/// Events of one kind.
struct Section {
    title: String,
    entries: Vec<Entry>,
    /// A note below them.
    note: Option<String>,
}

struct Entry {
    names: Vec<String>,
    ability: Result<Ability, String>,
}

/// Prints all events, and whether each can be counted and sampled.
///
/// # Errors
///
/// The machine's settings cannot be read, or the output cannot be written.
pub(crate) fn run(flags: &ListFlags) -> Result<ExitCode> {
    let lister = Lister::new(flags.pattern.clone())?;
    let sections = lister.sections();
    let found = sections.iter().any(|section| !section.entries.is_empty());
    write_stdout(|out| match flags.json {
        true => print_json(&sections, out),
        false => print(&sections, out),
    })?;
    match (found, &flags.pattern) {
        (false, Some(pattern)) => {
            anyhow::bail!("no event matches {pattern:?}: `prof list` lists all")
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

struct Lister {
    catalog: Catalog,
    prober: Prober,
    pattern: Option<String>,
}

impl Lister {
    fn new(pattern: Option<String>) -> Result<Self> {
        let catalog = Catalog::system();
        let system = System::read().context("cannot read the machine's settings")?;
        let prober = Prober::new(&catalog, &system);
        Ok(Self {
            catalog,
            prober,
            pattern,
        })
    }

    fn sections(&self) -> Vec<Section> {
        let mut sections = vec![
            self.named("Hardware", hardware_events()),
            self.named("Software", software_events()),
            self.named("Caches", cache_events()),
        ];
        sections.extend(self.pmus());
        sections.push(self.tracepoints());
        sections.push(self.places());
        let reported = |section: &Section| !section.entries.is_empty() || section.note.is_some();
        sections.retain(reported);
        sections
    }

    fn named(&self, title: &str, events: Vec<NamedEvent>) -> Section {
        let wanted = events
            .into_iter()
            .filter(|event| event.names.iter().any(|name| self.is_wanted(name)));
        let entries = wanted.map(|event| {
            let name = event.names.first().cloned().unwrap_or_default();
            self.entry(event.names, &name)
        });
        Section {
            title: title.to_owned(),
            entries: entries.collect(),
            note: None,
        }
    }

    fn pmus(&self) -> Vec<Section> {
        let pmus = self.catalog.pmus().into_iter();
        let sections = pmus.map(|pmu| {
            let names = pmu
                .events
                .keys()
                .map(|event| format!("{}/{event}/", pmu.name));
            let entries = names
                .filter(|name| self.is_wanted(name))
                .map(|name| self.entry(vec![name.clone()], &name));
            let terms: Vec<&str> = pmu.terms().collect();
            let note = match terms.is_empty() || self.pattern.is_some() {
                true => None,
                false => Some(format!(
                    "{}/TERM=VALUE,.../ with these terms: {}",
                    pmu.name,
                    terms.join(", ")
                )),
            };
            Section {
                title: format!("PMU {}", pmu.name),
                entries: entries.collect(),
                note,
            }
        });
        sections.collect()
    }

    fn tracepoints(&self) -> Section {
        let title = "Tracepoints".to_owned();
        let all = match self.catalog.parse("*:*") {
            Ok(groups) => groups
                .into_iter()
                .flat_map(|group| group.events)
                .collect::<Vec<EventSpec>>(),
            Err(error) => {
                let note = self.pattern.is_none().then(|| error.problem.to_string());
                return Section {
                    title,
                    entries: Vec::new(),
                    note,
                };
            }
        };
        if self.pattern.is_none() {
            let sample = all.first().map(|event| self.prober.probe(event));
            let can = sample
                .map(|ability| status(&Ok(ability)).join(" / "))
                .unwrap_or_default();
            let note = format!(
                "{} (count / sample: {can}); a pattern lists them, such as prof list 'sched:*'",
                all.len()
            );
            return Section {
                title,
                entries: Vec::new(),
                note: Some(note),
            };
        }
        let wanted = all.into_iter().filter(|event| self.is_wanted(&event.name));
        let entries = wanted.map(|event| Entry {
            ability: Ok(self.prober.probe(&event)),
            names: vec![event.name],
        });
        Section {
            title,
            entries: entries.collect(),
            note: None,
        }
    }

    /// Kinds of events that are given by a place, each tried at one place.
    fn places(&self) -> Section {
        let kinds = [
            ("rNNN (hexadecimal)", "r0"),
            ("mem:ADDRESS[/LENGTH][:rwx]", "mem:0x1000/4:w"),
            ("uprobe:FILE:FUNCTION[+OFFSET]", "uprobe:libc.so.6:malloc"),
            ("uretprobe:FILE:FUNCTION", "uretprobe:libc.so.6:malloc"),
        ];
        let wanted = kinds.into_iter().filter(|(name, _)| self.is_wanted(name));
        let entries = wanted.map(|(name, example)| self.entry(vec![name.to_owned()], example));
        Section {
            title: "By number or place".to_owned(),
            entries: entries.collect(),
            note: None,
        }
    }

    fn entry(&self, names: Vec<String>, example: &str) -> Entry {
        let ability = match self.catalog.parse(example) {
            Ok(groups) => match groups.first().and_then(|group| group.events.first()) {
                Some(event) => Ok(self.prober.probe(event)),
                None => Err("this names no event".to_owned()),
            },
            Err(error) => Err(error.problem.to_string()),
        };
        Entry { names, ability }
    }

    fn is_wanted(&self, name: &str) -> bool {
        match &self.pattern {
            None => true,
            Some(pattern) if pattern.contains(['*', '?']) => matches(pattern, name),
            Some(part) => name.to_lowercase().contains(&part.to_lowercase()),
        }
    }
}

/// Whether an event can be counted and sampled, in a word or two each.
fn status(ability: &Result<Ability, String>) -> [&'static str; 2] {
    let word = |answer: &Answer| match answer {
        Answer::Yes => "yes",
        Answer::UserOnly => "user code",
        Answer::SystemWide => "with -a",
        Answer::No(_) => "no",
    };
    match ability {
        Ok(ability) => [word(&ability.count), word(&ability.sample)],
        Err(_) => ["no", "no"],
    }
}

/// Why it cannot be counted, or not sampled.
fn reason(ability: &Result<Ability, String>) -> Option<&str> {
    match ability {
        Err(reason) => Some(reason),
        Ok(
            Ability {
                count: Answer::No(reason),
                ..
            }
            | Ability {
                sample: Answer::No(reason),
                ..
            },
        ) => Some(reason),
        Ok(_) => None,
    }
}

fn print(sections: &[Section], out: &mut dyn Write) -> Result<()> {
    let entries = || sections.iter().flat_map(|section| &section.entries);
    let width = entries()
        .map(|entry| entry.names.join(", ").chars().count())
        .max()
        .unwrap_or(0);
    if entries().next().is_some() {
        writeln!(
            out,
            "{:<width$}  count      sample",
            "event",
            width = width + 2
        )?;
    }
    let mut reasons = Reasons::default();
    for section in sections {
        writeln!(out, "\n{}", section.title)?;
        for entry in &section.entries {
            let [count, sample] = status(&entry.ability);
            let mark = reason(&entry.ability).map(|reason| reasons.mark(reason));
            let line = format!(
                "  {:<width$}  {count:<9}  {sample:<9}  {}",
                entry.names.join(", "),
                mark.unwrap_or_default()
            );
            writeln!(out, "{}", line.trim_end())?;
        }
        if let Some(note) = &section.note {
            writeln!(out, "  {note}")?;
        }
    }
    reasons.print(out)
}

/// Reasons shared by many events: each is printed once, below the table, and rows refer to it.
#[derive(Default)]
struct Reasons<'a>(Vec<&'a str>);

impl<'a> Reasons<'a> {
    fn mark(&mut self, reason: &'a str) -> String {
        let known = self.0.iter().position(|known| *known == reason);
        let index = known.unwrap_or_else(|| {
            self.0.push(reason);
            self.0.len() - 1
        });
        format!("[{}]", index + 1)
    }

    fn print(&self, out: &mut dyn Write) -> Result<()> {
        if !self.0.is_empty() {
            writeln!(out)?;
        }
        for (index, reason) in self.0.iter().enumerate() {
            writeln!(out, "[{}] {reason}", index + 1)?;
        }
        Ok(())
    }
}

#[derive(Serialize)]
struct Object<'a> {
    event: &'a str,
    aliases: &'a [String],
    kind: &'a str,
    count: &'a str,
    sample: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

fn print_json(sections: &[Section], out: &mut dyn Write) -> Result<()> {
    for section in sections {
        for entry in &section.entries {
            let Some((event, aliases)) = entry.names.split_first() else {
                continue;
            };
            let [count, sample] = status(&entry.ability);
            let object = Object {
                event,
                aliases,
                kind: &section.title,
                count,
                sample,
                reason: reason(&entry.ability),
            };
            serde_json::to_writer(&mut *out, &object)?;
            writeln!(out)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_reasons_are_printed_once() {
        let entry = |name: &str, reason: Option<&str>| Entry {
            names: vec![name.to_owned()],
            ability: reason.map_or_else(
                || {
                    Ok(Ability {
                        count: Answer::Yes,
                        sample: Answer::Yes,
                    })
                },
                |reason| Err(reason.to_owned()),
            ),
        };
        let sections = [Section {
            title: "Some".to_owned(),
            entries: vec![
                entry("a", Some("no counters")),
                entry("b", None),
                entry("c", Some("not here")),
                entry("d", Some("no counters")),
            ],
            note: None,
        }];
        let mut text = Vec::new();
        print(&sections, &mut text).unwrap();
        let rows: Vec<String> = String::from_utf8(text)
            .unwrap()
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(
            rows,
            [
                "event count sample",
                "",
                "Some",
                "a no no [1]",
                "b yes yes",
                "c no no [2]",
                "d no no [1]",
                "",
                "[1] no counters",
                "[2] not here"
            ]
        );
    }
}
