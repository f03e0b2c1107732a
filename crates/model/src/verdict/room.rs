//! How much fits in rings and dumps, and whether more could.

use std::ops::RangeInclusive;

use crate::quality::Quality;
use crate::settings::{CallGraphSettings, RecordingSettings};

fn dumps_less_than_possible(known: &RecordingSettings) -> bool {
    const NEARLY_ALL: u32 = CallGraphSettings::LARGEST_DUMP - CallGraphSettings::RECORD_REST;
    matches!(known.call_graph, CallGraphSettings::Dump(bytes) if bytes < NEARLY_ALL)
}

/// The sizes of rings that prof chooses, in bytes.
const CHOSEN_RINGS: RangeInclusive<u64> = 4 << 20..=16 << 20;

/// Whether rings of the sizes that prof chooses can hold larger dumps. Unknown, and so false, for
/// recordings by other tools.
pub(super) fn could_dump_more(known: &RecordingSettings) -> bool {
    let is_as_chosen = known.ring >= *CHOSEN_RINGS.start();
    let largest = known.largest_ring.min(*CHOSEN_RINGS.end());
    let is_enough =
        is_as_chosen && bytes_per_sample(known, largest) >= CallGraphSettings::LARGEST_DUMP.into();
    dumps_less_than_possible(known) && (known.ring == 0 || is_enough)
}

/// Bytes of such a ring for each sample that it should hold.
fn bytes_per_sample(known: &RecordingSettings, ring: u64) -> u64 {
    ring / RecordingSettings::samples_to_hold(known.rate.unwrap_or(0))
}

/// Whether the size of the rings limits the size of the dumps. It does not limit those of hits,
/// which are small by default, and of a requested size.
pub(super) fn is_dump_limited_by_ring(known: &RecordingSettings) -> bool {
    const SMALLEST_CHOSEN: u64 = 4096;
    let smallest = SMALLEST_CHOSEN.min(known.ring / 4);
    let chosen = bytes_per_sample(known, known.ring).max(smallest) & !7;
    let is_chosen =
        matches!(known.call_graph, CallGraphSettings::Dump(bytes) if u64::from(bytes) == chosen);
    dumps_less_than_possible(known) && is_chosen
}

/// Whether the rings hold too few samples even with the smallest dumps.
fn holds_too_few(known: &RecordingSettings) -> bool {
    let most = bytes_per_sample(known, known.ring);
    matches!(known.call_graph, CallGraphSettings::Dump(bytes) if u64::from(bytes) > most)
}

fn could_ring_be_larger(known: &RecordingSettings) -> bool {
    known.ring > 0 && known.largest_ring / 2 >= known.ring
}

/// The ring size that holds enough samples with the largest dumps.
pub(super) fn ring_for_largest_dumps(quality: &Quality) -> u64 {
    let Some(known) = quality.settings.as_ref() else {
        return 0;
    };
    let samples = RecordingSettings::samples_to_hold(known.rate.unwrap_or(0));
    let wanted = samples.saturating_mul(u64::from(CallGraphSettings::LARGEST_DUMP) + 1);
    let wanted = wanted.checked_next_power_of_two();
    wanted.map_or(known.largest_ring, |wanted| wanted.min(known.largest_ring))
}

/// A ring size that loses fewer samples. If the dumps need larger rings, too, it is one size.
pub(super) fn ring_for_more_samples(quality: &Quality) -> u64 {
    let Some(known) = quality.settings.as_ref() else {
        return 0;
    };
    if is_dump_limited_by_ring(known) {
        return ring_for_largest_dumps(quality);
    }
    let larger = known.ring.saturating_mul(4).max(*CHOSEN_RINGS.start());
    larger.min(known.largest_ring)
}

/// Whether the rate makes the rings hold more samples than at the lowest rate, and so smaller
/// dumps.
pub(super) fn does_rate_limit_dumps(known: &RecordingSettings) -> bool {
    let least = RecordingSettings::samples_to_hold(0);
    let samples = known.rate.map(RecordingSettings::samples_to_hold);
    samples.is_some_and(|samples| samples > least)
}

/// Whether larger rings hold more samples. If the rings cannot hold many of the largest dumps, the
/// dumps are made smaller instead.
pub(super) fn could_hold_more(known: &RecordingSettings) -> bool {
    could_ring_be_larger(known) && (!is_dump_limited_by_ring(known) || holds_too_few(known))
}
