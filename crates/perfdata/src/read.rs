//! Counter values: `struct read_format`, in samples and in READ records.

use crate::bits::ReadFormat;
use crate::bytes::Bytes;

/// Values of one event, or of all events of its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadValues<'a> {
    /// For how many ns the event was enabled, if recorded.
    pub time_enabled: Option<u64>,
    /// For how many ns it counted, if recorded.
    pub time_running: Option<u64>,
    format: ReadFormat,
    /// The value, unless there is a group.
    single: Option<ReadValue>,
    /// The group's values.
    group: &'a [u8],
    /// All of its bytes in the record.
    pub(crate) bytes: &'a [u8],
}

/// The value of one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadValue {
    /// The count.
    pub value: u64,
    /// Id of the event, if recorded.
    pub id: Option<u64>,
    /// Samples that this event lost so far, if recorded.
    pub lost: Option<u64>,
}

impl<'a> ReadValues<'a> {
    /// Takes the values off the front of `bytes`.
    ///
    /// ```text
    ///   single:  value  [enabled] [running]  [id] [lost]
    ///   group:   count  [enabled] [running]  (value [id] [lost]) × count
    /// ```
    pub(crate) fn parse(bytes: &mut Bytes<'a>, format: ReadFormat) -> Option<Self> {
        let all = bytes.rest();
        let count_or_value = bytes.u64()?;
        let time_enabled = bytes.u64_if(format.contains(ReadFormat::TOTAL_TIME_ENABLED))?;
        let time_running = bytes.u64_if(format.contains(ReadFormat::TOTAL_TIME_RUNNING))?;
        let (single, group) = if format.contains(ReadFormat::GROUP) {
            let size = ReadValue::size(format);
            (None, bytes.take_items(count_or_value, size)?)
        } else {
            let value = ReadValue::parse(count_or_value, bytes, format)?;
            (Some(value), &[][..])
        };
        Some(Self {
            time_enabled,
            time_running,
            format,
            single,
            group,
            bytes: all.get(..all.len() - bytes.rest().len())?,
        })
    }

    /// The values, the group's leader first.
    pub fn iter(&self) -> impl Iterator<Item = ReadValue> + 'a {
        let format = self.format;
        let group = self.group.chunks_exact(ReadValue::size(format));
        self.single
            .into_iter()
            .chain(group.filter_map(move |entry| {
                let mut entry = Bytes::new(entry);
                ReadValue::parse(entry.u64()?, &mut entry, format)
            }))
    }
}

impl ReadValue {
    fn parse(value: u64, bytes: &mut Bytes<'_>, format: ReadFormat) -> Option<Self> {
        Some(Self {
            value,
            id: bytes.u64_if(format.contains(ReadFormat::ID))?,
            lost: bytes.u64_if(format.contains(ReadFormat::LOST))?,
        })
    }

    /// Bytes of one value of a group.
    fn size(format: ReadFormat) -> usize {
        8 + 8 * usize::from(format.contains(ReadFormat::ID))
            + 8 * usize::from(format.contains(ReadFormat::LOST))
    }
}
