//! Sums of samples by stack, one row group after the other.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashSet};
use std::hash::Hash;
use std::sync::Arc;

use bytes::Bytes;
use prof_model::StackEnd;
use prof_report::profile::Weight;
use rustc_hash::FxHashMap;

use super::Selection;
use crate::dataset::{Partition, end_name, read_bounded, table_prefix};
use crate::error::Error;
use crate::run::RunId;
use crate::store::{Alias, Store};
use crate::table::{Groups, StackHash, Sums, Table, Texts};

/// An event, as rows name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EventName {
    pub(crate) name: Arc<str>,
    pub(crate) unit: Arc<str>,
}

/// How many samples an event has, and of what.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) samples: u64,
    pub(crate) runs: usize,
    pub(crate) hosts: usize,
    /// With a whole stack.
    pub(crate) whole: u64,
    /// With a stack to walk, the whole ones among them.
    pub(crate) stacks: u64,
}

/// The sums of a query's samples.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Further paths of the selection's files, which count once.
    pub(crate) aliases: Vec<Alias>,
    /// Events, those with the most samples first.
    pub(crate) events: Vec<EventName>,
    /// The weight by event and stack.
    pub(crate) sums: FxHashMap<(u16, StackHash), Weight>,
    /// Samples by event and by how their stacks ended.
    ends: FxHashMap<(u16, Arc<str>), u64>,
    /// The hosts of each event's samples.
    hosts: BTreeSet<(u16, String)>,
    /// The recordings of each event's samples.
    runs: HashSet<(u16, RunId)>,
    /// The events that the current file has samples of.
    in_file: BTreeSet<u16>,
    /// The file with the samples of each run of the current partition. If another has them, too,
    /// the data set is being compacted.
    owners: FxHashMap<RunId, usize>,
}

/// The most stacks or recordings that a query holds, which take about half a gigabyte.
const MOST_STACKS: usize = 4 << 20;

/// The most events.
const MOST_EVENTS: usize = 1 << 8;

/// The most bytes of names that it holds.
pub(super) const MOST_TEXT: usize = 1 << 30;

/// Adds up the samples of `selection`.
///
/// # Errors
/// The store cannot be reached, a file is damaged, or there are too many stacks for one machine.
pub(crate) fn scan(store: &Store, selection: &Selection) -> Result<Found, Error> {
    let listed = store.find(&table_prefix(Table::Samples))?;
    let mut found = Found {
        aliases: listed.aliases,
        ..Found::default()
    };
    found.aliases.retain(|alias| is_selected(alias, selection));
    let mut texts = Texts::default();
    let mut at: Option<Partition> = None;
    for (number, entry) in listed.entries.into_iter().enumerate() {
        let partition = Partition::of(&entry.path);
        let Some(partition) = partition.filter(|partition| selection.has(partition)) else {
            continue;
        };
        // Gone, since it was listed: another file has its rows.
        let Some(bytes) = read_bounded(store, &entry)? else {
            return Err(Error::Changed { path: entry.path });
        };
        if at.as_ref() != Some(&partition) {
            found.owners.clear();
        }
        found.in_file.clear();
        found
            .read(number, bytes, selection, &mut texts)
            .map_err(|source| Error::table(&entry.path, source))?;
        if found.is_full(&texts) {
            return Err(Error::TooMuch { most: MOST_STACKS });
        }
        let hosts = found.in_file.iter();
        let hosts = hosts.map(|&event| (event, partition.host.clone()));
        found.hosts.extend(hosts);
        at = Some(partition);
    }
    found.sort_events();
    Ok(found)
}

/// Whether a path may be one of the selection's partitions.
fn is_selected(alias: &Alias, selection: &Selection) -> bool {
    let partition = match alias.is_folder {
        true => Partition::of(&format!("{}/a.parquet", alias.path)),
        false => Partition::of(&alias.path),
    };
    partition.is_none_or(|partition| selection.has(&partition))
}

impl Found {
    /// Adds a file's samples. Those of a run that another file has count once.
    pub(crate) fn read(
        &mut self,
        number: usize,
        bytes: Bytes,
        selection: &Selection,
        texts: &mut Texts,
    ) -> parquet::errors::Result<()> {
        let file = Groups::of(Table::Samples, bytes)?;
        for group in 0..file.len() {
            let times = file.times(group);
            if times.is_some_and(|times| !selection.overlaps(times)) {
                continue;
            }
            let labels = match selection.labels.is_empty() {
                true => None,
                false => Some(file.labels(group, texts)?),
            };
            let sums = file.sums(group, texts)?;
            let wanted = |row: &usize| {
                let labels = labels.as_ref().and_then(|labels| labels.get(*row));
                selection.has_time(sums.times[*row])
                    && labels.is_none_or(|labels| selection.has_labels(labels))
            };
            let mut rows: Vec<usize> = (0..sums.times.len()).filter(wanted).collect();
            let owners = &mut self.owners;
            rows.retain(|&row| *owners.entry(sums.runs[row]).or_insert(number) == number);
            self.add(&sums, &rows);
            if self.is_full(texts) {
                break;
            }
        }
        Ok(())
    }

    /// Views show the first event: that of few samples on one host must not hide that of all.
    fn sort_events(&mut self) {
        let mut samples = vec![0_u64; self.events.len()];
        for (&(event, _), weight) in &self.sums {
            let sum = &mut samples[usize::from(event)];
            *sum = sum.saturating_add(weight.samples);
        }
        let mut order: Vec<usize> = (0..samples.len()).collect();
        order.sort_by_key(|&event| {
            (
                Reverse(samples[event]),
                Arc::clone(&self.events[event].name),
            )
        });
        if order.is_sorted() {
            return;
        }
        let mut places = vec![0_u16; order.len()];
        for (place, &event) in (0..).zip(&order) {
            places[event] = place;
        }
        let place = |event: u16| places[usize::from(event)];
        let events = order.iter().map(|&event| self.events[event].clone());
        self.events = events.collect();
        self.sums = rekeyed(&mut self.sums, place);
        self.ends = rekeyed(&mut self.ends, place);
        let hosts = std::mem::take(&mut self.hosts).into_iter();
        self.hosts = hosts.map(|(event, host)| (place(event), host)).collect();
        let runs = std::mem::take(&mut self.runs).into_iter();
        self.runs = runs.map(|(event, run)| (place(event), run)).collect();
    }

    /// Whether there is more than a query holds.
    fn is_full(&self, texts: &Texts) -> bool {
        let most = self.sums.len().max(self.runs.len()).max(self.owners.len());
        most > MOST_STACKS || self.events.len() > MOST_EVENTS || texts.bytes() > MOST_TEXT
    }

    fn add(&mut self, sums: &Sums, rows: &[usize]) {
        let mut event: Option<(EventName, u16)> = None;
        for &row in rows {
            let (name, unit) = (&sums.events[row], &sums.units[row]);
            let number = match &event {
                Some((known, number)) if known.name == *name && known.unit == *unit => *number,
                _ => {
                    let name = EventName {
                        name: Arc::clone(name),
                        unit: Arc::clone(unit),
                    };
                    let number = self.event(&name);
                    event = Some((name, number));
                    number
                }
            };
            let count = u64::try_from(sums.counts[row]).unwrap_or(0);
            let sum = self.sums.entry((number, sums.stacks[row])).or_default();
            *sum += Weight {
                value: u64::try_from(sums.weights[row]).unwrap_or(0),
                samples: count,
            };
            let end = self.ends.entry((number, Arc::clone(&sums.ends[row])));
            let end = end.or_default();
            *end = end.saturating_add(count);
            self.runs.insert((number, sums.runs[row]));
            self.in_file.insert(number);
        }
    }

    /// Reasons that a later version wrote count as stacks that are not whole.
    pub(crate) fn counts(&self, event: u16) -> Counts {
        let known = |name: &str| StackEnd::ALL.into_iter().find(|&end| end_name(end) == name);
        let mut counts = Counts {
            runs: self.runs.iter().filter(|(of, _)| *of == event).count(),
            hosts: self.hosts.iter().filter(|(of, _)| *of == event).count(),
            ..Counts::default()
        };
        for ((_, name), &count) in self.ends.iter().filter(|((of, _), _)| *of == event) {
            let end = known(name);
            counts.samples = counts.samples.saturating_add(count);
            if end.is_none_or(StackEnd::counts) {
                counts.stacks = counts.stacks.saturating_add(count);
            }
            if end.is_some_and(StackEnd::is_whole) {
                counts.whole = counts.whole.saturating_add(count);
            }
        }
        counts
    }

    fn event(&mut self, name: &EventName) -> u16 {
        let known = self.events.iter().position(|known| known == name);
        let number = known.unwrap_or_else(|| {
            // One more than there may be says that there are too many.
            self.events.truncate(MOST_EVENTS);
            self.events.push(name.clone());
            self.events.len() - 1
        });
        u16::try_from(number).unwrap_or(u16::MAX)
    }
}

/// The map with other numbers of events in its keys.
fn rekeyed<K: Hash + Eq, V>(
    map: &mut FxHashMap<(u16, K), V>,
    place: impl Fn(u16) -> u16,
) -> FxHashMap<(u16, K), V> {
    let entries = std::mem::take(map).into_iter();
    let entries = entries.map(|((event, key), value)| ((place(event), key), value));
    entries.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::date_of;
    use crate::table::{SampleRow, samples_file};

    /// Rows in the first of two row groups, and in the second.
    const ROWS: [usize; 2] = [1 << 16, 1000];
    const HOUR: i64 = 3_600_000_000;

    /// Samples of two hours, a row group for each.
    fn two_hours() -> Vec<u8> {
        let text: Arc<str> = "cpu-clock".into();
        let row = |number: usize, hour: i64| SampleRow {
            time: hour * HOUR,
            event: Arc::clone(&text),
            unit: Arc::clone(&text),
            pid: 1,
            comm: Arc::clone(&text),
            thread: Arc::clone(&text),
            stack: StackHash(number as u128),
            weight: 1,
            count: 1,
            stack_end: Arc::clone(&text),
            run: RunId([0; 16]),
            labels: Arc::default(),
        };
        let first = (0..ROWS[0]).map(|number| row(number, 0));
        let rows: Vec<_> = first
            .chain((0..ROWS[1]).map(|number| row(number, 1)))
            .collect();
        samples_file(&rows).expect("written").to_vec()
    }

    /// The number of stacks found; `None` if their data is damaged.
    fn found(store: &Store, selection: &Selection) -> Option<usize> {
        scan(store, selection).ok().map(|found| found.sums.len())
    }

    #[test]
    fn other_times_and_services_are_not_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open_existing(&folder.path().to_string_lossy()).expect("a directory");
        let whole = two_hours();
        // The first row group comes first, and is nearly the whole file.
        let mut damaged = whole.clone();
        let half = damaged.len() / 2;
        damaged[half / 2..half].fill(0xff);
        for (service, bytes) in [("whole", whole), ("damaged", damaged)] {
            let partition = Partition {
                date: date_of(0),
                service: service.into(),
                host: "a".into(),
            };
            let path = partition.file(Table::Samples, "file");
            store.put_new(&path, bytes.into()).expect("written");
        }
        let all = Selection::default();
        assert_eq!(found(&store, &all), None);
        let whole = Selection {
            services: vec!["whole".into()],
            ..Selection::default()
        };
        assert_eq!(found(&store, &whole), Some(ROWS[0]), "others are not read");
        let later = Selection {
            since: Some(HOUR),
            ..Selection::default()
        };
        assert_eq!(
            found(&store, &later),
            Some(ROWS[1]),
            "the group before is not"
        );
        let earlier = Selection {
            until: Some(HOUR),
            ..Selection::default()
        };
        assert_eq!(found(&store, &earlier), None);
    }
}
