//! The nearest of many names.

/// At most three names that are near enough to `typed` to be what was meant, nearest first.
pub(super) fn nearest<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    const SHOWN: usize = 3;
    // A third of the letters may be missing, wrong or swapped; of short names, one.
    let letters = typed.chars().count();
    let limit = (letters / 3).clamp(1, 6);
    let typed = typed.to_lowercase();
    let mut near: Vec<(usize, &str)> = names
        .into_iter()
        // Skips names that are much longer, of which large programs have many.
        .filter(|name| name.chars().count().abs_diff(letters) <= limit)
        .map(|name| (strsim::osa_distance(&typed, &name.to_lowercase()), name))
        .filter(|(distance, _)| *distance <= limit)
        .collect();
    near.sort_unstable();
    near.dedup();
    let best = near.first().map_or(0, |(distance, _)| *distance);
    near.into_iter()
        .take_while(|(distance, _)| *distance <= best + 1)
        .take(SHOWN)
        .map(|(_, name)| name.to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(typed: &str, expected: &[&str]) {
        let names = [
            "cycles",
            "cpu-cycles",
            "cs",
            "cpu-clock",
            "task-clock",
            "faults",
            "LLC-loads",
        ];
        assert_eq!(nearest(typed, names), expected, "{typed}");
    }

    #[test]
    fn typing_errors_get_suggestions() {
        check("cycels", &["cycles"]);
        check("cylces", &["cycles"]);
        check("cpu-clocks", &["cpu-clock"]);
        check("taskclock", &["task-clock"]);
        check("fault", &["faults"]);
        check("llc-load", &["LLC-loads"]);
        check("sc", &["cs"]);
    }

    #[test]
    fn distant_names_are_not_suggested() {
        check("instructions", &[]);
        check("", &[]);
        check("xyz", &[]);
    }
}
