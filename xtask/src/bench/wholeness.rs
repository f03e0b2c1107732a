//! Whether the stacks in a recording reach their root, as perf reads them.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

/// The names of the outermost frames of processes and threads.
const ROOTS: [&str; 5] = [
    "_start",
    "__libc_start",
    "clone3",
    "__clone",
    "start_thread",
];

/// The share of the samples with user frames whose stack has a root in it; `None` if there are
/// none. perf resolves the names, and unwinds where the recording holds stack dumps.
pub(super) fn of_recording(file: &Path) -> Result<Option<f64>> {
    let mut script = Command::new("perf");
    script.args(["script", "--no-inline", "--max-stack", "30000"]);
    script.args(["-F", "ip,sym", "-i"]).arg(file);
    script.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = script.spawn().context("cannot start perf script")?;
    let printed = child.stdout.take().context("perf script has no output")?;
    let mut counts = Counts::default();
    for line in BufReader::new(printed).split(b'\n') {
        counts.line(&String::from_utf8_lossy(&line?));
    }
    counts.line("");
    child.wait()?;
    Ok((counts.stacks > 0).then(|| counts.rooted as f64 / counts.stacks as f64))
}

/// Counts stacks: a line `address function` for each frame, an empty one after each stack.
#[derive(Default)]
struct Counts {
    stacks: u64,
    rooted: u64,
    /// Whether the current stack has a user frame so far.
    has_user_frame: bool,
    has_root: bool,
}

impl Counts {
    fn line(&mut self, line: &str) {
        let Some((address, name)) = line.trim().split_once(' ') else {
            self.stacks += u64::from(self.has_user_frame);
            self.rooted += u64::from(self.has_user_frame && self.has_root);
            self.has_user_frame = false;
            self.has_root = false;
            return;
        };
        // The kernel has the upper half of all addresses.
        let is_kernel = address.len() == 16 && address.starts_with('f');
        self.has_user_frame |= !is_kernel;
        self.has_root |= !is_kernel && ROOTS.iter().any(|root| name.starts_with(root));
    }
}

#[cfg(test)]
mod tests {
    use super::Counts;

    #[test]
    fn stacks_are_whole_with_a_root_and_count_with_a_user_frame() {
        let mut counts = Counts::default();
        let text = "\t ffffffff81000000 do_syscall\n\t 1234 main\n\t 5678 _start\n\n\
                    \t 1234 main\n\n\t ffffffff81000000 _start_secondary\n\n";
        text.lines().for_each(|line| counts.line(line));
        assert_eq!((counts.stacks, counts.rooted), (2, 1));
    }
}
