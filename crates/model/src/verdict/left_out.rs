//! What the verdict says of names and files that were left out.

use std::collections::BTreeSet;

use crate::left_out::LeftOut;
use crate::quality::Quality;
use crate::text::printable;

/// A line for each kind of them.
pub(super) fn left_out(quality: &Quality) -> impl Iterator<Item = String> {
    let LeftOut { names, files } = &quality.left_out;
    let names = listed(names).map(|processes| {
        format!(
            "some functions of {processes} have no names: there are more than fit into a fair \
             share of the room for names; a recording of fewer processes has more"
        )
    });
    let were = if files.len() == 1 { "was" } else { "were" };
    let files = listed(files).map(|files| {
        format!(
            "{files} {were} not read for stacks, because that takes too long or too much memory: \
             stacks there may be partial, and functions of interpreters missing"
        )
    });
    names.into_iter().chain(files)
}

/// The entries of a list in words; `None` if there are none.
fn listed(list: &BTreeSet<String>) -> Option<String> {
    const SHOWN: usize = 3;
    let shown: Vec<_> = list.iter().take(SHOWN).map(|it| printable(it)).collect();
    let named = shown.join(", ");
    match list.len() {
        0 => None,
        count if count > SHOWN => Some(format!("{named} and others")),
        _ => Some(named),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_one_line() {
        let mut quality = Quality::default();
        assert_eq!(left_out(&quality).next(), None);
        for number in 0..40 {
            quality.left_out.add_names_of(&format!("evil{number:02}"));
        }
        quality.left_out.add_file("/tmp/python3.1\n");
        let lines: Vec<_> = left_out(&quality).collect();
        assert_eq!(lines.len(), 2);
        let names = "some functions of evil00, evil01, evil02 and others have no names";
        assert!(lines[0].starts_with(names), "{}", lines[0]);
        assert!(
            lines[1].starts_with("/tmp/python3.1\\n was not read"),
            "{}",
            lines[1]
        );
    }
}
