//! Unavailable events of the default set, in words.

use anyhow::Result;
use prof_counters::{EventGroup, OpenError};

use super::row::{Origin, Row};

/// Unavailable events of the default set.
#[derive(Default)]
pub(super) struct Refused {
    hardware: Vec<OpenError>,
    others: Vec<(String, OpenError)>,
}

impl Refused {
    pub(super) fn add(&mut self, group: &EventGroup, error: OpenError) {
        match group.events.first() {
            Some(event) if event.family.is_hardware() => self.hardware.push(error),
            Some(event) => self.others.push((event.name.clone(), error)),
            None => {}
        }
    }

    /// One sentence for each kind of omission; a single event that the CPU lacks needs none.
    pub(super) fn notes(self, rows: &[Row]) -> Result<Vec<String>> {
        let mut notes = Vec::new();
        let has_hardware = rows.iter().any(|row| row.event.family.is_hardware());
        if let (Some(error), false) = (self.hardware.into_iter().next(), has_hardware) {
            notes.push(format!("hardware events are left out: {error}"));
        }
        let mut missing: Vec<String> = Vec::new();
        let mut reason = None;
        for (name, error) in self.others {
            missing.push(name);
            reason.get_or_insert(error);
        }
        let reason = match reason {
            Some(error) if rows.is_empty() => return Err(error.into()),
            reason => reason,
        };
        let are = if missing.len() == 1 { "is" } else { "are" };
        let left_out = reason.map(|why| format!("{} {are} left out: {why}", missing.join(" and ")));
        let from_getrusage = rows.iter().any(|row| row.origin == Origin::Usage);
        notes.extend(match (left_out, from_getrusage) {
            (Some(left_out), true) => Some(format!("{FROM_GETRUSAGE}; {left_out}")),
            (None, true) => Some(format!("{FROM_GETRUSAGE}: {HIDDEN}")),
            (left_out, false) => left_out,
        });
        Ok(notes)
    }
}

const HIDDEN: &str = "kernel.perf_event_paranoid hides events of the kernel (`sudo sysctl \
                      kernel.perf_event_paranoid=1` shows them)";
const FROM_GETRUSAGE: &str = "context switches come from getrusage";

#[cfg(test)]
mod tests {
    use prof_counters::Catalog;

    use super::*;

    fn refused(events: &[(&str, &str)]) -> Refused {
        let mut refused = Refused::default();
        for (name, reason) in events {
            let group = Catalog::system().parse(name).unwrap().remove(0);
            let error = OpenError::Refused {
                event: (*name).to_owned(),
                errno: rustix::io::Errno::NOENT,
                reason: (*reason).to_owned(),
            };
            refused.add(&group, error);
        }
        refused
    }

    fn row(name: &str, origin: Origin) -> Row {
        Row {
            event: prof_counters::event(name).unwrap(),
            name: name.to_owned(),
            origin,
        }
    }

    #[test]
    fn missing_hardware_is_one_sentence() {
        let all = refused(&[
            ("cycles", "no hardware counters"),
            ("instructions", "no hardware counters"),
        ]);
        let notes = all.notes(&[row("task-clock", Origin::Counter)]).unwrap();
        assert_eq!(
            notes,
            ["hardware events are left out: cannot count cycles: no hardware counters"]
        );
        let one = refused(&[("stalled-cycles-backend", "not here")]);
        let rows = [
            row("task-clock", Origin::Counter),
            row("cycles", Origin::Counter),
        ];
        assert_eq!(one.notes(&rows).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn hidden_events_are_one_sentence() {
        let rows = [
            row("task-clock", Origin::Counter),
            row("context-switches", Origin::Usage),
        ];
        let notes = refused(&[("cpu-migrations", "hidden")])
            .notes(&rows)
            .unwrap();
        assert_eq!(notes.len(), 1);
        assert!(
            notes[0].ends_with("cpu-migrations is left out: cannot count cpu-migrations: hidden"),
            "{notes:?}"
        );
        let both = refused(&[("context-switches", "hidden"), ("cpu-migrations", "hidden")]);
        let notes = both.notes(&rows[..1]).unwrap();
        assert!(
            notes[0].starts_with("context-switches and cpu-migrations are left out: "),
            "{notes:?}"
        );
    }

    #[test]
    fn the_reason_is_the_kernels() {
        let rows = [row("context-switches", Origin::Usage)];
        let reason = "kernel.perf_event_paranoid is 3, which forbids all events";
        let notes = refused(&[("task-clock", reason)]).notes(&rows).unwrap();
        assert!(
            notes[0].ends_with(reason) && !notes[0].contains("hides"),
            "{notes:?}"
        );
    }

    #[test]
    fn nothing_at_all_is_an_error() {
        assert!(refused(&[("task-clock", "a sandbox")]).notes(&[]).is_err());
    }
}
