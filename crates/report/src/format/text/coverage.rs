//! How much of threads' work has samples, as a text table.

use std::io::{self, Write};

use prof_model::{Coverage, Quality, printable};

use crate::format::number::{counted, grouped, percent};

/// Writes a line on all threads, another one if the event does not sample all that they do, then
/// one for each name of a process and thread, at most `rows` of them: the sampled share in percent,
/// the share of all that these threads did, how many they were, their samples, and their names.
/// Weights that are corrected are marked by a `*`.
///
/// # Errors
/// Those of `out`.
pub fn write(quality: &Quality, rows: Option<usize>, mut out: impl Write) -> io::Result<()> {
    let all = &quality.coverage[..];
    let by = quality.covered_event.as_deref().map(printable);
    let by = by.map_or_else(String::new, |event| format!(", counted by {event}"));
    let total = Coverage::total(all);
    if total.used == 0 {
        return writeln!(
            out,
            "the recording does not say how much work the samples cover (recordings of commands and \
             processes by cycles or a clock do, if they are one file)"
        );
    }
    writeln!(
        out,
        "samples cover {} % of the work of {}{by}",
        percent(total.share().unwrap_or(0.0)),
        counted(total.threads, "thread")
    )?;
    if total.unseen > 0 {
        writeln!(
            out,
            "(without about {} % that ran in code that the event does not sample)",
            percent(total.unseen as f64 / total.used as f64)
        )?;
    }
    writeln!(out)?;
    writeln!(
        out,
        "Sampled %   Used %  Threads   Samples  Process  Thread"
    )?;
    let shown = &all[..all.len().min(rows.unwrap_or(usize::MAX))];
    for one in shown {
        writeln!(
            out,
            "{:>9}{} {:>8} {:>8} {:>9}  {}  {}",
            one.share().map_or("-".into(), percent),
            one.correction().map_or(' ', |_| '*'),
            percent(one.used as f64 / total.used as f64),
            grouped(one.threads),
            grouped(one.samples),
            printable(&one.process),
            printable(&one.thread)
        )?;
    }
    if shown.iter().any(|one| one.correction().is_some()) {
        writeln!(
            out,
            "* weights in reports are corrected to the kernel's counts"
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corrected_weights_are_marked() {
        let one = |thread: &str, used, sampled, samples| Coverage {
            process: "server".into(),
            thread: thread.into(),
            threads: 1,
            used,
            sampled,
            samples,
            ..Coverage::default()
        };
        let mut out = Vec::new();
        let mut quality = Quality {
            coverage: vec![
                one("worker", 3000, 1000, 1000),
                one("main", 1000, 1000, 1000),
            ],
            ..Quality::default()
        };
        write(&quality, None, &mut out).expect("written");
        let text = String::from_utf8(out).expect("text");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "samples cover 50.00 % of the work of 2 threads");
        assert!(
            lines[3].contains("33.33*") && lines[3].ends_with("server  worker"),
            "{text}"
        );
        assert!(lines[4].contains("100.00 "), "{text}");
        assert!(lines[5].starts_with("* weights"), "{text}");
        quality.covered_event = Some("cycles:u".into());
        let mut out = Vec::new();
        write(&quality, None, &mut out).expect("written");
        let first = b"samples cover 50.00 % of the work of 2 threads, counted by cycles:u\n";
        assert!(out.starts_with(first));
    }

    #[test]
    fn unsampled_parts_of_events_are_reported() {
        let quality = Quality {
            coverage: vec![Coverage {
                threads: 1,
                used: 1000,
                unseen: 1000,
                ..Coverage::default()
            }],
            ..Quality::default()
        };
        let mut out = Vec::new();
        write(&quality, None, &mut out).expect("written");
        let text = String::from_utf8(out).expect("text");
        let expected = "samples cover 0.00 % of the work of 1 thread\n(without about 100.00 % that";
        assert!(text.starts_with(expected), "{text}");
    }

    #[test]
    fn not_knowing_is_said() {
        let mut out = Vec::new();
        write(&Quality::default(), None, &mut out).expect("written");
        assert!(out.starts_with(b"the recording does not say"));
    }
}
