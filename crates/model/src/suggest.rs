//! Suggestions for mistyped names.

/// At most three names that may have been meant by `typed`, which is not among them: those that
/// differ little, or else those that contain it; the likeliest first.
pub fn similar<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    const SHOWN: usize = 3;
    let typed = Typed::new(typed);
    let mut likely: Vec<(usize, usize, &str)> = names
        .into_iter()
        .filter_map(|name| {
            let (distance, longer) = typed.distance(name)?;
            Some((distance, longer, name))
        })
        .collect();
    likely.sort_unstable();
    likely.dedup();
    let best = likely.first().map_or(0, |(distance, ..)| *distance);
    likely
        .into_iter()
        .take_while(|(distance, ..)| *distance <= best + 1)
        .take(SHOWN)
        .map(|(.., name)| name.to_owned())
        .collect()
}

/// `a, b or c`.
pub fn one_of(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// What the user has typed.
struct Typed {
    lower_case: String,
    letters: usize,
    /// The most letters that may be missing, wrong or swapped.
    limit: usize,
}

impl Typed {
    fn new(text: &str) -> Self {
        let lower_case = text.to_lowercase();
        let letters = lower_case.chars().count();
        Self {
            lower_case,
            letters,
            // A third of the letters; of short names, one.
            limit: (letters / 3).clamp(1, 6),
        }
    }

    /// How many letters differ from the name (more than may, if it is only a part of the name), and
    /// by how much their lengths differ; `None` if it is another name.
    fn distance(&self, name: &str) -> Option<(usize, usize)> {
        /// Shorter texts are parts of many names by chance.
        const SHORTEST_PART: usize = 3;
        let name = name.to_lowercase();
        let longer = name.chars().count().abs_diff(self.letters);
        // People leave out paths and parameters.
        let path = name.split(['(', '<']).next().unwrap_or(&name);
        let last = path.rsplit("::").next().unwrap_or(path);
        let distances = [&name, path, last].map(|part| self.letters_changed(part));
        let is_part = self.letters >= SHORTEST_PART && name.contains(&self.lower_case);
        // Beyond the names that are shown beside any that differ little.
        let as_part = is_part.then_some(self.limit + 2);
        let least = distances.into_iter().flatten().min().or(as_part)?;
        Some((least, longer))
    }

    fn letters_changed(&self, name: &str) -> Option<usize> {
        // Skips names that are much longer, of which large programs have many.
        let is_similar_length = name.chars().count().abs_diff(self.letters) <= self.limit;
        let distance = is_similar_length.then(|| strsim::osa_distance(&self.lower_case, name))?;
        (distance <= self.limit).then_some(distance)
    }
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
            "main",
            "compute_sum(int)",
            "ns::Parser::parse",
            "Compute",
            "vfs_read",
        ];
        assert_eq!(similar(typed, names), expected, "{typed}");
    }

    #[test]
    fn typing_errors_get_suggestions() {
        check("cycels", &["cycles"]);
        check("cylces", &["cycles"]);
        check("cpu-clocks", &["cpu-clock"]);
        check("taskclock", &["task-clock"]);
        check("fault", &["faults"]);
        check("cycle", &["cycles"]);
        check("llc-load", &["LLC-loads"]);
        check("sc", &["cs"]);
        check("mian", &["main"]);
        check("compute_smu", &["compute_sum(int)"]);
        check("prase", &["ns::Parser::parse"]);
    }

    #[test]
    fn parts_of_names_get_suggestions() {
        check("Main", &["main"]);
        check("COMPUTE", &["Compute"]);
        check("sum", &["compute_sum(int)"]);
        check("clock", &["cpu-clock", "task-clock"]);
    }

    #[test]
    fn distant_names_are_not_suggested() {
        check("instructions", &[]);
        check("", &[]);
        check("xyz", &[]);
        check("s", &["cs"]);
    }

    #[test]
    fn suggestions_are_a_list_in_words() {
        let check = |names: &[&str], expected| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            assert_eq!(one_of(&names), expected);
        };
        check(&[], "");
        check(&["a"], "a");
        check(&["a", "b", "c"], "a, b or c");
    }
}
