//! Lists and groups of events.
//!
//! ```text
//!   list   = item { "," item }
//!   item   = event | "{" event { "," event } "}" [ ":" modifiers ]
//!   event  = uprobe | breakpoint | symbolic | raw | pmu | tracepoint        (see `event`)
//! ```

use super::catalog::Catalog;
use super::cursor::{Cursor, Located};
use super::error::{ParseError, Problem};
use super::event;
use super::modifiers::Modifiers;
use super::spec::{EventGroup, EventSpec};

/// A bound on the events that one text can create.
const MOST_EVENTS: usize = 4096;

impl Catalog {
    /// Reads a list of events: names separated by commas, groups in braces.
    ///
    /// ```
    /// use prof_events::parsing::Catalog;
    ///
    /// let groups = Catalog::system().parse("task-clock,{page-faults:u,minor-faults:u}")?;
    /// assert_eq!(groups.len(), 2);
    /// assert_eq!(groups[1].events[0].to_string(), "page-faults:u");
    ///
    /// let error = Catalog::system().parse("page-fualts").unwrap_err();
    /// assert!(error.to_string().contains("did you mean page-faults?"));
    /// # Ok::<(), prof_events::parsing::ParseError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The error and its place; also if a PMU, tracepoint, file or function cannot be found on this
    /// machine.
    pub fn parse(&self, text: &str) -> Result<Vec<EventGroup>, ParseError> {
        let mut cursor = Cursor::new(text);
        items(&mut cursor, self).map_err(|located| cursor.error(located))
    }
}

fn items(cursor: &mut Cursor<'_>, catalog: &Catalog) -> Result<Vec<EventGroup>, Located> {
    let mut groups = Vec::new();
    let mut events = 0;
    loop {
        cursor.skip_spaces();
        let start = cursor.at();
        if cursor.eat("{") {
            groups.push(group(cursor, catalog)?);
        } else {
            groups.extend(event::read(cursor, catalog)?.into_iter().map(alone));
        }
        events += groups.last().map_or(0, |group| group.events.len());
        if events.max(groups.len()) > MOST_EVENTS {
            return Err(cursor.from(
                start,
                Problem::Expected {
                    expected: "no more events",
                },
            ));
        }
        cursor.skip_spaces();
        if cursor.rest().is_empty() {
            return Ok(groups);
        }
        if !cursor.eat(",") {
            let expected = "a comma or the end";
            return Err(cursor.here(Problem::Expected { expected }));
        }
    }
}

fn alone(event: EventSpec) -> EventGroup {
    EventGroup {
        leader_sampling: event.modifiers.leader_sampling,
        events: vec![event],
        braces: false,
    }
}

/// Reads the part after the opening brace.
fn group(cursor: &mut Cursor<'_>, catalog: &Catalog) -> Result<EventGroup, Located> {
    let mut events: Vec<EventSpec> = Vec::new();
    loop {
        cursor.skip_spaces();
        let start = cursor.at();
        let read = event::read(cursor, catalog)?;
        for event in &read {
            let leads = events.is_empty();
            if !leads && (event.modifiers.pinned || event.modifiers.exclusive) {
                let problem = Problem::Modifier(
                    "only the first event of a group can be pinned (D) or exclusive (e), or the group as a whole",
                );
                return Err(cursor.from(start, problem));
            }
        }
        events.extend(read);
        cursor.skip_spaces();
        if cursor.eat("}") {
            break;
        }
        if !cursor.eat(",") {
            let expected = "a comma or a closing brace";
            return Err(cursor.here(Problem::Expected { expected }));
        }
    }
    if cursor.eat(":") {
        let at = cursor.at();
        let letters = cursor.take_while(char::is_alphanumeric);
        add_to_all(&mut events, letters, at)?;
    }
    Ok(EventGroup {
        leader_sampling: events.iter().any(|event| event.modifiers.leader_sampling),
        events,
        braces: true,
    })
}

/// The modifiers of a group are those of all its members; those on scheduling are its leader's.
fn add_to_all(events: &mut [EventSpec], letters: &str, at: usize) -> Result<(), Located> {
    for (index, event) in events.iter_mut().enumerate() {
        let Modifiers {
            pinned, exclusive, ..
        } = event.modifiers;
        event.modifiers.add(letters, at)?;
        if index > 0 {
            (event.modifiers.pinned, event.modifiers.exclusive) = (pinned, exclusive);
        }
    }
    Ok(())
}
