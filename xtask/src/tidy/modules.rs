//! Which files are modules: all of `tests/tests`, where the compiler does not look for them, and
//! `a/mod.rs`, not `a.rs`, for a module with others below it.

use std::collections::HashSet;

use super::Problem;
use super::source::Source;

const FOLDER: &str = "tests/tests/";

/// Checks both.
pub(super) fn check(sources: &[Source]) -> Vec<Problem> {
    let mut problems = forgotten_tests(sources);
    problems.extend(beside_their_folder(sources));
    problems
}

fn beside_their_folder(sources: &[Source]) -> impl Iterator<Item = Problem> {
    let folder = |source: &&Source| Some(source.path.rsplit_once('/')?.0.to_owned());
    let folders: HashSet<String> = sources.iter().filter_map(|it| folder(&it)).collect();
    sources.iter().filter_map(move |source| {
        let module = source.path.strip_suffix(".rs")?;
        let what = format!("its modules are in {module}/: it should be {module}/mod.rs");
        folders
            .contains(module)
            .then(|| Problem::new(&source.path, what))
    })
}

fn forgotten_tests(sources: &[Source]) -> Vec<Problem> {
    let main = format!("{FOLDER}main.rs");
    let main = sources.iter().find(|source| source.path == main);
    let is_module = |name: &str| {
        let line = format!("mod {name};");
        main.is_some_and(|main| main.code.contains(&line))
    };
    let names = sources.iter().filter_map(|source| {
        let name = source.path.strip_prefix(FOLDER)?.strip_suffix(".rs")?;
        (!name.contains('/') && name != "main").then_some(name)
    });
    names
        .filter(|name| !is_module(name))
        .map(|name| {
            let what = format!("its tests do not run: `mod {name};` is missing in {FOLDER}main.rs");
            Problem::new(format!("{FOLDER}{name}.rs"), what)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_of_tests_must_be_a_module() {
        let sources = [
            Source::new("tests/tests/a.rs", ""),
            Source::new("tests/tests/b.rs", ""),
            Source::new("tests/tests/main.rs", "mod a;\n// mod b;\n"),
            Source::new("xtask/src/main.rs", ""),
        ];
        let problems = forgotten_tests(&sources);
        let lines: Vec<String> = problems.iter().map(Problem::to_string).collect();
        let what = "its tests do not run: `mod b;` is missing in tests/tests/main.rs";
        assert_eq!(lines, [format!("tests/tests/b.rs: {what}")]);
    }
    #[test]
    fn module_files_have_one_style() {
        let files = ["a/mod.rs", "a/b.rs", "a/c.rs", "a/c/d.rs"];
        let sources = files.map(|file| Source::new(file, ""));
        let problems: Vec<String> = check(&sources).iter().map(Problem::to_string).collect();
        let expected = "a/c.rs: its modules are in a/c/: it should be a/c/mod.rs";
        assert_eq!(problems, [expected]);
    }
}
