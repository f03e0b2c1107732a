//! Text as of `perf script`, read by inferno and speedscope.

use std::collections::BTreeSet;

use inferno::collapse::Collapse;
use inferno::collapse::perf::{Folder, Options};

use super::super::script;
use super::{Stacks, expected, filters, parse_folded, readers, written};
use crate::calltree::Split;
use crate::testing::{demo, everything};

#[test]
fn inferno_folds_it_as_we_do() {
    let symbolized = demo();
    for (name, filter) in filters() {
        let text = written(|out| script::write(&symbolized, &filter, out));
        let mut folded = Vec::new();
        Folder::from(Options::default())
            .collapse(text.as_slice(), &mut folded)
            .unwrap();
        let folded = parse_folded(&String::from_utf8(folded).unwrap());
        let expected = without_offsets(&expected(&symbolized, &filter, Split::Name));
        assert_eq!(folded, expected, "{name}");
    }
}

#[test]
fn speedscope_reads_the_same_stacks() {
    let symbolized = demo();
    let text = written(|out| script::write(&symbolized, &everything(), out));
    let Some(read) = readers::speedscope(".perf.txt", &[text]) else {
        return;
    };
    let stacks = |stacks: Stacks| stacks.into_keys().collect::<BTreeSet<_>>();
    // It derives weights from times, so the last sample of each thread has none.
    let all = stacks(without_offsets(&expected(
        &symbolized,
        &everything(),
        Split::Nothing,
    )));
    let read = stacks(without_offsets(&read[0]));
    assert!(!read.is_empty());
    assert_eq!(read.difference(&all).next(), None);
}

/// Stacks as readers parse perf's text: `name+0x12` becomes `name`.
fn without_offsets(stacks: &Stacks) -> Stacks {
    let mut plain = Stacks::new();
    for (stack, weight) in stacks {
        let names = stack.split(';').map(|name| match name.rsplit_once("+0x") {
            Some((start, _)) => start,
            None => name,
        });
        let stack = names.collect::<Vec<_>>().join(";");
        *plain.entry(stack).or_default() += weight;
    }
    plain
}
