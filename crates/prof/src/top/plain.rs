//! Tables, one after the other, without a full screen.

use std::io::{self, Write};
use std::time::Instant;

use anyhow::Result;
use prof_console::say;
use prof_report::Span;

use super::filters::Filters;
use super::picture::{Picture, percent};
use super::screen::Ended;
use super::watched::Watched;
use crate::flags::ShowFlags;
use crate::output::write_stdout;

/// Prints tables of recent samples until the recording ends or there are enough tables. Prints
/// `note` first.
pub(super) fn run(flags: &ShowFlags, watched: &mut Watched, note: Option<&str>) -> Result<Ended> {
    watched.wait_for_begin()?;
    if let Some(note) = note {
        say(note);
    }
    let filters = Filters {
        no_kernel: flags.no_kernel,
        ..Filters::default()
    };
    let mut tables = 0;
    loop {
        watched.receive_until(Instant::now() + flags.delay)?;
        let ended = match watched.has_ended() {
            true => watched.outcome(),
            false => None,
        };
        if let Some(Err(_)) = ended {
            return Ok(ended);
        }
        if let Some(profile) = watched.profile(Span::Recent)? {
            let picture = Picture::new(&profile, &filters.filter(), false);
            let mut is_read = true;
            write_stdout(|out| {
                let written = table(out, &picture, flags.entries).and_then(|()| out.flush());
                is_read = written.is_ok();
                Ok(written?)
            })?;
            if !is_read {
                return Ok(None);
            }
        }
        tables += 1;
        if ended.is_some() {
            return Ok(ended);
        }
        if flags.iterations.is_some_and(|most| tables >= most) {
            return Ok(None);
        }
    }
}

fn table(out: &mut dyn Write, picture: &Picture, rows: usize) -> io::Result<()> {
    let foot = &picture.foot;
    let whole = foot.wholeness();
    let whole = whole.map_or(String::new(), |whole| format!(", {whole}"));
    let samples = prof_model::counted(foot.samples, "sample");
    writeln!(
        out,
        "{}: {samples}{whole}, {} lost",
        picture.event, foot.lost
    )?;
    writeln!(out, "{:>8} {:>8}  function", "self", "total")?;
    for row in picture.functions.iter().take(rows) {
        let own = percent(row.own, picture.total());
        let total = percent(row.total, picture.total());
        writeln!(
            out,
            "{own:>7.2}% {total:>7.2}%  {} ({})",
            row.name, row.module
        )?;
    }
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::testing::picture;

    #[test]
    fn a_table_has_the_heaviest_functions() {
        let picture = picture(&["main;a 30", "main;b 60", "main 10"]);
        let mut out = Vec::new();
        table(&mut out, &picture, 2).expect("written");
        let expected = "cpu-clock: 100 samples, 100 % whole, 0 lost\n    self    total  function\n  \
                        60.00%   60.00%  b ()\n  30.00%   30.00%  a ()\n\n";
        assert_eq!(String::from_utf8_lossy(&out), expected);
    }
}
