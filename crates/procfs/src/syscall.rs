//! Whether a thread is blocked, and where: /proc/PID/task/TID/syscall, proc(5).

/// The state of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadState {
    /// It is blocked.
    Sleeping {
        /// The user's stack pointer.
        stack: u64,
        /// The user's instruction pointer.
        instruction: u64,
    },
    /// It is not blocked, or not yet.
    Running,
}

impl ThreadState {
    /// A line of the file: `running`, or numbers of which the last two are the stack pointer and
    /// the instruction pointer. `None` without user code: for a thread of the kernel, or one that
    /// is ending.
    pub fn parse(line: &[u8]) -> Option<Self> {
        let line = std::str::from_utf8(line).ok()?.trim_end();
        if line == "running" {
            return Some(Self::Running);
        }
        let mut fields = line.rsplit(' ');
        let mut number = || u64::from_str_radix(fields.next()?.strip_prefix("0x")?, 16).ok();
        let (instruction, stack) = (number()?, number()?);
        (stack != 0).then_some(Self::Sleeping { stack, instruction })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_proc() {
        let check = |line: &str, expected| {
            assert_eq!(ThreadState::parse(line.as_bytes()), expected, "{line}");
        };
        let at = |stack, instruction| Some(ThreadState::Sleeping { stack, instruction });
        let call = "230 0x0 0x0 0x7ffe20 0x7ffe60 0x0 0x0 0x7fff60d3a808 0x7fcd18c2c503\n";
        check(call, at(0x7fff_60d3_a808, 0x7fcd_18c2_c503));
        check("-1 0x7ffe08 0x401000\n", at(0x7ffe08, 0x401000));
        check("running\n", Some(ThreadState::Running));
        check("-1 0x0 0x0\n", None);
        check("", None);
        check("0x1", None);
        check("1 2 3", None);
    }
}
