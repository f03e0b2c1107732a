//! Files of stacks.

use std::sync::Arc;

use bytes::Bytes;
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, FixedLenByteArrayType, Int32Type, Int64Type,
};
use parquet::errors::{ParquetError, Result};
use rustc_hash::FxHashMap;

use super::column::{NewColumns, NewFile, number};
use super::dictionary::{Dictionary, Value};
use super::groups::{Groups, MOST_VALUES, Texts};
use super::nested::Nested;
use super::rows::{Frame, StackHash, StackRow};
use super::schema::Table;

/// Stacks in a row group: each has some dozens of frames.
const GROUP_ROWS: usize = 1 << 13;

/// Frames of all stacks in a row group, if these are not one.
const GROUP_FRAMES: usize = MOST_VALUES / 4;

/// The most frames that a stack may have, of which a recording has 8,100 and what is inlined.
const MOST_FRAMES: usize = 1 << 16;

/// Levels of a frame's columns that must have a value, and of those that may.
const REQUIRED: i16 = 1;
const OPTIONAL: i16 = 2;

/// A file of these rows.
pub(crate) fn stacks_file(rows: impl IntoIterator<Item = StackRow>) -> Result<Bytes> {
    let mut file = StacksFile::new()?;
    rows.into_iter().try_for_each(|row| file.add(row))?;
    file.finish()
}

/// A file of stacks as it is written: the rows of one row group are in memory, and what is packed.
pub(crate) struct StacksFile {
    file: NewFile,
    /// The rows of the next row group, and how many frames these have.
    group: Vec<StackRow>,
    frames: usize,
}

impl StacksFile {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self {
            file: NewFile::new(Table::Stacks)?,
            group: Vec::new(),
            frames: 0,
        })
    }

    pub(crate) fn add(&mut self, row: StackRow) -> Result<()> {
        if self.group.len() == GROUP_ROWS || self.frames + row.frames.len() > GROUP_FRAMES {
            self.write_group()?;
        }
        self.frames += row.frames.len();
        self.group.push(row);
        Ok(())
    }

    fn write_group(&mut self) -> Result<()> {
        let rows = std::mem::take(&mut self.group);
        self.frames = 0;
        if rows.is_empty() {
            return Ok(());
        }
        self.file.group(|columns| {
            columns.flat(rows.iter().map(|row| row.stack))?;
            columns.flat(rows.iter().map(|row| row.named))?;
            NewFrames::of(&rows).write(columns)
        })
    }

    pub(crate) fn finish(mut self) -> Result<Bytes> {
        self.write_group()?;
        self.file.finish()
    }
}

/// The frames of some stacks: what a column holds is made once for each distinct frame.
struct NewFrames<'a> {
    distinct: Vec<&'a Frame>,
    /// The frames of each stack, by their places among the distinct ones.
    stacks: Nested<u32>,
}

impl<'a> NewFrames<'a> {
    fn of(rows: &'a [StackRow]) -> Self {
        let mut distinct = Vec::new();
        let mut places: FxHashMap<*const Frame, u32> = FxHashMap::default();
        let mut place = |frame: &'a Arc<Frame>| {
            Some(*places.entry(Arc::as_ptr(frame)).or_insert_with(|| {
                distinct.push(&**frame);
                distinct.len() as u32 - 1
            }))
        };
        let frames = rows.iter().map(|row| row.frames.len().max(1));
        let mut stacks = Nested::with_capacity(frames.sum());
        for row in rows {
            stacks.push_list(row.frames.iter().map(&mut place), REQUIRED);
        }
        Self { distinct, stacks }
    }

    /// Writes one column after the other: only one is in memory at a time.
    fn write(&self, columns: &mut NewColumns<'_>) -> Result<()> {
        self.column(columns, REQUIRED, |frame| Some(&*frame.function))?;
        self.column(columns, REQUIRED, |frame| Some(&*frame.module))?;
        self.column(columns, REQUIRED, |frame| Some(&*frame.kind))?;
        columns.plain::<BoolType>(&self.nested(REQUIRED, |frame| Some(frame.inlined)))?;
        self.column(columns, OPTIONAL, |frame| frame.build_id.as_deref())?;
        self.column(columns, OPTIONAL, |frame| frame.address)?;
        self.column(columns, OPTIONAL, |frame| frame.file.as_deref())?;
        self.column(columns, OPTIONAL, |frame| frame.line)
    }

    fn column<V: Value>(
        &self,
        columns: &mut NewColumns<'_>,
        deepest: i16,
        of: impl Fn(&'a Frame) -> Option<V>,
    ) -> Result<()> {
        let mut dictionary = Dictionary::default();
        let place = |frame| of(frame).map(|value| dictionary.place(value));
        let column = self.nested(deepest, place);
        columns.nested(&dictionary, &column)
    }

    fn nested<T: Copy>(&self, deepest: i16, of: impl FnMut(&'a Frame) -> Option<T>) -> Nested<T> {
        let values: Vec<Option<T>> = self.distinct.iter().copied().map(of).collect();
        let value = |&place: &u32| values[place as usize];
        let mut found = self.stacks.values.iter().map(value);
        let definition = self.stacks.definition.iter().map(|&level| match level {
            0 => 0,
            _ => deepest - i16::from(found.next().flatten().is_none()),
        });
        Nested {
            definition: definition.collect(),
            repetition: self.stacks.repetition.clone(),
            values: self.stacks.values.iter().filter_map(value).collect(),
        }
    }
}

impl Groups {
    /// The numbers of the stacks in a group.
    pub(crate) fn stack_ids(&self, group: usize) -> Result<Vec<StackHash>> {
        let ids = self.flat::<FixedLenByteArrayType>(group, "stack_id")?;
        Ok(ids
            .iter()
            .map(|id| StackHash::of_bytes(number(id)))
            .collect())
    }

    /// How many names each of the stacks in a group has.
    pub(crate) fn named(&self, group: usize) -> Result<Vec<i32>> {
        self.flat::<Int32Type>(group, "named")
    }

    /// The stacks of a group.
    pub(crate) fn stacks(&self, group: usize, texts: &mut Texts) -> Result<Vec<StackRow>> {
        let ids = self.stack_ids(group)?;
        let named = self.named(group)?;
        let mut frames = self.frames(group, texts)?.into_iter();
        let rows = ids.into_iter().zip(named);
        Ok(rows
            .map(|(stack, named)| StackRow {
                stack,
                named,
                frames: frames.next().unwrap_or_default(),
            })
            .collect())
    }

    fn frames(&self, group: usize, texts: &mut Texts) -> Result<Vec<Vec<Arc<Frame>>>> {
        let path = |field: &str| format!("frames.list.element.{field}");
        let mut text = |field: &str, deepest: i16| -> Result<Vec<Vec<Option<Arc<str>>>>> {
            let column = self.nested::<ByteArrayType>(group, &path(field))?;
            let lists = column.into_lists(deepest).into_iter();
            let list = |list: Vec<Option<ByteArray>>| -> Vec<Option<Arc<str>>> {
                let texts = list
                    .iter()
                    .map(|text| text.as_ref().map(|text| texts.of(text)));
                texts.collect()
            };
            Ok(lists.map(list).collect())
        };
        let functions = text("function", REQUIRED)?;
        let modules = text("module", REQUIRED)?;
        let kinds = text("kind", REQUIRED)?;
        let build_ids = text("build_id", OPTIONAL)?;
        let files = text("file", OPTIONAL)?;
        let inlined = self.nested::<BoolType>(group, &path("inlined"))?;
        let inlined = inlined.into_lists(REQUIRED);
        let addresses = self.nested::<Int64Type>(group, &path("address"))?;
        let addresses = addresses.into_lists(OPTIONAL);
        let lines = self
            .nested::<Int32Type>(group, &path("line"))?
            .into_lists(OPTIONAL);
        let short = || ParquetError::General("columns of frames differ in length".into());
        let frame = |row: usize, at: usize| -> Option<Arc<Frame>> {
            Some(Arc::new(Frame {
                function: functions.get(row)?.get(at)?.clone()?,
                module: modules.get(row)?.get(at)?.clone()?,
                kind: kinds.get(row)?.get(at)?.clone()?,
                inlined: inlined.get(row)?.get(at).copied()??,
                build_id: build_ids.get(row)?.get(at)?.clone(),
                address: *addresses.get(row)?.get(at)?,
                file: files.get(row)?.get(at)?.clone(),
                line: *lines.get(row)?.get(at)?,
            }))
        };
        let deep = || ParquetError::General("a stack is too deep".into());
        let rows = functions.iter().enumerate();
        rows.map(|(row, list)| {
            if list.len() > MOST_FRAMES {
                return Err(deep());
            }
            let frames = (0..list.len()).map(|at| frame(row, at).ok_or_else(short));
            frames.collect()
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deep_stacks_share_no_row_group() {
        let text: Arc<str> = "f".into();
        let frame = Arc::new(Frame {
            function: Arc::clone(&text),
            module: Arc::clone(&text),
            kind: Arc::clone(&text),
            inlined: false,
            build_id: None,
            address: None,
            file: None,
            line: None,
        });
        let row = |number: u8, frames: usize| StackRow {
            stack: StackHash::of_bytes([number; 16]),
            named: 0,
            frames: vec![Arc::clone(&frame); frames],
        };
        const FULL: u8 = (GROUP_FRAMES / MOST_FRAMES) as u8;
        let full = (0..FULL).map(|number| row(number, MOST_FRAMES));
        let rest = [row(FULL, 1), row(FULL + 1, 0)];
        let rows: Vec<_> = full.chain(rest).collect();
        let file = stacks_file(rows.clone()).expect("written");
        let file = Groups::of(Table::Stacks, file).expect("read");
        let groups = (0..file.len()).map(|group| file.rows(group));
        assert_eq!(groups.collect::<Vec<_>>(), [FULL.into(), 2]);
        let read = (0..file.len()).flat_map(|group| {
            let stacks = file.stacks(group, &mut Texts::default());
            stacks.expect("readable")
        });
        assert!(read.eq(rows));
    }
}
