//! Entry points for fuzzing.

use bytes::Bytes;
use prof_report::profile::Weight;
use prof_report::{CallTree, Filter, Split, SymbolizedProfile};

use crate::query::{EventName, Found, Frames, Selection};
use crate::table::{Groups, Table, Texts};

/// Reads any bytes as a file of each table: as `prof query` does, and as `prof data` does.
#[doc(hidden)]
pub fn read_tables(bytes: &[u8]) {
    let bytes = Bytes::copy_from_slice(bytes);
    // Each ends with the first error.
    let _ = samples(&bytes);
    let _ = stacks(&bytes);
    let _ = runs(&bytes);
}

fn samples(bytes: &Bytes) -> parquet::errors::Result<()> {
    let mut texts = Texts::default();
    let with_label = Selection {
        labels: [("a".to_owned(), "b".to_owned())].into(),
        ..Selection::default()
    };
    for selection in [Selection::default(), with_label] {
        Found::default().read(0, bytes.clone(), &selection, &mut texts)?;
    }
    let file = Groups::of(Table::Samples, bytes.clone())?;
    (0..file.len()).try_for_each(|group| file.samples(group, &mut texts).map(drop))
}

fn stacks(bytes: &Bytes) -> parquet::errors::Result<()> {
    let file = Groups::of(Table::Stacks, bytes.clone())?;
    let mut found = Found::default();
    found.events.push(EventName {
        name: "event".into(),
        unit: "unit".into(),
    });
    let one = Weight {
        value: 1,
        samples: 1,
    };
    for group in 0..file.len() {
        let sums = file.stack_ids(group)?.into_iter();
        found.sums.extend(sums.map(|stack| ((0, stack), one)));
    }
    let mut frames = Frames::of(&found);
    frames.read(bytes.clone())?;
    let profile = SymbolizedProfile::without_names(frames.profile_of(&found));
    let tree = CallTree::new(&profile, &Filter::default(), Split::Nothing);
    assert!(
        found.sums.is_empty() || tree.is_ok(),
        "no profile: {:?}",
        tree.err()
    );
    Ok(())
}

fn runs(bytes: &Bytes) -> parquet::errors::Result<()> {
    let file = Groups::of(Table::Runs, bytes.clone())?;
    (0..file.len()).try_for_each(|group| file.run_ids(group).map(drop))
}
