//! docs/results/kernels.md.

use std::fmt::Write as _;

use super::{Kernel, Trial};

/// The rows of the table: trials by their names in tests/kernels/guest/suite, and what they are.
const ROWS: [(&str, &str); 27] = [
    ("deep", "C"),
    ("threads", "threads"),
    ("signals", "signal handlers"),
    ("leaf-fp", "C without unwind tables"),
    ("leaf-bare", "the same, without frame pointers"),
    ("bigframe", "large frames without unwind tables"),
    ("plt", "calls of libraries"),
    ("static", "static program"),
    ("signed", "signed return addresses"),
    ("python", "Python 3.11"),
    ("node", "Node 18"),
    ("ruby", "Ruby 3.1"),
    ("php", "PHP 8.2"),
    ("java", "Java 17"),
    ("pid", "`-p`"),
    ("all", "`-a`"),
    ("off-cpu", "`--off-cpu`"),
    ("wall", "`--wall`"),
    ("alloc", "`--alloc`"),
    ("uprobe", "`-e uprobe:…`"),
    ("cycles", "`-e cycles`"),
    ("ptrace", "`--sampler ptrace`"),
    ("plain-deep", "plain user, paranoid 2"),
    ("plain-wall", "the same, `--wall`"),
    ("plain-ptrace", "plain user, paranoid 3 (ptrace)"),
    ("stat", "`prof stat`"),
    ("stat-threads", "`prof stat --per-thread`"),
];

pub(super) fn page(kernels: &[Kernel]) -> String {
    let mut notes = Vec::new();
    let mut table = String::from("| |");
    kernels
        .iter()
        .for_each(|it| _ = write!(table, " {} |", it.name));
    table += "\n| --- |";
    kernels.iter().for_each(|_| table += " --- |");
    table.push('\n');
    for (name, title) in ROWS {
        _ = write!(table, "| {title} |");
        for kernel in kernels {
            let trial = kernel.trials.iter().find(|trial| trial.name == name);
            let cell = trial.map_or_else(|| String::from("–"), |trial| cell(trial, &mut notes));
            _ = write!(table, " {cell} |");
        }
        table.push('\n');
    }
    let releases: Vec<String> = (kernels.iter())
        .map(|kernel| format!("{} is {}", kernel.name, kernel.release))
        .collect();
    let mut page = format!(
        "# Other kernels and processors\n\n\
         Written by `cargo xtask kernels` ([tests/kernels](../../tests/kernels/README.md)): Debian's \
         kernels in\nqemu, with Debian 12's programs. The share of whole stacks; \"wrong\" is the \
         share of those that count\nas whole and are not the program's real chain of calls. A number \
         in brackets is what prof says of the\nothers. The emulated x86-64 has no hardware \
         counters.\n\n{table}\n{}.\n",
        releases.join(", ")
    );
    if !notes.is_empty() {
        page.push('\n');
    }
    for (index, note) in (1..).zip(&notes) {
        _ = writeln!(page, "{index}. {note}");
    }
    page
}

/// What a trial has shown; what prof says of it becomes a note.
fn cell(trial: &Trial, notes: &mut Vec<String>) -> String {
    let stacks = &trial.stacks;
    let mut cell = match (trial.done, trial.whole) {
        (false, _) => String::from("no"),
        (true, None) => String::from("yes"),
        (true, Some(whole)) => format!("{whole} %"),
    };
    if stacks.wrong > 0 {
        let share = 100.0 * stacks.wrong as f64 / (stacks.right + stacks.wrong) as f64;
        _ = write!(cell, ", {share:.1} % wrong");
    }
    if !trial.reason.is_empty() && trial.whole.is_none_or(|whole| whole < 99.0) {
        let note = generic(&trial.reason);
        let known = notes.iter().position(|known| *known == note);
        let index = known.unwrap_or_else(|| {
            notes.push(note);
            notes.len() - 1
        });
        _ = write!(cell, " [{}]", index + 1);
    }
    cell
}

/// A reason without the numbers of this recording before it, and without addresses and advice
/// behind it.
fn generic(reason: &str) -> String {
    let (before, behind) = reason.split_once(": ").unwrap_or(("", reason));
    let text = match before.contains("stack") {
        true => behind,
        false => reason,
    };
    let text = text.split_once(" (most in ").map_or(text, |(text, _)| text);
    text.split_once("; ")
        .map_or(text, |(text, _)| text)
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::chains::Judgement;
    use super::*;

    fn check(whole: Option<f64>, done: bool, wrong: u64, reason: &str, expected: &str) {
        let stacks = Judgement {
            right: 3,
            wrong,
            ..Judgement::default()
        };
        let trial = Trial {
            name: String::from("deep"),
            done,
            whole,
            reason: reason.to_owned(),
            stacks,
        };
        assert_eq!(cell(&trial, &mut Vec::new()), expected);
    }

    #[test]
    fn cells() {
        check(Some(100.0), true, 0, "1 stack (0.1 %): x", "100 %");
        check(
            Some(47.5),
            true,
            1,
            "3 stacks (1 %): x",
            "47.5 %, 25.0 % wrong [1]",
        );
        check(None, false, 0, "error: no", "no [1]");
        check(None, true, 0, "", "yes");
    }

    #[test]
    fn reasons_of_different_kernels_are_one_note() {
        let reason = "31 stacks (36.5 %): the callers form a loop (most in /a+0x6c0); to report";
        assert_eq!(generic(reason), "the callers form a loop");
        assert_eq!(
            generic("error: cannot count: no counters"),
            "error: cannot count: no counters"
        );
    }
}
