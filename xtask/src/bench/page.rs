//! The page of `prof report --html` for large recordings: the time to make it, its size, and its
//! speed in a browser.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::drawing::run;
use super::markdown::thousands;
use super::{Options, Paths, machine, median, scale};
use crate::{process, workspace};

/// Samples per second of the recording with copies of stacks: half a gigabyte.
const COPIES_RATE: u32 = 4999;

/// For each recording, the time to make the page in seconds, and its size in bytes.
struct Made {
    report: f64,
    page: f64,
    size: u64,
    /// Other installed tools, and the milliseconds until they show the same data.
    others: Vec<(&'static str, Vec<f64>)>,
}

/// Measures the pages of these recordings, or of two new ones, and writes the results.
pub(super) fn measure_all(paths: &Paths, options: &Options, given: &[PathBuf]) -> Result<()> {
    let files = match given {
        [] => vec![scale::record(paths, options.rounds)?, record_copies(paths)?],
        given => given
            .iter()
            .map(std::path::absolute)
            .collect::<Result<_, _>>()?,
    };
    let mut text = head(options);
    let mut browser = None;
    for file in &files {
        let made = make(paths, file, options.repetitions)?;
        let speed = speed(paths)?;
        describe(&mut text, file, &made, &speed)?;
        browser = speed["browser"].as_str().map(str::to_owned);
    }
    writeln!(text, "\nBrowser: {}.", browser.unwrap_or_default())?;
    if let Some(site) = firefox_profiler()? {
        let mut git = Command::new("git");
        git.args(["log", "-1", "--format=commit %h of %cs"]);
        let version = process::output(git.current_dir(site));
        let version = version.unwrap_or_else(|_| "unknown commit".into());
        writeln!(text, "Firefox Profiler: {}.", version.trim())?;
    }
    text.push_str(COMMANDS);
    let output = workspace::root().join(&options.page_output);
    std::fs::write(&output, &text).with_context(|| format!("cannot write {}", output.display()))?;
    println!("\n{text}\nwritten to {}", output.display());
    Ok(())
}

fn record_copies(paths: &Paths) -> Result<PathBuf> {
    let file = paths.directory.join("copies.data");
    scale::record_copies(paths, &file, COPIES_RATE)?;
    Ok(file)
}

/// Makes both in turn; the last page is left in `page.html`.
fn make(paths: &Paths, file: &Path, repetitions: usize) -> Result<Made> {
    let (mut reports, mut pages) = (Vec::new(), Vec::new());
    for repetition in 1..=repetitions {
        println!("{}: {repetition} of {repetitions}", file.display());
        let seconds = |arguments: &str| -> Result<f64> {
            let script = format!("\"$0\" report -i \"$2\" {arguments}");
            let usage = run(paths, &script, &[file.to_owned()])?;
            Ok(usage.wall.as_secs_f64())
        };
        reports.push(seconds("")?);
        pages.push(seconds("--html page.html")?);
    }
    let page = paths.directory.join("page.html");
    Ok(Made {
        report: median(reports),
        page: median(pages),
        size: std::fs::metadata(page)?.len(),
        others: others(paths, file)?,
    })
}

/// The other installed tools, with their `first_pictures`.
fn others(paths: &Paths, file: &Path) -> Result<Vec<(&'static str, Vec<f64>)>> {
    let sites = [
        ("speedscope", "speedscope", speedscope()?),
        ("the Firefox Profiler", "firefox", firefox_profiler()?),
    ];
    let mut others = Vec::new();
    for (name, format, site) in sites {
        if let Some(site) = site {
            others.push((name, first_pictures(paths, file, format, &site)?));
        }
    }
    Ok(others)
}

/// The site of speedscope, if npm has installed it for all (`npm install --global speedscope`).
fn speedscope() -> Result<Option<PathBuf>> {
    let modules = process::output(Command::new("npm").args(["root", "--global"]))?;
    let site = Path::new(modules.trim()).join("speedscope/dist/release");
    Ok(site.is_dir().then_some(site))
}

/// The site that a checkout of the Firefox Profiler has built, if the environment names it.
fn firefox_profiler() -> Result<Option<PathBuf>> {
    let Some(site) = std::env::var_os("FIREFOX_PROFILER") else {
        return Ok(None);
    };
    let site = std::path::absolute(site)?;
    ensure!(
        site.join("index.html").is_file(),
        "FIREFOX_PROFILER is {}, which has no index.html",
        site.display()
    );
    Ok(Some(site))
}

/// Measures how long a site takes to show a recording in a format of `prof report`.
fn first_pictures(paths: &Paths, file: &Path, format: &str, site: &Path) -> Result<Vec<f64>> {
    let profile = format!("{format}.json");
    let script = format!("\"$0\" report -i \"$2\" --{format} {profile}");
    run(paths, &script, &[file.to_owned()])?;
    let mut node = Command::new("node");
    let tests = workspace::root().join("crates/report/web/test");
    node.arg(tests.join(format!("{format}.mjs")));
    node.arg(site).arg(profile).current_dir(&paths.directory);
    let printed: Value = serde_json::from_str(&process::output(&mut node)?)?;
    Ok(times(&printed["first"]))
}

fn times(values: &Value) -> Vec<f64> {
    let values = values.as_array().into_iter().flatten();
    values.filter_map(Value::as_f64).collect()
}

/// Runs `speed.mjs`, and returns its output.
fn speed(paths: &Paths) -> Result<Value> {
    let mut node = Command::new("node");
    node.arg(workspace::root().join("crates/report/web/test/speed.mjs"));
    node.arg(paths.directory.join("page.html"));
    Ok(serde_json::from_str(&process::output(&mut node)?)?)
}

fn describe(text: &mut String, file: &Path, made: &Made, speed: &Value) -> Result<()> {
    let number = |name: &str| thousands(speed[name].as_f64().unwrap_or(f64::NAN));
    writeln!(
        text,
        "\n## {} samples, {} distinct stacks\n\nA recording of {} MB.\n\n\
         | action | median | maximum | goal |\n| --- | ---: | ---: | ---: |",
        number("samples"),
        number("stacks"),
        thousands(std::fs::metadata(file)?.len() as f64 / 1e6),
    )?;
    writeln!(text, "| `prof report` | {:.2} s | | |", made.report)?;
    writeln!(
        text,
        "| `prof report --html` | {:.2} s | | {:.2} s |",
        made.page,
        made.report + 1.0
    )?;
    let size = made.size as f64 / 1e6;
    writeln!(
        text,
        "| the page | {size:.1} MB | | 15 MB; 25 MB with stack dumps |"
    )?;
    let rows = [
        ("first", "first picture", "2,000 ms"),
        ("zoom", "zoom", "50 ms"),
        ("search", "search", "50 ms"),
        ("selection", "another range of time", "50 ms"),
    ];
    let rows = rows.map(|(name, what, goal)| (times(&speed[name]), what.to_owned(), goal));
    let others = made.others.iter().map(|(name, times)| {
        let what = format!("{name}: first picture of the same recording");
        (times.clone(), what, "")
    });
    for (times, what, goal) in rows.into_iter().chain(others) {
        if times.is_empty() {
            writeln!(text, "| {what} | none in a minute | | {goal} |")?;
            continue;
        }
        let most = times.iter().copied().fold(0.0, f64::max);
        let middle = median(times);
        writeln!(text, "| {what} | {middle:.0} ms | {most:.0} ms | {goal} |")?;
    }
    Ok(())
}

fn head(options: &Options) -> String {
    format!(
        "# The page\n\n\
         Written by `cargo xtask bench --page`: {}. {}.\n\
         Measured build: {}.\n\
         Medians of {} interleaved reports, five loads of the page and sixteen of each other\n\
         action. Chromium is headless, without a graphics processor and without a network; the page\n\
         comes from file://. An action is measured from the event until its picture can be read\n\
         back. speedscope opens the output of `prof report --speedscope`, from file:// as well; it\n\
         is measured until its canvas is there. The Firefox Profiler and the output of `prof report\n\
         --firefox` come from a server on this machine; it is measured until its call tree, which\n\
         is of one thread, has rows and the first thread has its graph.\n",
        machine::date(),
        machine::description(),
        machine::measured_build(options.prof.as_deref()),
        options.repetitions,
    )
}

const COMMANDS: &str = "
```sh
prof report -i big.data --html page.html
node crates/report/web/test/speed.mjs page.html
prof report -i big.data --speedscope speedscope.json
node crates/report/web/test/speedscope.mjs SPEEDSCOPE/dist/release speedscope.json
prof report -i big.data --firefox firefox.json
node crates/report/web/test/firefox.mjs $FIREFOX_PROFILER firefox.json
```
";
