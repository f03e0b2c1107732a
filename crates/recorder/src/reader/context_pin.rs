//! Parents keep their own events.
//!
//! Where a thread and those it makes all have copies of the same events, the kernel swaps events as
//! it switches between them, and so a shell that starts one short command after the other goes on
//! with events that were born a moment ago, whose first period is never over. It is sampled for a
//! twentieth of what it does. So whoever makes threads or processes gets an [`ContextPin`].

use std::collections::HashMap;

use prof_events::ContextPin;
use prof_model::Tid;

use crate::reader::sample_layout;

/// The anchors of those who live.
#[derive(Debug, Default)]
pub(crate) struct ContextPins {
    held: HashMap<Tid, ContextPin>,
}

impl ContextPins {
    /// Each takes a descriptor.
    const MOST: usize = 512;

    /// A record that may tell of a thread that made another, or has ended.
    pub(crate) fn notice(&mut self, record: &[u8]) {
        if let Some(maker) = sample_layout::maker(record) {
            if self.held.len() < Self::MOST && !self.held.contains_key(&maker) {
                // Whoever has ended or gained privileges since goes without.
                self.held
                    .extend(ContextPin::on(maker).map(|anchor| (maker, anchor)));
            }
        } else if let Some(ended) = sample_layout::ended_thread(record) {
            self.held.remove(&ended);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn makers_that_live_are_held_until_they_end() {
        let tid = std::process::id() as Tid;
        let record = |kind: u32, tid: Tid, maker: Tid| {
            let mut record = vec![0_u8; 32];
            record[..4].copy_from_slice(&kind.to_ne_bytes());
            record[16..20].copy_from_slice(&tid.to_ne_bytes());
            record[20..24].copy_from_slice(&maker.to_ne_bytes());
            record
        };
        let mut anchors = ContextPins::default();
        let mut check = |kind, tid, maker, expected: &[Tid]| {
            anchors.notice(&record(kind, tid, maker));
            let held: Vec<Tid> = anchors.held.keys().copied().collect();
            assert_eq!(held, expected, "{kind} {tid} {maker}");
        };
        check(sample_layout::RECORD_FORK, 1, tid, &[tid]);
        check(sample_layout::RECORD_FORK, 2, tid, &[tid]);
        check(sample_layout::RECORD_FORK, 3, -1, &[tid]);
        check(sample_layout::RECORD_EXIT, 2, tid, &[tid]);
        check(sample_layout::RECORD_EXIT, tid, tid, &[]);
    }
}
