//! A look at the outer fields of a profile, before memory is spent on what is in them.

use prost::Message;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

use crate::error::InputError;
use crate::format::pprof::message::{self, ValueType};

/// The fields of `Profile` by number.
const SAMPLE_TYPE: u32 = 1;
const SAMPLE: u32 = 2;
const MAPPING: u32 = 3;
const STRING: u32 = 6;
const PERIOD_TYPE: u32 = 11;
const COMMENT: u32 = 13;
const LAST: u32 = 15;

/// Bytes that tables may take in memory: messages without content take two bytes in a file, and
/// some forty times as many here.
const MOST_MEMORY: u64 = 4 << 30;

/// Whether these bytes are a profile; `None` if they don't look like one.
///
/// # Errors
/// They look like one, but are damaged, or would take too much memory.
pub(super) fn survey(bytes: &[u8]) -> Option<Result<(), InputError>> {
    /// So many fields that make sense, a sample type among them, are no coincidence.
    const ENOUGH: usize = 4;
    let mut memory = 0_u64;
    let mut types = 0;
    for (number, field) in Fields(bytes).enumerate() {
        let Some((tag, content)) = field else {
            let is_profile = types > 0 && number >= ENOUGH;
            return is_profile.then_some(Err(InputError::DamagedPprof));
        };
        types += usize::from(tag == SAMPLE_TYPE && is_type(content));
        memory = memory.saturating_add(cost(tag, content));
    }
    match types {
        0 => None,
        _ if memory > MOST_MEMORY => Some(Err(InputError::PprofTooLarge)),
        _ => Some(Ok(())),
    }
}

/// The bytes of each sample, one after the other.
pub(super) fn samples(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let fields = Fields(bytes).map_while(|field| field);
    fields.filter_map(|(tag, content)| (tag == SAMPLE).then_some(content))
}

fn is_type(content: &[u8]) -> bool {
    ValueType::decode(content).is_ok_and(|kind| kind.kind > 0)
}

/// At most so many bytes of memory are taken by a field.
fn cost(tag: u32, content: &[u8]) -> u64 {
    /// Of an entry of any table, and of what is made of a sample type.
    const ENTRY: usize = size_of::<message::Mapping>() + 100;
    /// Of an integer of one byte, or of half a line of a location.
    const NUMBER: u64 = 8;
    /// No sample has a stack so deep.
    const MOST_OF_SAMPLE: u64 = 64 << 20;
    let length = content.len() as u64;
    match tag {
        // Read one after the other.
        SAMPLE if length <= MOST_OF_SAMPLE => 0,
        SAMPLE => u64::MAX,
        STRING => (size_of::<String>() as u64).saturating_add(length),
        _ => (ENTRY as u64).saturating_add(length.saturating_mul(NUMBER)),
    }
}

/// Number and content of each field; content only of those that have a length. The last is `None`
/// where the bytes are no profile.
struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Option<(u32, &'a [u8])>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.0 = &[];
        }
        Some(field)
    }
}

impl<'a> Fields<'a> {
    fn field(&mut self) -> Option<(u32, &'a [u8])> {
        let (tag, kind) = decode_key(&mut self.0).ok()?;
        if !fits(tag, kind) {
            return None;
        }
        if kind != WireType::LengthDelimited {
            skip_field(kind, tag, &mut self.0, DecodeContext::default()).ok()?;
            return Some((tag, &[]));
        }
        let length = usize::try_from(decode_varint(&mut self.0).ok()?).ok()?;
        let (content, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, content))
    }
}

/// Whether a field of this number is of this kind; those that are not known yet may be of any.
fn fits(tag: u32, kind: WireType) -> bool {
    match tag {
        SAMPLE_TYPE | SAMPLE | MAPPING..=STRING | PERIOD_TYPE => kind == WireType::LengthDelimited,
        COMMENT => matches!(kind, WireType::LengthDelimited | WireType::Varint),
        _ if tag <= LAST => kind == WireType::Varint,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::imports::pprof::read;

    /// A profile with one sample type and a function, as writers make it.
    fn profile() -> Vec<u8> {
        let strings = ["", "cpu", "nanoseconds", "main", "main.c"].map(String::from);
        let message = message::Profile {
            sample_type: vec![ValueType { kind: 1, unit: 2 }],
            sample: vec![message::Sample {
                location_id: vec![1],
                value: vec![7],
                label: Vec::new(),
            }],
            location: vec![message::Location {
                id: 1,
                line: vec![message::Line {
                    function_id: 1,
                    line: 3,
                }],
                ..message::Location::default()
            }],
            function: vec![message::Function {
                id: 1,
                name: 3,
                system_name: 3,
                filename: 4,
            }],
            string_table: strings.to_vec(),
            ..message::Profile::default()
        };
        message.encode_to_vec()
    }

    /// What a file that begins with the profile above and goes on so many times with `more` is.
    fn check(more: &[u8], times: usize, expected: &str) {
        let mut bytes = profile();
        bytes.extend(more.repeat(times));
        let answer = match read(&bytes) {
            None => "none".into(),
            Some(Ok(profile)) => format!("{} samples", profile.samples.len()),
            Some(Err(error)) => format!("{error:?}"),
        };
        assert_eq!(answer, expected, "{more:?} {times} times");
    }

    #[test]
    fn profiles_are_read_and_damaged_ones_refused() {
        check(&[], 0, "1 samples");
        check(&profile()[..0], 1, "1 samples");
        // A sample like the first; one without anything; a field that is not known.
        check(&[0x12, 6, 0x0a, 1, 1, 0x12, 1, 9], 3, "4 samples");
        check(&[0x12, 0], 3, "1 samples");
        check(&[0xf8, 0x7f, 1], 1, "1 samples");
        // Cut off; of the wrong kind; a sample that is none.
        check(&[0x12, 200, 1], 1, "DamagedPprof");
        check(&[0x10, 1], 1, "DamagedPprof");
        check(&[0x12, 2, 0x0a, 9], 1, "DamagedPprof");
    }

    #[test]
    fn a_part_of_the_strings_is_not_enough() {
        let whole = profile();
        for cut in 1..=7 {
            let read = read(&whole[..whole.len() - cut]);
            assert!(
                matches!(read, Some(Err(InputError::DamagedPprof))),
                "{cut}: {read:?}"
            );
        }
    }

    #[test]
    fn other_bytes_are_not_taken_for_a_damaged_profile() {
        for bytes in [
            &b"\nmain"[..],
            b"PNG",
            &[0x0a, 2, 8, 1, 7],
            &[0xff; 40],
            &[],
        ] {
            assert!(read(bytes).is_none(), "{bytes:?}");
        }
    }

    #[test]
    fn memory_is_bounded() {
        // 40 million mappings without anything in them, of two bytes each.
        check(&[0x1a, 0], 40_000_000, "PprofTooLarge");
    }

    /// It takes time to look at a name, and the more references it has the longer it is.
    #[test]
    fn time_for_long_names_is_bounded() {
        let line = message::Line {
            function_id: 2,
            line: 1,
        };
        let long = |lines| {
            let message = message::Profile {
                string_table: vec!["x".repeat(1 << 20)],
                function: vec![message::Function {
                    id: 2,
                    name: 5,
                    ..message::Function::default()
                }],
                location: vec![message::Location {
                    id: 2,
                    line: vec![line; lines],
                    ..message::Location::default()
                }],
                ..message::Profile::default()
            };
            message.encode_to_vec()
        };
        check(&long(4), 1, "1 samples");
        check(&long(5000), 1, "PprofTooLarge");
    }
}
