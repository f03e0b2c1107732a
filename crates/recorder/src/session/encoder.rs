//! The sample that is being processed: its call chain, and its record.

use prof_model::StackNote;
use prof_perfdata::{Attr, EncodeError, Sample, encode};

/// Encodes one sample after the other, in the same memory.
#[derive(Debug, Default)]
pub(super) struct SampleEncoder {
    /// The current sample's call chain.
    pub(super) chain: Vec<u64>,
    record: Vec<u8>,
}

impl SampleEncoder {
    /// The record that was encoded last.
    pub(super) fn record(&self) -> &[u8] {
        &self.record
    }

    /// Takes the chain that came with the sample.
    pub(super) fn retain_chain(&mut self, sample: &Sample<'_>) {
        self.chain.clear();
        self.chain.push(sample.ip);
        self.chain.extend(sample.callchain);
    }

    /// Encodes a sample with the current chain.
    pub(super) fn encode(
        &mut self,
        sample: &Sample<'_>,
        attr: &Attr,
        period: u64,
        note: StackNote,
    ) -> Result<(), EncodeError> {
        let raw = encode::stack_note(note);
        let unwound = encode::NewSample {
            callchain: &self.chain,
            raw: &raw,
            period,
            ..encode::NewSample::without_stack(sample)
        };
        self.record.clear();
        encode::sample(&mut self.record, attr, &unwound)
    }

    /// The bytes of a sample, with another period.
    pub(super) fn with_period(&mut self, bytes: &[u8], attr: Option<&Attr>, period: u64) -> &[u8] {
        self.record.clear();
        self.record.extend_from_slice(bytes);
        if let Some(attr) = attr {
            attr.set_sample_period(&mut self.record, period);
        }
        &self.record
    }
}
