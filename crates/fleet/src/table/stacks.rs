//! Files of stacks.

use std::sync::Arc;

use bytes::Bytes;
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, FixedLenByteArrayType, Int32Type, Int64Type,
};
use parquet::errors::{ParquetError, Result};

use super::column::{Groups, Nested, NewColumns, NewFile, NewTexts, Texts};
use super::column::{fixed, number};
use super::rows::{Frame, StackHash, StackRow};
use super::schema::Table;

/// Stacks in a row group: each has some dozens of frames.
const GROUP_ROWS: usize = 1 << 13;

/// Levels of a frame's columns that must have a value, and of those that may.
const REQUIRED: i16 = 1;
const OPTIONAL: i16 = 2;

/// A file of these rows, which must be sorted.
pub(crate) fn stacks_file(rows: &[StackRow]) -> Result<Bytes> {
    let mut file = NewFile::new(Table::Stacks)?;
    let mut texts = NewTexts::default();
    for rows in rows.chunks(GROUP_ROWS) {
        file.group(|columns| {
            columns.flat::<FixedLenByteArrayType>(rows.iter().map(|row| fixed(&row.stack.0)))?;
            columns.flat::<Int32Type>(rows.iter().map(|row| row.named))?;
            frames(columns, rows, &mut texts)
        })?;
    }
    file.finish()
}

fn frames(columns: &mut NewColumns<'_>, rows: &[StackRow], texts: &mut NewTexts) -> Result<()> {
    fn lists<T>(
        rows: &[StackRow],
        deepest: i16,
        mut of: impl FnMut(&Frame) -> Option<T>,
    ) -> Nested<T> {
        let mut column = Nested::default();
        for row in rows {
            column.push_list(row.frames.iter().map(&mut of), deepest);
        }
        column
    }
    let mut text = |of: fn(&Frame) -> Option<&Arc<str>>, deepest| -> Nested<ByteArray> {
        lists(rows, deepest, |frame| of(frame).map(|text| texts.of(text)))
    };
    let function = text(|frame| Some(&frame.function), REQUIRED);
    let module = text(|frame| Some(&frame.module), REQUIRED);
    let kind = text(|frame| Some(&frame.kind), REQUIRED);
    let build_id = text(|frame| frame.build_id.as_ref(), OPTIONAL);
    let file = text(|frame| frame.file.as_ref(), OPTIONAL);
    columns.nested::<ByteArrayType>(&function)?;
    columns.nested::<ByteArrayType>(&module)?;
    columns.nested::<ByteArrayType>(&kind)?;
    columns.nested::<BoolType>(&lists(rows, REQUIRED, |frame| Some(frame.inlined)))?;
    columns.nested::<ByteArrayType>(&build_id)?;
    columns.nested::<Int64Type>(&lists(rows, OPTIONAL, |frame| frame.address))?;
    columns.nested::<ByteArrayType>(&file)?;
    columns.nested::<Int32Type>(&lists(rows, OPTIONAL, |frame| frame.line))
}

impl Groups {
    /// The numbers of the stacks in a group.
    pub(crate) fn stack_ids(&self, group: usize) -> Result<Vec<StackHash>> {
        let ids = self.flat::<FixedLenByteArrayType>(group, "stack_id")?;
        Ok(ids.iter().map(|id| StackHash(number(id))).collect())
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

    fn frames(&self, group: usize, texts: &mut Texts) -> Result<Vec<Vec<Frame>>> {
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
        let frame = |row: usize, at: usize| -> Option<Frame> {
            Some(Frame {
                function: functions.get(row)?.get(at)?.clone()?,
                module: modules.get(row)?.get(at)?.clone()?,
                kind: kinds.get(row)?.get(at)?.clone()?,
                inlined: inlined.get(row)?.get(at).copied()??,
                build_id: build_ids.get(row)?.get(at)?.clone(),
                address: *addresses.get(row)?.get(at)?,
                file: files.get(row)?.get(at)?.clone(),
                line: *lines.get(row)?.get(at)?,
            })
        };
        let rows = functions.iter().enumerate();
        rows.map(|(row, list)| {
            let frames = (0..list.len()).map(|at| frame(row, at).ok_or_else(short));
            frames.collect()
        })
        .collect()
    }
}
