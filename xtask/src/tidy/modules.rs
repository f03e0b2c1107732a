//! All files of `tests/tests` are modules of one program, which the compiler does not look for.

use super::Problem;
use super::source::Source;

const FOLDER: &str = "tests/tests/";

/// Checks that no file of tests is forgotten.
pub(super) fn check(sources: &[Source]) -> Vec<Problem> {
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
        let problems = check(&sources);
        let lines: Vec<String> = problems.iter().map(Problem::to_string).collect();
        let what = "its tests do not run: `mod b;` is missing in tests/tests/main.rs";
        assert_eq!(lines, [format!("tests/tests/b.rs: {what}")]);
    }
}
