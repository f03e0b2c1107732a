//! The three tables: their rows, and Parquet files of them (docs/fleet.md).

mod chunk;
mod column;
mod dictionary;
mod groups;
mod hybrid;
mod nested;
mod pages;
mod rows;
mod runs;
mod samples;
mod schema;
mod stacks;
mod thrift;

pub(crate) use groups::{Groups, Texts};
pub(crate) use rows::{Frame, RunRow, SampleRow, StackHash, StackRow};
pub(crate) use runs::runs_file;
pub(crate) use samples::{Sums, samples_file};
pub(crate) use schema::Table;
pub(crate) use stacks::{StacksFile, stacks_file};
