//! Suggestions for mistyped names.

/// The most suggestions.
const MOST: usize = 3;

/// The names most similar to `given`, which is not among them: first those that contain it in
/// other letter case, then those that differ little. May be empty.
pub(crate) fn similar<'a>(given: &str, names: impl Iterator<Item = &'a str>) -> Vec<String> {
    /// The least similarity, from 0 to 1: low enough for two swapped letters in a short name.
    const LEAST: f64 = 0.6;
    let given = given.to_lowercase();
    let mut scored: Vec<(f64, &str)> = names
        .map(|name| (score(&given, &name.to_lowercase()), name))
        .filter(|(score, _)| *score >= LEAST)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    scored.dedup();
    let best = scored.into_iter().take(MOST);
    best.map(|(_, name)| name.to_owned()).collect()
}

fn score(given: &str, name: &str) -> f64 {
    if name.contains(given) && !given.is_empty() {
        return 2.0;
    }
    // People leave out paths and parameters.
    let path = name.split(['(', '<']).next().unwrap_or(name);
    let last = path.rsplit("::").next().unwrap_or(path);
    let likeness = |name| strsim::normalized_damerau_levenshtein(given, name);
    likeness(name).max(likeness(last))
}

/// `; did you mean a, b or c?`, or nothing.
pub(crate) fn did_you_mean(similar: &[String]) -> String {
    match similar {
        [] => String::new(),
        [one] => format!("; did you mean {one}?"),
        [first @ .., last] => format!("; did you mean {} or {last}?", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_were_meant() {
        let names = [
            "main",
            "compute_sum(int)",
            "ns::Parser::parse",
            "Compute",
            "vfs_read",
        ];
        let check = |given, expected: &[&str]| {
            assert_eq!(similar(given, names.into_iter()), expected, "{given}");
        };
        check("mian", &["main"]);
        check("Main", &["main"]);
        check("compute_smu", &["compute_sum(int)", "Compute"]);
        check("COMPUTE", &["Compute", "compute_sum(int)"]);
        check("prase", &["ns::Parser::parse"]);
        check("zzz", &[]);
        check("", &[]);
    }

    #[test]
    fn suggestions_are_a_sentence() {
        let check = |names: &[&str], expected| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            assert_eq!(did_you_mean(&names), expected);
        };
        check(&[], "");
        check(&["a"], "; did you mean a?");
        check(&["a", "b", "c"], "; did you mean a, b or c?");
    }
}
