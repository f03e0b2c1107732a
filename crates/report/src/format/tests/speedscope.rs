//! Speedscope's JSON, read by speedscope.

use super::super::speedscope;
use super::{expected, filters, readers, written};
use crate::calltree::Split;
use crate::testing::demo;

#[test]
fn speedscope_reads_our_stacks() {
    let symbolized = demo();
    let write = |filter| written(|out| speedscope::write(&symbolized, filter, out));
    let files: Vec<_> = filters().iter().map(|(_, filter)| write(filter)).collect();
    let Some(read) = readers::speedscope(".speedscope.json", &files) else {
        return;
    };
    for ((name, filter), read) in filters().iter().zip(read) {
        assert_eq!(
            read,
            expected(&symbolized, filter, Split::Nothing),
            "{name}"
        );
    }
}
