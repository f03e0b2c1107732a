//! Python's functions in recordings beside those of py-spy: what they cost, and whether they are
//! right. The program knows: its native function `n0` is called by its Python function `f0` only.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::{Options, Paths, counts_of_prof, machine, median};
use crate::{process, workspace};

const HERTZ: &str = "999";
/// Calls of each thread: some seconds.
const CALLS: &str = "300000";
/// How many threads call besides the main one: numbers of runs.
const THREADS: [&str; 2] = ["0", "2"];

/// A profiler with its options, which come before the program; without any, the program alone.
struct Way {
    name: &'static str,
    output: Output,
    words: Vec<PathBuf>,
}

/// What a run leaves.
#[derive(Clone, Copy)]
enum Output {
    Nothing,
    Recording,
    FoldedStacks,
}

/// One run of the program, in seconds.
struct Run {
    wall: f64,
    cpu: f64,
    /// What the profiler took, if there is one.
    own_cpu: f64,
    pairs: Pairs,
}

/// Samples, and those in native functions by their callers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Pairs {
    samples: u64,
    right: u64,
    wrong: u64,
    /// Nothing says who called.
    unknown: u64,
}

/// Measures, and writes the page.
pub(super) fn measure_all(paths: &Paths, options: &Options, python: &Path) -> Result<()> {
    let ways = ways(paths)?;
    let mut page = page(paths, options, python)?;
    for threads in THREADS {
        let mut runs: Vec<Vec<Run>> = ways.iter().map(|_| Vec::new()).collect();
        for repetition in 1..=options.repetitions {
            for (way, runs) in ways.iter().zip(&mut runs) {
                println!("{threads} threads more, {}: {repetition}", way.name);
                runs.push(run(paths, way, (python, threads))?);
            }
        }
        writeln!(page, "\n## {threads} threads besides the main one\n")?;
        table(&mut page, &ways, &runs)?;
    }
    let output = workspace::root().join(&options.python_output);
    fs::write(&output, &page).with_context(|| format!("cannot write {}", output.display()))?;
    println!("\n{page}\nwritten to {}", output.display());
    Ok(())
}

fn ways(paths: &Paths) -> Result<Vec<Way>> {
    let way = |name, output, program: PathBuf, options: &[&str]| {
        let options = options.iter().map(PathBuf::from);
        let words = [program].into_iter().chain(options).collect();
        Way {
            name,
            output,
            words,
        }
    };
    let record = ["record", "-F", HERTZ, "-o", "python.data", "--"];
    let mut ways = vec![
        Way {
            name: "alone",
            output: Output::Nothing,
            words: Vec::new(),
        },
        way("prof", Output::Recording, paths.prof.clone(), &record),
    ];
    let environment = workspace::target_directory()?.join("bench/py-spy");
    let py_spy = match process::find("py-spy") {
        Some(program) => program,
        None => environment.join("bin/py-spy"),
    };
    if !py_spy.exists() {
        let at = environment.display();
        println!(
            "!!! py-spy is not here: left out (python3 -m venv {at} && {at}/bin/pip install py-spy)"
        );
        return Ok(ways);
    }
    let record = ["record", "--rate", HERTZ, "-f", "raw", "-o", "python.raw"];
    for (name, option) in [
        ("py-spy", None),
        ("py-spy --native", Some("--native")),
        ("py-spy --nonblocking", Some("--nonblocking")),
    ] {
        let options: Vec<_> = record.into_iter().chain(option).chain(["--"]).collect();
        ways.push(way(name, Output::FoldedStacks, py_spy.clone(), &options));
    }
    Ok(ways)
}

/// Builds the program's native module, and begins the page.
fn page(paths: &Paths, options: &Options, python: &Path) -> Result<String> {
    let programs = workspace::root().join("tests/programs");
    let include = "import sysconfig; print(sysconfig.get_paths()['include'])";
    let include = process::output(Command::new(python).args(["-c", include]))?;
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-g", "-shared", "-fPIC", "-I", include.trim(), "-o"]);
    gcc.arg(paths.directory.join("pairs.so"));
    process::run(gcc.arg(programs.join("python_pairs.c")))?;
    let program = paths.directory.join("python_pairs.py");
    fs::copy(programs.join("python_pairs.py"), program)?;
    let version = process::output(Command::new(python).arg("--version"))?;
    Ok(format!(
        "# Python\n\n\
         Written by `cargo xtask bench --python`: {}. {}.\n\
         Measured build: {}.\n\
         `tests/programs/python_pairs.py {CALLS} THREADS` with {} (`{}`), recorded at {HERTZ} Hz:\n\
         medians of {} interleaved runs. Slowdown compares a run with the one alone beside it. Pairs\n\
         are samples in native functions, each of which has one Python caller: the stack has that\n\
         one, another one, or none.\n",
        machine::date(),
        machine::description(),
        machine::measured_build(options.prof.as_deref()),
        version.trim(),
        python.display(),
        options.repetitions,
    ))
}

fn run(paths: &Paths, way: &Way, (python, threads): (&Path, &str)) -> Result<Run> {
    let clocks = paths.directory.join("python.clocks");
    let program = [python, "python_pairs.py".as_ref(), CALLS.as_ref()].map(PathBuf::from);
    let words = way.words.iter().cloned().chain(program);
    let words = words.chain([threads.into(), clocks.clone()]);
    let (all, said) = paths.stopwatch.measure(&paths.directory, words)?;
    let text = fs::read_to_string(&clocks)?;
    let mut clocks = text.split_whitespace().map(str::parse::<f64>);
    let mut next = || {
        clocks
            .next()
            .context("the program did not say how long")?
            .context("time")
    };
    let (wall, cpu) = (next()?, next()?);
    let pairs = match way.output {
        Output::Nothing => Pairs::default(),
        Output::Recording => {
            let mut report = Command::new(&paths.prof);
            report.args(["report", "--folded", "-", "-i", "python.data"]);
            let folded = process::output(report.current_dir(&paths.directory))?;
            Pairs {
                // Its stacks weigh nanoseconds.
                samples: counts_of_prof(&said)?.samples,
                ..Pairs::of(&folded)
            }
        }
        Output::FoldedStacks => Pairs::of(&fs::read_to_string(paths.directory.join("python.raw"))?),
    };
    Ok(Run {
        wall,
        cpu,
        own_cpu: all.cpu.as_secs_f64() - cpu,
        pairs,
    })
}

impl Pairs {
    /// Of folded stacks. py-spy has the file after each name: `f0 (python_pairs.py:5)`.
    fn of(folded: &str) -> Self {
        let mut pairs = Self::default();
        for (stack, count) in folded.lines().filter_map(|line| line.rsplit_once(' ')) {
            let Ok(count) = count.parse::<u64>() else {
                continue;
            };
            pairs.samples += count;
            let names = stack
                .split(';')
                .map(|it| it.split(" (").next().unwrap_or(it));
            let names: Vec<_> = names.collect();
            let numbered = |kind: char| {
                let number = move |it: &&str| it.strip_prefix(kind)?.parse::<u8>().ok();
                names.iter().rev().find_map(number)
            };
            let Some(native) = numbered('n') else {
                continue;
            };
            let is_marked = names.iter().any(|it| it.starts_with("[no Python"));
            match numbered('f').filter(|_| !is_marked) {
                Some(caller) if caller == native => pairs.right += count,
                Some(_) => pairs.wrong += count,
                None => pairs.unknown += count,
            }
        }
        pairs
    }
}

fn table(page: &mut String, ways: &[Way], runs: &[Vec<Run>]) -> Result<()> {
    writeln!(
        page,
        "| profiler | seconds | slowdown | program's CPU seconds | profiler's | samples a second | \
         right pairs | wrong | unknown |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    )?;
    for (way, of_way) in ways.iter().zip(runs) {
        let of = |value: fn(&Run) -> f64| median(of_way.iter().map(value));
        let beside = of_way.iter().zip(&runs[0]);
        let slowdown = median(beside.map(|(run, alone)| run.wall / alone.wall));
        let (wall, cpu) = (of(|run| run.wall), of(|run| run.cpu));
        write!(
            page,
            "| {} | {wall:.2} | {slowdown:.3} | {cpu:.2} |",
            way.name
        )?;
        if let Output::Nothing = way.output {
            writeln!(page, " | | | | |")?;
            continue;
        }
        let rate = of(|run| run.pairs.samples as f64 / run.wall);
        write!(page, " {:.2} | {rate:.0} |", of(|run| run.own_cpu))?;
        let sum =
            |value: fn(&Pairs) -> u64| of_way.iter().map(|run| value(&run.pairs)).sum::<u64>();
        let parts = [sum(|it| it.right), sum(|it| it.wrong), sum(|it| it.unknown)];
        match parts.iter().sum::<u64>() {
            0 => writeln!(page, " no native functions | | |")?,
            all => {
                let percent = |part: u64| 100.0 * part as f64 / all as f64;
                let [right, wrong, unknown] = parts.map(percent);
                writeln!(page, " {right:.2} % | {wrong:.2} % | {unknown:.2} % |")?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Pairs;

    #[test]
    fn pairs_are_counted() {
        let folded = "python3;main;f1;n1 5\n\
                      main (a.py:1);f2 (a.py:3);n1 (pairs.so) 2\n\
                      python3;main;f3;[no Python functions: late];n3 1\n\
                      python3;main;spin 4\n";
        let expected = Pairs {
            samples: 12,
            right: 5,
            wrong: 2,
            unknown: 1,
        };
        assert_eq!(Pairs::of(folded), expected);
    }
}
