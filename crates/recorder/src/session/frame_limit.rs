//! What is left out of stacks that are too deep for a record.

use prof_model::StackNote;
use prof_perfdata::context;

/// The most frames of a user's stack: with the kernel's frames and the rest of the record they stay
/// within the 65,535 bytes of a perf.data record.
const MOST: usize = 7_900;

/// How many frames of the user's stack are too many for a record.
pub(super) fn excess(chain: &[u64]) -> usize {
    let user = chain.iter().position(|&entry| entry == context::USER);
    user.map_or(0, |user| (chain.len() - user - 1).saturating_sub(MOST))
}

/// Removes frames of the user's stack, by their indices in the chain; those among them that were
/// read after the sample are not counted in the note.
pub(super) fn remove(
    chain: &mut Vec<u64>,
    note: &mut StackNote,
    mut is_removed: impl FnMut(usize, u64) -> bool,
) {
    let late = chain.len().saturating_sub(note.remote_read.into());
    let mut index = 0;
    chain.retain(|&address| {
        let removed = is_removed(index, address);
        if removed && index >= late {
            note.remote_read = note.remote_read.saturating_sub(1);
        }
        index += 1;
        !removed
    });
}

/// Leaves out the middle of the user's stack if it is too deep, and notes it.
pub(super) fn leave_out_middle(chain: &mut Vec<u64>, note: &mut StackNote) {
    const INNER: usize = MOST / 2;
    let excess = excess(chain);
    if excess == 0 {
        return;
    }
    let user = chain.iter().position(|&entry| entry == context::USER);
    let first = user.map_or(0, |user| user + 1) + INNER;
    let middle = first..first + excess;
    remove(chain, note, |index, _| middle.contains(&index));
    note.elided = note.elided.saturating_add(excess as u32);
    note.elided_at = INNER as u32;
}

#[cfg(test)]
mod tests {
    use prof_model::StackEnd;

    use super::*;

    fn check(frames: u64, late: u16, expected: (u32, u32, u16)) {
        let kernel = [context::KERNEL, 7, context::USER];
        let mut chain: Vec<u64> = kernel.into_iter().chain(0..frames).collect();
        let mut note = StackNote {
            remote_read: late,
            ..StackNote::new(StackEnd::Root)
        };
        leave_out_middle(&mut chain, &mut note);
        assert_eq!((note.elided, note.elided_at, note.remote_read), expected);
        let user = &chain[kernel.len()..];
        assert_eq!(user.len() as u64 + u64::from(note.elided), frames);
        assert_eq!((user[0], user[user.len() - 1]), (0, frames - 1));
        let inner = MOST as u64 / 2;
        assert_eq!(user[inner as usize - 1], inner - 1);
    }

    #[test]
    fn the_middle_of_deep_stacks_is_left_out() {
        check(7_900, 100, (0, 0, 100));
        check(7_901, 100, (1, 3950, 100));
        check(20_000, 100, (12_100, 3950, 100));
        check(20_000, 19_000, (12_100, 3950, 6_900));
        check(20_000, 5_000, (12_100, 3950, 3_950));
    }

    #[test]
    fn stacks_without_a_users_part_stay() {
        let mut chain = vec![context::KERNEL, 1, 2];
        leave_out_middle(&mut chain, &mut StackNote::new(StackEnd::Root));
        assert_eq!(chain.len(), 3);
    }
}
