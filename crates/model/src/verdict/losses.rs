//! Samples that are missing, in words.

use super::remedy::{self, Cause};
use crate::quality::{Losses, Quality};
use crate::text::counted;

/// What was lost, and the remedies.
pub(super) fn losses(quality: &Quality) -> impl Iterator<Item = String> {
    let losses = quality.losses;
    let ending = |cause| remedy::ending(cause, quality);
    let some = |count: u64, text: &dyn Fn(u64) -> String| (count > 0).then(|| text(count));
    [
        some(losses.ring_full, &|count| {
            let samples = counted(count, "sample");
            let remedy = ending(Cause::FullRings);
            format!("{samples} lost: the ring buffers were full{remedy}")
        }),
        some(losses.queue_full, &|count| {
            let samples = counted(count, "sample");
            let remedy = ending(Cause::SlowUnwinding);
            format!("{samples} dropped: unwinding was too slow{remedy}")
        }),
        some(losses.cut_stacks, &|count| {
            let stacks = counted(count, "stack");
            let remedy = ending(Cause::SlowUnwinding);
            format!("{stacks} cut short: unwinding was too slow{remedy}")
        }),
        some(losses.throttled, &|count| {
            let times = times(count);
            let remedy = ending(Cause::Throttled);
            format!("the kernel throttled sampling {times}{remedy}")
        }),
        some(losses.malformed, &|count| {
            let samples = counted(count, "sample");
            format!("{samples} could not be read: the recording is damaged")
        }),
        some(losses.corrupt_rings, &|count| {
            let times = times(count);
            format!(
                "a ring buffer held garbage {times}, and the samples in it are lost; record again, \
                 and report this bug if it comes back"
            )
        }),
    ]
    .into_iter()
    .flatten()
    .chain(of_file(losses))
}

/// Whether nobody knows how many samples are missing.
pub(super) fn has_loss_of_unknown_size(losses: &Losses) -> bool {
    losses.corrupt_rings > 0 || losses.truncated_file || losses.unread_recording
}

fn of_file(losses: Losses) -> impl Iterator<Item = String> {
    const UNREAD_RECORDING: &str = "another recording follows in the same file and was not read; \
        report them as files of their own (-i FILE -i FILE)";
    let early = losses.truncated_file.then(|| ends_early(&losses));
    let unread = losses.unread_recording.then_some(UNREAD_RECORDING);
    early.into_iter().chain(unread).map(str::to_owned)
}

fn ends_early(losses: &Losses) -> &'static str {
    match losses.too_large_file {
        true => {
            "only the start of the recording was read: its compressed records hold more than any \
             recording of this size should"
        }
        false => {
            "the recording ends early: it was cut off while it was written or copied, or is damaged"
        }
    }
}

fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        more => format!("{more} times"),
    }
}
