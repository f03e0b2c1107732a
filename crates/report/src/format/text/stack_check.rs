//! Where two unwinders differ, as a text table.

use std::io::{self, Write};

use prof_model::StackEnd;

use crate::profile::{Answer, CodePlace, Difference};
use crate::view::stack_check::{DifferenceNames, NamedStackCheck};

use super::places::{PlaceTable, place};
use crate::format::number::{grouped, percent};

/// Writes how many stacks are equal by both unwinders and how many are whole by each, then the
/// frames whose callers differ, at most `rows` of them.
///
/// The columns, separated by two spaces: stacks, share of all stacks in percent, module + offset of
/// the last common frame, its function, its caller by prof's unwinder, and by framehop. Callers are
/// those of the first such stack.
///
/// # Errors
/// Those of `out`.
pub fn write(found: &NamedStackCheck, rows: Option<usize>, mut out: impl Write) -> io::Result<()> {
    let check = &found.check;
    let share = |count: u64| percent(count as f64 / check.stacks.max(1) as f64);
    writeln!(
        out,
        "{} of {} user stacks are the same in prof and framehop ({} %)",
        grouped(check.same),
        grouped(check.stacks),
        share(check.same)
    )?;
    for (what, count) in [
        ("the same frames, but whole in only one", check.same_frames),
        ("whole by prof", check.whole_by_prof),
        ("whole by framehop", check.whole_by_framehop),
    ] {
        writeln!(out, "  {what}: {} ({} %)", grouped(count), share(count))?;
    }
    let all = check.differences.iter().zip(&found.names);
    let rows: Vec<[String; 6]> = all
        .take(rows.unwrap_or(usize::MAX))
        .map(|(difference, names)| cells(difference, names, share))
        .collect();
    PlaceTable {
        titles: [
            "Stacks",
            "%",
            "Caller of",
            "Function",
            "By prof",
            "By framehop",
        ],
        left: check.differences.len() - rows.len(),
        rows,
    }
    .write(out)
}

fn cells(
    difference: &Difference,
    names: &DifferenceNames,
    share: impl Fn(u64) -> String,
) -> [String; 6] {
    [
        grouped(difference.stacks),
        share(difference.stacks),
        at(&difference.place),
        names.function.as_deref().unwrap_or("-").to_owned(),
        answer(&difference.prof, names.prof.as_deref()),
        answer(&difference.framehop, names.framehop.as_deref()),
    ]
}

fn answer(answer: &Answer, name: Option<&str>) -> String {
    match (answer, name) {
        (Answer::Caller(caller), Some(name)) => format!("{name} ({})", at(caller)),
        (Answer::Caller(caller), None) => at(caller),
        (Answer::End(StackEnd::Root), _) => "none: the stack ends here".to_owned(),
        (Answer::End(end), _) => format!("not found: {}", end.describe()),
    }
}

fn at(code: &CodePlace) -> String {
    place(&code.module, code.offset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{check_golden, demo_with_stack_check};

    #[test]
    fn golden() {
        let found = NamedStackCheck::new(&demo_with_stack_check()).unwrap();
        let mut text = Vec::new();
        write(&found, Some(2), &mut text).unwrap();
        check_golden("stack_check.txt", &text);
    }
}
