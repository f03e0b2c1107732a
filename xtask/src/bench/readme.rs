//! The table of costs in README.md: an extract of docs/results/steady.md.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};

/// Where the results are.
pub(crate) const RESULTS: &str = "docs/results/steady.md";

const HEAD: &str = "\
| program | 99 Hz | 999 Hz | whole stacks |
| --- | ---: | ---: | ---: |
";

/// The programs in the table, by their names in the results, and what the table calls them.
const PROGRAMS: [(&str, &str); 6] = [
    ("sqlite3", "sqlite3"),
    ("ripgrep", "ripgrep, on two cores"),
    ("node", "Node"),
    ("gcc", "gcc"),
    ("rustc", "rustc: stacks far beyond the kernel's copy"),
    ("python3", "Python: its functions are read with each sample"),
];

/// Whether the README of a checkout has the costs of its results.
pub(crate) fn is_current(root: &Path) -> Result<bool> {
    let read = |path: &str| {
        std::fs::read_to_string(root.join(path)).with_context(|| format!("cannot read {path}"))
    };
    let readme = read("README.md")?;
    Ok(with_costs(&readme, &read(RESULTS)?)? == readme)
}

/// README.md, with the table as these results have it.
fn with_costs(readme: &str, results: &str) -> Result<String> {
    let (before, rest) = readme
        .split_once(HEAD)
        .context("README.md has no table of costs")?;
    let after = rest.find("\n\n").map_or("", |end| &rest[end + 1..]);
    Ok(format!("{before}{}{after}", table(results)?))
}

/// Writes the table into the README of a checkout.
pub(super) fn update(root: &Path, results: &str) -> Result<()> {
    let path = root.join("README.md");
    let readme = std::fs::read_to_string(&path).context("cannot read README.md")?;
    std::fs::write(&path, with_costs(&readme, results)?).context("cannot write README.md")
}

fn table(results: &str) -> Result<String> {
    let mut table = String::from(HEAD);
    for (program, about) in PROGRAMS {
        let cells = |hertz| {
            cells(results, program, hertz)
                .with_context(|| format!("the results have no row of {program} at {hertz} Hz"))
        };
        let (rare, frequent) = (cells("99")?, cells("999")?);
        let whole = frequent.whole;
        let (rare, frequent) = (rare.own_cpu, frequent.own_cpu);
        writeln!(table, "| {about} | {rare:.1} | {frequent:.1} | {whole} |")?;
    }
    Ok(table)
}

struct Cells<'a> {
    /// In percent.
    own_cpu: f64,
    whole: &'a str,
}

/// What the results say of prof itself.
fn cells<'a>(results: &'a str, program: &str, hertz: &str) -> Option<Cells<'a>> {
    let rows = results.lines().map(|row| row.split('|').map(str::trim));
    let mut row = rows.map(|row| row.collect::<Vec<_>>());
    let row = row.find(|row| row.get(1..4) == Some(&[program, hertz, "prof"]))?;
    Some(Cells {
        own_cpu: row.get(4)?.strip_suffix(" %")?.parse().ok()?,
        whole: row.get(11)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_an_extract() {
        let mut results = String::new();
        for (program, _) in PROGRAMS {
            for (hertz, cost) in [(99, "0.26 %"), (999, "1.04 %")] {
                let row = "0.1 s | 7 | +1 % | +1 % | 9 MB | 98 % | 99.8 % | 0 | here |";
                results += &format!("| {program} | {hertz} | prof | {cost} | {row}\n");
                results += &format!("| {program} | {hertz} | samply | 9.99 % | {row}\n");
            }
        }
        let readme = format!("# prof\n\n{HEAD}| old | 1 | 2 | 3 |\n\nMore.\n");
        let new = with_costs(&readme, &results).unwrap();
        assert!(new.starts_with("# prof\n\n| program |"), "{new}");
        assert!(new.contains("\n| gcc | 0.3 | 1.0 | 99.8 % |\n"), "{new}");
        assert!(
            new.ends_with(" |\n\nMore.\n") && !new.contains("old"),
            "{new}"
        );
        assert_eq!(with_costs(&new, &results).unwrap(), new);
        assert!(with_costs("# prof\n", &results).is_err());
        assert!(with_costs(&readme, "").is_err());
    }
}
