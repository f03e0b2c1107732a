//! Which programs the probes of a recording reached.

use serde::{Deserialize, Serialize};

/// Probed files, and the programs that ran without them. A probe belongs to a file: calls of a
/// program's own copy of the function are not recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProbedPrograms {
    /// Names of the probed files, without their folders.
    pub files: Vec<Box<str>>,
    /// Whether the probes are the only events.
    pub only: bool,
    /// A program mapped a probed file, or may have.
    pub reached: bool,
    /// Nanoseconds from the start of the recording to its end.
    pub recorded: u64,
    /// Programs that the probes should have reached, and that ran without a probed file. Those that
    /// ran longest come first; a bounded list.
    pub unreached: Vec<UnreachedProgram>,
}

/// A program that ran without a probed file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UnreachedProgram {
    /// Its name in the kernel (comm).
    pub program: Box<str>,
    /// How many processes ran it.
    pub processes: u64,
    /// How long they ran, in nanoseconds, waiting included.
    pub ran: u64,
    /// A file with the name of a probed file that it used instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instead: Option<Box<str>>,
}

impl ProbedPrograms {
    /// The most programs that are kept.
    const MAX_PROGRAMS: usize = 100;

    /// Adds the counts of another recording.
    pub fn add(&mut self, other: &Self) {
        for file in &other.files {
            if !self.files.contains(file) {
                self.files.push(file.clone());
            }
        }
        self.only &= other.only;
        self.reached |= other.reached;
        self.recorded = self.recorded.saturating_add(other.recorded);
        for program in &other.unreached {
            self.add_program(program.clone());
        }
        self.sort();
    }

    /// Adds the runs of a program to its entry.
    fn add_program(&mut self, more: UnreachedProgram) {
        let mut known = self.unreached.iter_mut();
        match known.find(|known| known.program == more.program) {
            Some(known) => known.add(&more),
            None => self.unreached.push(more),
        }
    }

    /// Sorts the programs that ran longest first.
    pub fn sort(&mut self) {
        (self.unreached)
            .sort_by(|a, b| (b.ran.cmp(&a.ran)).then_with(|| a.program.cmp(&b.program)));
        self.unreached.truncate(Self::MAX_PROGRAMS);
    }
}

impl UnreachedProgram {
    /// Adds more runs of the same program.
    pub fn add(&mut self, more: &Self) {
        self.processes = self.processes.saturating_add(more.processes);
        self.ran = self.ran.saturating_add(more.ran);
        if self.instead.is_none() {
            self.instead.clone_from(&more.instead);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_one_program_add_up() {
        let program = |program: &str, ran| UnreachedProgram {
            program: program.into(),
            processes: 1,
            ran,
            instead: None,
        };
        let recording = |unreached: Vec<_>| ProbedPrograms {
            files: vec!["libc.so.6".into()],
            only: true,
            reached: false,
            recorded: 10,
            unreached,
        };
        let mut sum = recording(vec![program("a", 3), program("b", 2)]);
        sum.add(&recording(vec![program("b", 2), program("c", u64::MAX)]));
        let reported: Vec<_> = (sum.unreached.iter())
            .map(|one| (&*one.program, one.processes, one.ran))
            .collect();
        assert_eq!(reported, [("c", 1, u64::MAX), ("b", 2, 4), ("a", 1, 3)]);
        assert_eq!((sum.files.len(), sum.recorded), (1, 20));
    }
}
