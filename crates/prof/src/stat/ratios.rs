//! Ratios between counts.

use prof_counters::EventSpec;

use super::row::Row;

/// A ratio of an event to another, or to time.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Metric {
    pub(super) value: f64,
    pub(super) unit: String,
    /// Whether the value is a percentage.
    pub(super) percent: bool,
}

impl Metric {
    fn new(value: f64, unit: impl Into<String>) -> Option<Self> {
        let unit = unit.into();
        value.is_finite().then_some(Self {
            value,
            unit,
            percent: false,
        })
    }

    fn percent(share: f64, unit: &str) -> Option<Self> {
        let value = 100.0 * share;
        value.is_finite().then(|| Self {
            value,
            unit: unit.to_owned(),
            percent: true,
        })
    }
}

/// Events whose share of another one has a name, such as misses of all accesses.
const SHARES: [(&str, &str, &str); 14] = [
    ("branch-misses", "branches", "of all branches"),
    ("cache-misses", "cache-references", "of all cache refs"),
    (
        "L1-dcache-load-misses",
        "L1-dcache-loads",
        "of all L1-dcache accesses",
    ),
    (
        "L1-dcache-store-misses",
        "L1-dcache-stores",
        "of all L1-dcache stores",
    ),
    (
        "L1-icache-load-misses",
        "L1-icache-loads",
        "of all L1-icache accesses",
    ),
    ("LLC-load-misses", "LLC-loads", "of all LL-cache accesses"),
    ("LLC-store-misses", "LLC-stores", "of all LL-cache stores"),
    (
        "dTLB-load-misses",
        "dTLB-loads",
        "of all dTLB cache accesses",
    ),
    (
        "dTLB-store-misses",
        "dTLB-stores",
        "of all dTLB cache stores",
    ),
    (
        "iTLB-load-misses",
        "iTLB-loads",
        "of all iTLB cache accesses",
    ),
    ("branch-load-misses", "branch-loads", "of all branch loads"),
    ("node-load-misses", "node-loads", "of all node loads"),
    ("stalled-cycles-frontend", "cycles", "frontend cycles idle"),
    ("stalled-cycles-backend", "cycles", "backend cycles idle"),
];

/// The ratios of one event to the others; `means` are in the kernel's units, `wall` in seconds.
pub(super) fn metrics(index: usize, rows: &[Row], means: &[Option<f64>], wall: f64) -> Vec<Metric> {
    let (Some(row), Some(Some(value))) = (rows.get(index), means.get(index)) else {
        return Vec::new();
    };
    let value = *value;
    let table = Table { rows, means, row };
    if row.event.is_clock() {
        return Metric::new(value / 1e9 / wall, "CPUs utilized")
            .into_iter()
            .collect();
    }
    if is(&row.event, "instructions") {
        return instructions(&table, value);
    }
    if is(&row.event, "cycles")
        && let Some(clock) = table.clock()
    {
        return Metric::new(value / clock, "GHz").into_iter().collect();
    }
    let share = SHARES.iter().find(|(name, _, _)| is(&row.event, name));
    if let Some((_, of, unit)) = share
        && let Some(all) = table.named(of)
    {
        return Metric::percent(value / all, unit).into_iter().collect();
    }
    if row.event.scale.is_some() {
        return Vec::new();
    }
    table
        .clock()
        .and_then(|clock| per_second(value / clock * 1e9))
        .into_iter()
        .collect()
}

fn instructions(table: &Table<'_>, instructions: f64) -> Vec<Metric> {
    let Some(cycles) = table.named("cycles") else {
        return table
            .clock()
            .and_then(|clock| per_second(instructions / clock * 1e9))
            .into_iter()
            .collect();
    };
    let per_cycle = Metric::new(instructions / cycles, "insn per cycle");
    let per_instruction = Metric::new(cycles / instructions, "cycles per insn");
    let stalls = ["stalled-cycles-frontend", "stalled-cycles-backend"];
    let stalled = stalls
        .iter()
        .filter_map(|name| table.named(name))
        .reduce(f64::max);
    let stalled =
        stalled.and_then(|stalled| Metric::new(stalled / instructions, "stalled cycles per insn"));
    [per_cycle, per_instruction, stalled]
        .into_iter()
        .flatten()
        .collect()
}

fn per_second(rate: f64) -> Option<Metric> {
    match rate {
        rate if rate >= 1e9 => Metric::new(rate / 1e9, "G/sec"),
        rate if rate >= 1e6 => Metric::new(rate / 1e6, "M/sec"),
        rate if rate >= 1e3 => Metric::new(rate / 1e3, "K/sec"),
        rate => Metric::new(rate, "/sec"),
    }
}

/// One event and the events counted with it.
struct Table<'a> {
    rows: &'a [Row],
    means: &'a [Option<f64>],
    row: &'a Row,
}

impl Table<'_> {
    /// The mean of the event with that name, counted in the same code as this one.
    fn named(&self, name: &str) -> Option<f64> {
        let modes = |event: &EventSpec| {
            let modifiers = event.modifiers;
            (modifiers.user, modifiers.kernel, modifiers.guest)
        };
        self.mean(|row| is(&row.event, name) && modes(&row.event) == modes(&self.row.event))
    }

    /// Nanoseconds for which the target ran.
    fn clock(&self) -> Option<f64> {
        self.mean(|row| row.event.is_clock())
    }

    fn mean(&self, fits: impl Fn(&Row) -> bool) -> Option<f64> {
        let mut found = self
            .rows
            .iter()
            .zip(self.means)
            .filter(|(row, _)| fits(row));
        found.find_map(|(_, mean)| mean.filter(|&mean| mean > 0.0))
    }
}

/// Whether it is the event of that name, under any alias.
fn is(event: &EventSpec, name: &str) -> bool {
    prof_events::parsing::encoding_of(name).is_some_and(|encoding| encoding == event.encoding)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stat::row::Origin;

    /// Checks the ratios of one event, given counts by event name.
    fn check(counts: &[(&str, f64)], of: &str, expected: &[(f64, &str)]) {
        let rows: Vec<Row> = counts
            .iter()
            .map(|(name, _)| Row {
                event: prof_counters::event(name).unwrap(),
                name: (*name).to_owned(),
                origin: Origin::Counter,
            })
            .collect();
        let means: Vec<Option<f64>> = counts.iter().map(|(_, count)| Some(*count)).collect();
        let index = counts.iter().position(|(name, _)| *name == of).unwrap();
        let found = metrics(index, &rows, &means, 2.0);
        let found: Vec<(f64, &str)> = found
            .iter()
            .map(|metric| (metric.value, metric.unit.as_str()))
            .collect();
        assert_eq!(found, expected, "{of}");
    }

    #[test]
    fn ratios_use_the_other_rows() {
        let second = ("task-clock", 1e9);
        check(&[second], "task-clock", &[(0.5, "CPUs utilized")]);
        check(&[second, ("cycles", 3e9)], "cycles", &[(3.0, "GHz")]);
        check(
            &[
                ("cycles", 1e9),
                ("instructions", 4e9),
                ("stalled-cycles-frontend", 2e9),
            ],
            "instructions",
            &[
                (4.0, "insn per cycle"),
                (0.25, "cycles per insn"),
                (0.5, "stalled cycles per insn"),
            ],
        );
        check(
            &[("branches", 200.0), ("branch-misses", 5.0)],
            "branch-misses",
            &[(2.5, "of all branches")],
        );
        check(
            &[second, ("branch-misses", 5e6)],
            "branch-misses",
            &[(5.0, "M/sec")],
        );
        check(
            &[("LLC-loads", 8.0), ("LLC-load-misses", 2.0)],
            "LLC-load-misses",
            &[(25.0, "of all LL-cache accesses")],
        );
        check(
            &[second, ("page-faults", 1500.0)],
            "page-faults",
            &[(1.5, "K/sec")],
        );
        check(
            &[second, ("page-faults", 7.0)],
            "page-faults",
            &[(7.0, "/sec")],
        );
    }

    #[test]
    fn counts_of_other_code_make_no_ratios() {
        check(
            &[("cycles:u", 1e9), ("instructions", 4e9)],
            "instructions",
            &[],
        );
        check(
            &[("cycles:u", 1e9), ("instructions:u", 2e9)],
            "instructions:u",
            &[(2.0, "insn per cycle"), (0.5, "cycles per insn")],
        );
    }

    #[test]
    fn nothing_is_divided_by_zero() {
        check(
            &[("cycles", 0.0), ("instructions", 4e9)],
            "instructions",
            &[],
        );
        check(
            &[("task-clock", 0.0), ("page-faults", 4.0)],
            "page-faults",
            &[],
        );
        check(
            &[("cycles", 5.0), ("instructions", 0.0)],
            "instructions",
            &[(0.0, "insn per cycle")],
        );
    }
}
