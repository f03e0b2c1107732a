//! Samples with less of the stack.

use crate::header::RecordHeader;
use crate::sample::Sample;

const WORD: usize = size_of::<u64>();

/// Appends `record`, which was parsed to `sample`, with at most `limit` bytes of its stack and
/// without the unused rest of the dump. The result is again a sample of the same event.
///
/// A stack that did not fill its dump keeps a few unused bytes, so that readers see that. One that
/// is cut here counts as full: its outer part is missing, so its end is truncated.
pub fn shortened(out: &mut Vec<u8>, record: &[u8], sample: &Sample<'_>, limit: usize) {
    let Some(stack) = sample.user_stack else {
        out.extend_from_slice(record);
        return;
    };
    let copied = stack.bytes.len();
    let kept = copied.min(limit) & !(WORD - 1);
    let full = stack.is_full() || kept < copied & !(WORD - 1);
    let size = if full { kept } else { kept + WORD };
    let start = out.len();
    let behind = sample.user_stack_at + WORD + stack.capacity + WORD;
    let front = record.get(..sample.user_stack_at);
    out.extend_from_slice(front.unwrap_or_default());
    out.extend_from_slice(&(size as u64).to_le_bytes());
    out.extend_from_slice(stack.bytes.get(..kept).unwrap_or_default());
    if !full {
        out.extend_from_slice(&[0; WORD]);
    }
    if size > 0 {
        out.extend_from_slice(&(kept as u64).to_le_bytes());
    }
    out.extend_from_slice(record.get(behind..).unwrap_or_default());
    // No longer than it was, so its size fits as it did.
    let length = (out.len() - start) as u16;
    if let Some(mut header) = out.get(start..).and_then(RecordHeader::parse) {
        header.size = length;
        out[start..start + RecordHeader::SIZE].copy_from_slice(&header.to_bytes());
    }
}

#[cfg(test)]
mod tests {
    use prof_model::{RegisterAbi, UserRegisters};

    use super::*;
    use crate::attr::{Attr, EventDescription};
    use crate::bits::SampleType;
    use crate::encode::{self, NewSample};
    use crate::format::RecordFormat;
    use crate::record::Record;
    use crate::sample::SampleDetails;

    fn attr() -> Attr {
        Attr {
            sample_type: SampleType::TIME
                | SampleType::PERIOD
                | SampleType::CALLCHAIN
                | SampleType::REGS_USER
                | SampleType::STACK_USER
                | SampleType::CGROUP,
            sample_regs_user: 0xff,
            ..Attr::default()
        }
    }

    /// A sample with a dump of this size, of which the kernel filled this many bytes, and another
    /// field.
    fn record(capacity: usize, copied: usize) -> Vec<u8> {
        let stack: Vec<u8> = (0..capacity).map(|byte| byte as u8).collect();
        let sample = NewSample {
            time: 5,
            callchain: &[1, 2, 3],
            user_registers: UserRegisters::new(RegisterAbi::Bits64, 0xff, 0..8),
            user_stack: &stack,
            details: SampleDetails {
                cgroup: Some(77),
                ..SampleDetails::default()
            },
            ..NewSample::default()
        };
        let mut bytes = Vec::new();
        encode::sample(&mut bytes, &attr(), &sample).unwrap();
        if capacity > 0 {
            let dyn_size = bytes.len() - 16;
            bytes[dyn_size..dyn_size + 8].copy_from_slice(&(copied as u64).to_le_bytes());
        }
        bytes
    }

    fn parsed<T>(record: &[u8], see: impl FnOnce(&Sample<'_>) -> T) -> T {
        let event = EventDescription {
            attr: attr(),
            ..EventDescription::default()
        };
        let format = RecordFormat::new(&[event]).unwrap();
        let Record::Sample(sample) = format.parse(record).unwrap() else {
            panic!("no sample");
        };
        see(&sample)
    }

    #[test]
    fn samples_keep_their_dumps() {
        let check =
            |capacity: usize, copied: usize, limit: usize, expected: Option<(usize, usize)>| {
                let record = record(capacity, copied);
                let mut out = vec![0xee; 3];
                parsed(&record, |sample| {
                    shortened(&mut out, &record, sample, limit)
                });
                let shorter = out.get(3..).unwrap();
                assert!(shorter.len() <= record.len());
                parsed(shorter, |sample| {
                    let stack = sample.user_stack;
                    assert_eq!(
                        stack.map(|stack| (stack.capacity, stack.bytes.len())),
                        expected
                    );
                    let bytes = stack.map_or(&[][..], |stack| stack.bytes);
                    assert!(bytes.iter().zip(0..).all(|(&byte, at)| byte == at));
                    assert_eq!((sample.time, sample.details.cgroup), (Some(5), Some(77)));
                    assert_eq!(sample.callchain.len(), 3);
                });
            };
        check(64, 64, 1000, Some((64, 64)));
        check(64, 24, 1000, Some((32, 24)));
        check(64, 56, 1000, Some((64, 56)));
        check(64, 0, 1000, Some((8, 0)));
        check(64, 64, 32, Some((32, 32)));
        check(64, 48, 32, Some((32, 32)));
        check(0, 0, 1000, None);
    }
}
