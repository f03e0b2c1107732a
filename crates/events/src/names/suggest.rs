//! The nearest of many names.

/// At most three names that are near enough to `typed` to be what was meant, nearest first.
pub(super) fn nearest<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    const SHOWN: usize = 3;
    // A third of the letters may be wrong; short names need more than that to be meant.
    let limit = (typed.chars().count() / 3).clamp(1, 6);
    let typed = typed.to_lowercase();
    let mut near: Vec<(usize, &str)> = names
        .into_iter()
        .filter_map(|name| Some((distance(&typed, &name.to_lowercase(), limit)?, name)))
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

/// How many letters must be inserted, deleted, replaced or swapped with the next one to turn one
/// name into the other (optimal string alignment); `None` if more than `limit`.
fn distance(a: &str, b: &str, limit: usize) -> Option<usize> {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > limit {
        return None;
    }
    let mut before: Vec<usize> = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    let mut row = last.clone();
    for i in 1..=a.len() {
        row[0] = i;
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        std::mem::swap(&mut before, &mut last);
        std::mem::swap(&mut last, &mut row);
    }
    last.last().copied().filter(|&distance| distance <= limit)
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
    fn typing_errors_find_what_was_meant() {
        check("cycels", &["cycles"]);
        check("cylces", &["cycles"]);
        check("cpu-clocks", &["cpu-clock"]);
        check("taskclock", &["task-clock"]);
        check("fault", &["faults"]);
        check("llc-load", &["LLC-loads"]);
        check("sc", &["cs"]);
    }

    #[test]
    fn what_is_far_is_not_suggested() {
        check("instructions", &[]);
        check("", &[]);
        check("xyz", &[]);
    }

    #[test]
    fn distances() {
        assert_eq!(distance("", "", 1), Some(0));
        assert_eq!(distance("ab", "ba", 2), Some(1));
        assert_eq!(distance("kitten", "sitting", 3), Some(3));
        assert_eq!(distance("kitten", "sitting", 2), None);
    }
}
