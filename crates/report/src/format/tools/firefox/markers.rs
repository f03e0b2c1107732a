//! Markers: the lifetimes of threads and processes.

use serde::Serialize;

use super::Clock;
use super::stacks::Stacks;
use crate::format::tools::threads::ThreadSamples;
use crate::profile::ThreadLifetime;

/// Columns of one length.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Markers {
    length: usize,
    data: Vec<Data>,
    name: Vec<usize>,
    start_time: Vec<Option<f64>>,
    end_time: Vec<Option<f64>>,
    phase: Vec<u32>,
    category: Vec<u32>,
}

#[derive(Serialize)]
struct Data {
    #[serde(rename = "type")]
    kind: &'static str,
    id: i32,
}

/// How the profiler shows markers of a type.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Schema {
    name: &'static str,
    tooltip_label: &'static str,
    table_label: &'static str,
    chart_label: &'static str,
    display: [&'static str; 2],
    fields: [Field; 1],
}

#[derive(Serialize)]
struct Field {
    key: &'static str,
    label: &'static str,
    format: &'static str,
}

const LIFE: &str = "ThreadLifetime";

/// The only type there is.
pub(super) fn schema() -> Schema {
    const LABEL: &str = "{marker.name} {marker.data.id}";
    Schema {
        name: LIFE,
        tooltip_label: LABEL,
        table_label: LABEL,
        chart_label: LABEL,
        display: ["marker-chart", "marker-table"],
        fields: [Field {
            key: "id",
            label: "Id",
            format: "integer",
        }],
    }
}

impl Markers {
    /// One for each life of the thread, and of the process if it is its first thread.
    pub(super) fn of(
        thread: &ThreadSamples<'_>,
        thread_lifetimes: &[ThreadLifetime],
        clock: &Clock<'_>,
        stacks: &mut Stacks<'_, '_>,
    ) -> Self {
        let mut markers = Self::default();
        for life in thread_lifetimes {
            let name = match thread.pid == thread.tid {
                true => "Process",
                false => "Thread",
            };
            markers.push(stacks.string(name), thread.tid, *life, clock);
        }
        markers
    }

    fn push(&mut self, name: usize, id: i32, life: ThreadLifetime, clock: &Clock<'_>) {
        // The format's number for it.
        const INTERVAL: u32 = 1;
        const INTERVAL_START: u32 = 2;
        const INTERVAL_END: u32 = 3;
        const CATEGORY: u32 = 0;
        self.length += 1;
        self.data.push(Data { kind: LIFE, id });
        self.name.push(name);
        self.start_time
            .push(life.start.map(|time| clock.time(time)));
        self.end_time.push(life.end.map(|time| clock.time(time)));
        self.phase.push(match (life.start, life.end) {
            (_, None) => INTERVAL_START,
            (None, _) => INTERVAL_END,
            _ => INTERVAL,
        });
        self.category.push(CATEGORY);
    }
}
