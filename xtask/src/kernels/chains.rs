//! Compares stacks with the chains of calls that the programs in tests/kernels really have.

/// How many stacks that count as whole are right, by their weights.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Judgement {
    pub(super) right: u64,
    pub(super) wrong: u64,
    /// A wrong one.
    pub(super) example: String,
}

/// Judges the folded stacks of a trial. Only stacks with a program's innermost function count.
pub(super) fn judge(trial: &str, folded: &str) -> Judgement {
    let chains = chains(trial);
    let mut found = Judgement::default();
    for line in folded.lines() {
        let Some((stack, weight)) = line.rsplit_once(' ') else {
            continue;
        };
        let frames: Vec<&str> = stack.split(';').collect();
        let weight = weight.parse().unwrap_or(0);
        // It has its reason.
        if stack.contains("[truncated") {
            continue;
        }
        for chain in &chains {
            let Some(innermost) = chain.last() else {
                continue;
            };
            let Some(at) = frames.iter().position(|frame| frame == innermost) else {
                continue;
            };
            if is_right(&frames[..=at], chain) {
                found.right += weight;
            } else {
                found.wrong += weight;
                stack.clone_into(&mut found.example);
            }
        }
    }
    found
}

/// Whether these frames end with the chain, and begin with the start of a program or thread.
fn is_right(frames: &[&str], chain: &[String]) -> bool {
    let starts = ["_start", "clone3", "thread_start", "__clone"];
    let mut first = frames.iter().take(3);
    frames.ends_with(&chain.iter().map(String::as_str).collect::<Vec<_>>())
        && first.any(|frame| starts.contains(frame))
}

/// The chains of calls of a trial's program, outermost function first.
fn chains(trial: &str) -> Vec<Vec<String>> {
    let words = |text: &str| text.split(' ').map(String::from).collect();
    match trial {
        "deep" | "static" | "signed" | "ptrace" | "cycles" | "plain-deep" | "plain-ptrace" => {
            let functions = (1..=30).map(|number| format!("f{number}"));
            vec![
                std::iter::once(String::from("main"))
                    .chain(functions)
                    .collect(),
            ]
        }
        "threads" | "pid" => (1..=4)
            .map(|n| words(&format!("run{n} outer{n} middle{n} leaf{n}")))
            .collect(),
        "signals" => vec![words("handler in_handler"), words("main outer interrupted")],
        "leaf-fp" | "leaf-bare" => vec![words("main bare_outer bare_middle bare_leaf")],
        "bigframe" => vec![words(
            "main cfi_outer cfi_middle cfi_inner no_cfi_outer no_cfi_inner no_cfi_leaf",
        )],
        "plt" => vec![
            words("main plt_outer plt_middle plt_inner"),
            words("main plt_outer plt_middle plt_inner empty"),
        ],
        "python" => vec![words("main level1 level2 level3 level4 level5 leaf")],
        "ruby" | "php" => vec![words("level1 level2 level3 leaf")],
        "off-cpu" | "wall" | "plain-wall" => vec![words("main waiting napping")],
        "alloc" | "uprobe" => vec![words("main allocating")],
        // Compilers inline functions of others.
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_that_are_missing_are_wrong() {
        let folded = "leaf-bare;_start;__libc_start_main;main;bare_outer;bare_middle;bare_leaf 7\n\
                      leaf-bare;_start;__libc_start_main;bare_middle;bare_leaf 2\n\
                      leaf-bare;[truncated: the callers form a loop];bare_middle;bare_leaf 4\n\
                      leaf-bare;_start;main;clock_gettime 1\n";
        let found = judge("leaf-bare", folded);
        assert_eq!((found.right, found.wrong), (7, 2));
        assert!(
            found
                .example
                .ends_with("__libc_start_main;bare_middle;bare_leaf")
        );
        assert_eq!(judge("java", folded), Judgement::default());
    }
}
