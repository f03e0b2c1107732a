//! `prof top` beside `perf top` for hours: their usage, and whether it grows.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::usage::Usage;
use super::{Options, Paths, machine, median};
use crate::workspace;

/// The time between two readings.
const INTERVAL: Duration = Duration::from_secs(2);

/// How long one waits for them to start.
const START: Duration = Duration::from_secs(10);

/// Into how many parts the table splits the time.
const PARTS: usize = 8;

/// The usual rate of `prof top`.
const FREQUENCY: &str = "99";

/// A running profiler on its own pseudo-terminal.
struct Watched<'a> {
    name: &'static str,
    command: String,
    paths: &'a Paths,
    running: Running,
    usages: Vec<Usage>,
    /// How often it ended by itself and was restarted.
    restarts: u32,
    /// The CPU time of those before.
    cpu_before: f64,
}

struct Running {
    /// `script`, whose child it is.
    terminal: Child,
    pid: u32,
}

impl Watched<'_> {
    /// Looks at it, and starts it again if it has ended: perf 6.1 aborts now and then.
    fn look(&mut self, begin: Instant) -> Result<()> {
        let usage = Usage::of(self.running.pid, begin).filter(|usage| usage.memory > 0);
        let Some(usage) = usage else {
            self.restarts += 1;
            self.cpu_before = self.usages.last().map_or(0.0, |last| last.cpu);
            self.running = start(self.paths, self.name, &self.command)?;
            return Ok(());
        };
        self.usages.push(Usage {
            cpu: usage.cpu + self.cpu_before,
            ..usage
        });
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // perf continues after its terminal has closed.
        let _ = Command::new("kill").arg(self.pid.to_string()).status();
        let _ = self.terminal.kill();
        let _ = self.terminal.wait();
    }
}

/// Watches all, and writes their usage.
pub(super) fn measure_all(paths: &Paths, options: &Options) -> Result<()> {
    let begin = Instant::now();
    let prof = format!("{} top -a", paths.prof.display());
    let with_calls = format!("perf top --stdio -g -F {FREQUENCY}");
    let watched = |name: &'static str, command: String| -> Result<Watched<'_>> {
        Ok(Watched {
            name,
            running: start(paths, name, &command)?,
            command,
            paths,
            usages: Vec::new(),
            restarts: 0,
            cpu_before: 0.0,
        })
    };
    let mut all = [
        watched("prof top", prof)?,
        watched("perf top", "perf top --stdio".into())?,
        watched("perf top -g", with_calls)?,
    ];
    let busy = machine::busy().unwrap_or(0.0);
    while begin.elapsed() < Duration::from_secs(options.minutes * 60) {
        thread::sleep(INTERVAL);
        for watched in &mut all {
            watched.look(begin)?;
        }
    }
    let busy = (machine::busy().unwrap_or(0.0) - busy) / begin.elapsed().as_secs_f64();
    let text = page(options, &all, busy)?;
    let output = workspace::root().join(&options.top_output);
    fs::write(&output, &text).with_context(|| format!("cannot write {}", output.display()))?;
    println!("\n{text}\nwritten to {}", output.display());
    Ok(())
}

fn start(paths: &Paths, name: &str, command: &str) -> Result<Running> {
    let note = paths.directory.join(format!("{name}.pid"));
    let _ = fs::remove_file(&note);
    let shell = format!(
        "stty rows 40 cols 120; echo $$ >'{}'; exec {command}",
        note.display()
    );
    // Perf spins without a terminal that it can read keys from.
    let mut script = Command::new("script");
    script.args(["--quiet", "--flush", "--command", &shell, "/dev/null"]);
    script.stdin(Stdio::piped()).stdout(Stdio::null());
    let terminal = script.spawn().context("cannot start script (util-linux)")?;
    let pid = pid(&note).with_context(|| format!("{name} does not start"))?;
    Ok(Running { terminal, pid })
}

fn pid(note: &Path) -> Result<u32> {
    let begin = Instant::now();
    loop {
        let text = fs::read_to_string(note).unwrap_or_default();
        if let Ok(pid) = text.trim().parse() {
            return Ok(pid);
        }
        ensure!(begin.elapsed() < START, "no process id in {START:?}");
        thread::sleep(Duration::from_millis(20));
    }
}

fn page(options: &Options, all: &[Watched<'_>], busy: f64) -> Result<String> {
    let mut page = String::from("# `prof top` in the long run\n\n");
    writeln!(
        page,
        "Written by `cargo xtask bench --top`: {}. {}.",
        machine::date(),
        machine::description()
    )?;
    writeln!(
        page,
        "Measured build: {}.",
        machine::measured_build(options.prof.as_deref())
    )?;
    writeln!(
        page,
        "All watch all CPUs, each on a terminal of its own, side by side for {} minutes in which\n\
         {busy:.2} CPUs were busy: `prof top` with whole stacks at its usual {FREQUENCY} Hz, `perf top`\n\
         without stacks at its usual rate (4000 Hz), and `perf top -g` by frame pointers at\n\
         {FREQUENCY} Hz. Memory is resident memory and the rings together, the median of each part.\n",
        options.minutes
    )?;
    page.push_str("| until minute |");
    for watched in all {
        write!(
            page,
            " {name}: CPU, % of a core | memory, MiB |",
            name = watched.name
        )?;
    }
    page.push_str("\n| ---: |");
    page.push_str(&" ---: | ---: |".repeat(all.len()));
    page.push('\n');
    for part in 0..PARTS {
        let minute = options.minutes as f64 * (part + 1) as f64 / PARTS as f64;
        write!(page, "| {minute:.0} |")?;
        for watched in all {
            page.push_str(&cells(&watched.usages, options.minutes, part)?);
        }
        page.push('\n');
    }
    for Watched { name, restarts, .. } in all {
        if *restarts > 0 {
            writeln!(
                page,
                "\n{name} ended by itself and was restarted; restarts: {restarts}."
            )?;
        }
    }
    Ok(page)
}

/// CPU time and the median of memory in one part of the time.
fn cells(usages: &[Usage], minutes: u64, part: usize) -> Result<String> {
    let length = minutes as f64 * 60.0 / PARTS as f64;
    let begin = part as f64 * length;
    let of_part = |usage: &&Usage| usage.time >= begin && usage.time < begin + length;
    let usages: Vec<&Usage> = usages.iter().filter(of_part).collect();
    let [first, .., last] = usages[..] else {
        return Ok(" ended | |".to_owned());
    };
    let memory = median(usages.iter().map(|usage| usage.memory as f64));
    Ok(format!(
        " {:.1} | {:.0} |",
        first.percent_until(last),
        memory / f64::from(1 << 20)
    ))
}
