//! Folded stacks: `process;outermost;...;innermost weight`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// All stacks of a recording with their weights.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stacks {
    /// Outermost frame first, without the process's name.
    stacks: BTreeMap<Vec<String>, u64>,
    /// The names of the processes.
    processes: BTreeSet<String>,
}

impl Stacks {
    /// Parses the output of `prof report --folded`.
    ///
    /// # Panics
    /// On a line that is no folded stack.
    pub fn from_folded(text: &str) -> Self {
        let mut stacks = Self::default();
        for line in text.lines() {
            let (frames, weight) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line:?}"));
            let weight = weight.parse().unwrap_or_else(|_| panic!("{line:?}"));
            let mut frames = frames.split(';').map(String::from);
            stacks.processes.extend(frames.next());
            stacks.add(frames.collect(), weight);
        }
        stacks
    }

    /// Adds to the weight of a stack, outermost frame first.
    pub fn add(&mut self, frames: Vec<String>, weight: u64) {
        *self.stacks.entry(frames).or_default() += weight;
    }

    /// The stacks with their weights.
    pub fn iter(&self) -> impl Iterator<Item = (&[String], u64)> {
        self.stacks
            .iter()
            .map(|(frames, &weight)| (&frames[..], weight))
    }

    /// The names of the processes.
    pub fn processes(&self) -> Vec<&str> {
        self.processes.iter().map(String::as_str).collect()
    }

    /// The stacks with one of these functions innermost.
    pub fn with_leaves(&self, functions: &[&str]) -> Self {
        let is_leaf = |frames: &[String]| frames.last().is_some_and(|f| functions.contains(&&**f));
        self.filtered(is_leaf)
    }

    /// The weight of all stacks together.
    pub fn total(&self) -> u64 {
        self.stacks.values().sum()
    }

    /// The share of the weight of those stacks that fit.
    pub fn share(&self, fits: impl Fn(&[String]) -> bool) -> f64 {
        let fitting: u64 = self
            .iter()
            .filter(|(frames, _)| fits(frames))
            .map(|(_, w)| w)
            .sum();
        fitting as f64 / self.total().max(1) as f64
    }

    /// The share with this function innermost.
    pub fn self_share(&self, function: &str) -> f64 {
        self.share(|frames| frames.last().is_some_and(|frame| frame == function))
    }

    /// The share that reaches its outermost frame and says so by its name.
    pub fn whole_share(&self) -> f64 {
        self.share(starts_at_root)
    }

    /// The heaviest stack, outermost frame first.
    pub fn hottest(&self) -> Vec<&str> {
        let heaviest = self.stacks.iter().max_by_key(|(_, weight)| **weight);
        let frames = heaviest.map(|(frames, _)| frames.iter().map(String::as_str).collect());
        frames.unwrap_or_default()
    }

    /// # Panics
    /// Unless the innermost frames of the heaviest stack are these, outermost of them first.
    #[track_caller]
    pub fn assert_hottest(&self, frames: &[&str]) {
        let hottest = self.hottest();
        assert!(
            hottest.ends_with(frames),
            "{hottest:?} does not end with {frames:?}\n{self}"
        );
    }

    /// # Panics
    /// Unless at least this share of the weight is in stacks that reach their root.
    #[track_caller]
    pub fn assert_whole(&self, at_least: f64) {
        let whole = self.whole_share();
        assert!(
            whole >= at_least,
            "only {:.2} % reach a root:\n{}",
            whole * 100.0,
            self.rootless()
        );
    }

    fn rootless(&self) -> Self {
        self.filtered(|frames| !starts_at_root(frames))
    }

    fn filtered(&self, fits: impl Fn(&[String]) -> bool) -> Self {
        let mut some = Self {
            stacks: BTreeMap::new(),
            processes: self.processes.clone(),
        };
        for (frames, weight) in self.iter().filter(|(frames, _)| fits(frames)) {
            some.add(frames.to_vec(), weight);
        }
        some
    }
}

/// The twenty heaviest stacks, for messages.
impl fmt::Display for Stacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut stacks: Vec<_> = self.iter().collect();
        stacks.sort_by_key(|(_, weight)| std::cmp::Reverse(*weight));
        for (frames, weight) in stacks.iter().take(20) {
            let shown = match frames.len().checked_sub(40) {
                None | Some(0) => frames.join(";"),
                Some(left_out) => {
                    let (outer, inner) =
                        (frames[..20].join(";"), frames[20 + left_out..].join(";"));
                    format!("{outer};...{left_out} more...;{inner}")
                }
            };
            writeln!(f, "{weight:>12} {shown}")?;
        }
        Ok(())
    }
}

/// Whether a function is where a process or a thread begins.
pub fn is_root(function: &str) -> bool {
    let name = function.trim_start_matches("__GI_").trim_start_matches('_');
    let roots = ["start", "clone3", "clone", "dl_start_user", "thread_start"];
    roots.contains(&name) || is_unnamed_libc(function)
}

/// Whether the outermost frame is a root by its name or, if `_start` is stripped, by its callee.
pub fn starts_at_root(frames: &[String]) -> bool {
    let is_start = |frame: &String| frame.contains("+0x");
    match frames {
        [first, ..] if is_root(first) => true,
        [first, second, ..] => is_start(first) && second.starts_with("__libc_start_main"),
        _ => false,
    }
}

/// If libc's roots have no symbols (Debian: libc6-dbg), any code of libc will do, but not under
/// `CI=true`.
fn is_unnamed_libc(frame: &str) -> bool {
    let in_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    let libc = ["libc.so.6+0x", "ld-linux-x86-64.so.2+0x"];
    !in_ci && libc.iter().any(|module| frame.starts_with(module))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folded_stacks_are_read_and_measured() {
        let stacks =
            Stacks::from_folded("p;_start;main;a b(c) 30\np;x;main 10\nq;_start;main;a b(c) 60\n");
        assert_eq!(stacks.total(), 100);
        assert_eq!(stacks.hottest(), ["_start", "main", "a b(c)"]);
        assert_eq!(
            (stacks.self_share("main"), stacks.whole_share()),
            (0.1, 0.9)
        );
        stacks.assert_hottest(&["main", "a b(c)"]);
        stacks.assert_whole(0.9);
    }

    #[test]
    fn roots() {
        let is_rooted =
            |stack: &str| starts_at_root(&stack.split(';').map(String::from).collect::<Vec<_>>());
        for (stack, rooted) in [
            ("_start;main", true),
            ("__GI___clone3;start_thread", true),
            ("sqlite3+0xa7a0;__libc_start_main;x", true),
            ("sqlite3+0xa7a0;sqlite3_step", false),
            ("[truncated: no reason];_start;main", false),
            ("main", false),
        ] {
            assert_eq!(is_rooted(stack), rooted, "{stack}");
        }
    }
}
