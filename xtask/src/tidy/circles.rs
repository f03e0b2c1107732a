//! Modules of a crate must not depend on each other in a circle.
//!
//! The rule: the files and folders of one folder use each other in one direction only. The contents
//! of a folder count as the folder. A name is resolved to its definition, so that a re-export
//! neither counts as a use nor hides one. A folder's own file (`mod.rs`, `lib.rs`) and the contents
//! of the folder are one: they may use each other. Tests do not count.

use std::collections::{BTreeMap, BTreeSet};

use super::Problem;
use super::paths::{Module, Modules};
use super::source::Source;

/// The uses between the modules of a folder, with the place of the first.
type Uses = BTreeMap<(String, String), String>;

/// Finds circles between the modules of each crate.
pub(super) fn check(sources: &[Source]) -> Vec<Problem> {
    let mut folders: BTreeMap<String, Uses> = BTreeMap::new();
    for (root, crate_sources) in crates(sources) {
        let modules = Modules::new(&root, &crate_sources);
        for module in modules.iter() {
            for used in module.uses(&modules) {
                let Some((folder, from, to)) = within_one_folder(&root, module, &used.module)
                else {
                    continue;
                };
                let place = format!("{}:{}", module.file, used.line);
                folders
                    .entry(folder)
                    .or_default()
                    .entry((from, to))
                    .or_insert(place);
            }
        }
    }
    let mut problems = Vec::new();
    for (folder, uses) in &folders {
        let mut left: BTreeSet<_> = uses.keys().collect();
        while let Some(circle) = circle_in(&left) {
            problems.push(Problem::new(folder, describe(&circle, uses)));
            // Report one circle for each use.
            left.retain(|(from, to)| !circle.windows(2).any(|step| *step == [from, to]));
        }
    }
    problems
}

/// The sources of each crate by the folder of its root.
fn crates(sources: &[Source]) -> BTreeMap<String, Vec<&Source>> {
    let mut crates: BTreeMap<String, Vec<&Source>> = BTreeMap::new();
    for source in sources {
        let is_ours = source.path.starts_with("crates/") || source.path.starts_with("xtask/");
        if let Some((root, _)) = source.path.split_once("/src/")
            && is_ours
        {
            crates
                .entry(format!("{root}/src"))
                .or_default()
                .push(source);
        }
    }
    crates
}

/// The innermost folder that holds both, and which of its files or folders they are or are in;
/// `None` if one is that folder's own file.
fn within_one_folder(
    root: &str,
    user: &Module,
    used: &[String],
) -> Option<(String, String, String)> {
    let both = user.path.iter().zip(used);
    let common = both.take_while(|(a, b)| a == b).count();
    let (from, to) = (user.path.get(common)?, used.get(common)?);
    let mut folder = root.to_string();
    for part in &used[..common] {
        folder = format!("{folder}/{part}");
    }
    Some((folder, from.clone(), to.clone()))
}

/// A shortest circle through any of these uses, its first name repeated at the end.
fn circle_in<'a>(uses: &BTreeSet<&'a (String, String)>) -> Option<Vec<&'a String>> {
    let circles = uses.iter().filter_map(|(from, to)| {
        let mut circle = vec![from];
        circle.extend(path(uses, to, from)?);
        Some(circle)
    });
    circles.min_by_key(Vec::len)
}

/// The shortest way from one to another, both included.
fn path<'a>(
    uses: &BTreeSet<&'a (String, String)>,
    from: &str,
    to: &str,
) -> Option<Vec<&'a String>> {
    let (start, _) = uses.iter().find(|(user, _)| user == from)?;
    let mut ways = vec![vec![start]];
    let mut reached = BTreeSet::from([start]);
    let mut next = 0;
    while let Some(way) = ways.get(next).cloned() {
        next += 1;
        let at = *way.last()?;
        if at == to {
            return Some(way);
        }
        for (_, used) in uses.iter().filter(|(user, _)| user == at) {
            if reached.insert(used) {
                ways.push([&way[..], &[used]].concat());
            }
        }
    }
    None
}

fn describe(circle: &[&String], uses: &Uses) -> String {
    let names: Vec<&str> = circle.iter().map(|name| name.as_str()).collect();
    let places = circle.windows(2).filter_map(|step| {
        let use_of = (step[0].clone(), step[1].clone());
        uses.get(&use_of).map(String::as_str)
    });
    let places: Vec<&str> = places.collect();
    format!("circle {} ({})", names.join(" -> "), places.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[(&str, &str)], expected: &[&str]) {
        let source =
            |(path, text): &(&str, &str)| Source::new(format!("crates/x/src/{path}"), text);
        let sources: Vec<Source> = files.iter().map(source).collect();
        let problems = super::check(&sources);
        let lines: Vec<String> = problems.iter().map(Problem::to_string).collect();
        assert_eq!(lines, expected);
    }

    #[test]
    fn modules_that_use_each_other_are_refused() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c;\npub use a::A;"),
            ("a.rs", "use crate::b::{self, B};\n"),
            ("b.rs", "fn f() { crate::c::g::<u8>() }"),
            ("c.rs", "\nuse std::io;\nuse super::A;"),
        ];
        let places = "crates/x/src/a.rs:1, crates/x/src/b.rs:1, crates/x/src/c.rs:3";
        let circle = format!("crates/x/src: circle a -> b -> c -> a ({places})");
        check(&files, &[&circle]);
        check(&files[..3], &[]);
    }

    #[test]
    fn folders_count_as_their_contents() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a/mod.rs", "mod x; mod y;\npub(crate) use x::X;"),
            ("a/x.rs", "use crate::b::w::W;"),
            ("a/y.rs", ""),
            ("b/mod.rs", "pub(crate) mod w; mod z;"),
            ("b/w.rs", ""),
            ("b/z.rs", "use crate::a::y::Y;"),
        ];
        let places = "crates/x/src/a/x.rs:1, crates/x/src/b/z.rs:1";
        check(
            &files,
            &[&format!("crates/x/src: circle a -> b -> a ({places})")],
        );
        check(&files[..6], &[]);
    }

    #[test]
    fn re_exports_are_resolved_to_their_definitions() {
        let files = [
            ("lib.rs", "mod a;"),
            (
                "a/mod.rs",
                "mod x; mod y;\npub(crate) use x::X;\nstruct Own(y::Y);",
            ),
            ("a/x.rs", "use super::y::Y; fn f() { super::Own }"),
            ("a/y.rs", "use super::{Own, X};"),
        ];
        let places = "crates/x/src/a/x.rs:1, crates/x/src/a/y.rs:1";
        check(
            &files,
            &[&format!("crates/x/src/a: circle x -> y -> x ({places})")],
        );
    }

    #[test]
    fn tests_do_not_count() {
        let tests = "fn f() {}\n#[cfg(test)]\nmod tests {\n    fn g() { crate::a::A }\n}\n";
        let files = [
            ("lib.rs", "#[cfg(test)]\nmod testing;\nmod a; mod b;"),
            ("a.rs", "use crate::b::B;"),
            ("b.rs", tests),
            ("testing.rs", "use crate::a::A;"),
        ];
        check(&files, &[]);
    }
}
