//! Speedscope's JSON, read by speedscope.

use super::super::speedscope;
use super::{expected, filters, parse_folded, readers, written};
use crate::calltree::Split;
use crate::testing::demo;

#[test]
fn speedscope_reads_our_stacks() {
    let symbolized = demo();
    for (name, filter) in filters() {
        let file = written(|out| speedscope::write(&symbolized, &filter, out));
        let Some(read) = readers::speedscope("demo.speedscope.json", &file) else {
            return;
        };
        let expected = expected(&symbolized, &filter, Split::Nothing);
        assert_eq!(parse_folded(&read), expected, "{name}");
    }
}
