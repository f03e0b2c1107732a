//! The letters after the colon.

use std::fmt;

use super::cursor::Located;
use super::error::Problem;

/// Which code counts, and how the event is scheduled: the letters after the colon.
///
/// The fields say what counts; `perf_event_attr` says what does not (`exclude_user` and so on).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modifiers {
    /// `u`: user code.
    pub user: bool,
    /// `k`: kernel code.
    pub kernel: bool,
    /// `h`: the hypervisor's code.
    pub hypervisor: bool,
    /// `G`: guests of this host.
    pub guest: bool,
    /// `H`: the host, not its guests.
    pub host: bool,
    /// `I`: not while the CPU is idle.
    pub not_idle: bool,
    /// `p`, `pp`, `ppp`, `P`: how near the sampled address must be to the event.
    pub precise: Precise,
    /// `D`: always on the PMU, or in an error state.
    pub pinned: bool,
    /// `e`: alone on the PMU.
    pub exclusive: bool,
    /// `S`: only the group's leader samples, and reads the counts of all.
    pub leader_sampling: bool,
    /// Whether `u`, `k` or `h` was given, so that no other code may be used.
    pub explicit_modes: bool,
}

impl Default for Modifiers {
    /// All of the host's code, as perf counts it without modifiers.
    fn default() -> Self {
        Self {
            user: true,
            kernel: true,
            hypervisor: true,
            guest: false,
            host: true,
            not_idle: false,
            precise: Precise::Level(0),
            pinned: false,
            exclusive: false,
            leader_sampling: false,
            explicit_modes: false,
        }
    }
}

/// How near the sampled address must be to the event (`precise_ip`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precise {
    /// 0: anywhere behind it; 1: at a constant distance; 2: at it, if possible; 3: at it.
    Level(u8),
    /// As precise as the machine can.
    Maximum,
}

impl Modifiers {
    /// Adds letters, the first of which stands at byte `at`.
    pub(super) fn add(&mut self, letters: &str, at: usize) -> Result<(), Located> {
        if letters.is_empty() {
            return Err((
                at..at,
                Problem::Expected {
                    expected: "a modifier",
                },
            ));
        }
        let mut level = 0;
        for (index, letter) in letters.char_indices() {
            let place = at + index..at + index + letter.len_utf8();
            match letter {
                'u' | 'k' | 'h' => self.count_only(letter),
                'G' | 'H' => self.count_machine(letter, letters),
                'I' => self.not_idle = true,
                'D' => self.pinned = true,
                'e' => self.exclusive = true,
                'S' => self.leader_sampling = true,
                'P' => self.precise = Precise::Maximum,
                'p' if level == 3 => {
                    let problem = Problem::Modifier("at most three p are possible");
                    return Err((place, problem));
                }
                'p' => {
                    level += 1;
                    self.precise = Precise::Level(level);
                }
                _ => return Err((place, Problem::UnknownModifier { letter })),
            }
        }
        if level > 0 && letters.contains('P') {
            let problem = Problem::Modifier("p and P exclude each other");
            return Err((at..at + letters.len(), problem));
        }
        Ok(())
    }

    /// The first of `u`, `k` and `h` leaves out the other two.
    fn count_only(&mut self, letter: char) {
        if !self.explicit_modes {
            (self.user, self.kernel, self.hypervisor) = (false, false, false);
            self.explicit_modes = true;
        }
        match letter {
            'u' => self.user = true,
            'k' => self.kernel = true,
            _ => self.hypervisor = true,
        }
    }

    fn count_machine(&mut self, letter: char, letters: &str) {
        let both = letters.contains('G') && letters.contains('H');
        self.guest = both || letter == 'G';
        self.host = both || letter == 'H';
    }

    /// Whether all letters are modifiers.
    pub(super) fn are_all(letters: &str) -> bool {
        !letters.is_empty() && letters.chars().all(|c| "ukhGHIDeSPp".contains(c))
    }
}

/// The letters, without a colon; none for what counts without modifiers.
impl fmt::Display for Modifiers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.user && self.kernel && self.hypervisor && !self.explicit_modes;
        let precise = match self.precise {
            Precise::Maximum => "P",
            Precise::Level(0) => "",
            Precise::Level(1) => "p",
            Precise::Level(2) => "pp",
            Precise::Level(_) => "ppp",
        };
        let letters = [
            (self.user && !all, "u"),
            (self.kernel && !all, "k"),
            (self.hypervisor && !all, "h"),
            (self.guest, "G"),
            (self.guest && self.host, "H"),
            (self.not_idle, "I"),
            (true, precise),
            (self.pinned, "D"),
            (self.exclusive, "e"),
            (self.leader_sampling, "S"),
        ];
        let given = letters.iter().filter(|(given, _)| *given);
        given
            .into_iter()
            .try_for_each(|(_, letter)| f.write_str(letter))
    }
}
