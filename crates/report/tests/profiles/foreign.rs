//! Recordings by other versions of perf, on other machines: `data/README` says where they are from.
//! Their sums equal those of `perf script -F event,period` (6.1).
#![allow(clippy::unwrap_used, reason = "a test, helpers included")]

use std::path::Path;

use prof_perfdata::Recording;
use prof_report::{CallTree, Filter, LoadOptions, Split, SymbolizedProfile, load};
use prof_symbols::{SymbolOptions, Symbolizer};

fn loaded(name: &str) -> SymbolizedProfile {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name);
    let profile = load(Recording::open(file).unwrap(), &LoadOptions::default()).unwrap();
    SymbolizedProfile::new(profile, &Symbolizer::new(SymbolOptions::default()))
}

/// For each event with samples: their number, and the sum of their periods.
fn sums(symbolized: &SymbolizedProfile) -> Vec<(&str, u64, u64)> {
    let events = &symbolized.profile().events;
    let sum = |name| {
        let filter = Filter {
            event: Some(String::clone(name)),
            ..Filter::default()
        };
        let tree = CallTree::new(symbolized, &filter, Split::Nothing).ok()?;
        Some((name.as_str(), tree.total().samples, tree.total().value))
    };
    events.iter().filter_map(|event| sum(&event.name)).collect()
}

fn check(name: &str, release: &str, expected: &[(&str, u64, u64)]) {
    let symbolized = loaded(name);
    assert_eq!(sums(&symbolized), expected, "{name}");
    let header = &symbolized.profile().header;
    assert_eq!(header.os_release.as_deref(), Some(release), "{name}");
    let losses = &symbolized.quality().losses;
    assert!(
        !losses.truncated_file && losses.malformed == 0,
        "{losses:?}"
    );
}

#[test]
fn samples_and_periods_are_those_of_perf() {
    // A machine with two kinds of cores, each with an event of its own.
    check(
        "perf-5.15-hybrid",
        "5.15.140-21013-ge5249718105d",
        &[("cpu_core/cycles:ppp/", 7, 7_048_948)],
    );
    // perf record -b: with the last branches in each sample.
    check(
        "perf-4.14-branches",
        "4.14.18",
        &[("cycles:ppp", 13, 2_668_332)],
    );
    // perf record -o -: features come as records.
    check(
        "perf-6.12-pipe",
        "6.10.11-1rodete2-amd64",
        &[("cycles:u", 9, 780_008)],
    );
}
