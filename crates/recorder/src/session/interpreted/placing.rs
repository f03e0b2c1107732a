//! The places of interpreted frames in call chains.

use prof_model::{MissingFrames, StackEnd, StackNote};
use prof_perfdata::context;
use prof_runtimes::InterpretedStack;

/// The stack, if its activations are those of the native stack; the loops that have frames, and how
/// many of its innermost activations are in no loop.
pub(super) fn fit(
    stack: &InterpretedStack,
    mut loops: Vec<usize>,
    note: StackNote,
) -> Result<(&InterpretedStack, Vec<usize>, usize), MissingFrames> {
    let (native, known) = (loops.len(), stack.on_stack);
    let is_whole = note.end == StackEnd::Root;
    let waiting = usize::from(is_whole && stack.may_lack_loop && known == native + 1);
    let frameless = stack.frameless_loop.filter(|&number| number < native);
    if let Some(frameless) = frameless
        && is_whole
        && native == known + 1
    {
        loops.remove(frameless);
    }
    let fits = loops.len() + waiting == known || (!is_whole && native < known);
    match note.elided {
        0 if fits => Ok((stack, loops, waiting)),
        0 => Err(MissingFrames::Mismatch),
        _ => Err(MissingFrames::TooDeep),
    }
}

/// Frames to insert before the one at this place of a chain.
pub(super) type Insertion = (usize, Vec<u64>);

/// Inserts frames, those for the first place first; those read after the sample keep their place.
pub(super) fn insert(insertions: &[Insertion], chain: &mut Vec<u64>, note: &mut StackNote) {
    let late = chain.len().saturating_sub(note.remote_read.into());
    let user = chain.iter().position(|&entry| entry == context::USER);
    let left_out = user.map_or(0, |user| user + 1 + note.elided_at as usize);
    let (has_late, has_left_out) = (note.remote_read > 0, note.elided > 0);
    let (mut all, mut from) = (Vec::with_capacity(chain.len()), 0);
    for (at, frames) in insertions {
        all.extend_from_slice(&chain[from..*at]);
        all.extend_from_slice(frames);
        from = *at;
        if has_late && *at >= late {
            let more = u16::try_from(frames.len()).unwrap_or(u16::MAX);
            note.remote_read = note.remote_read.saturating_add(more);
        }
        if has_left_out && *at < left_out {
            note.elided_at += frames.len() as u32;
        }
    }
    all.extend_from_slice(&chain[from..]);
    *chain = all;
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use prof_runtimes::{Activation, Function, InterpretedFrame};

    use super::*;

    /// A stack whose activations each run one function.
    fn stack(activations: usize, frameless_loop: Option<usize>) -> InterpretedStack {
        let frame = |number| InterpretedFrame {
            function: Arc::new(Function {
                name: format!("f{number}"),
                file: String::new(),
                first_line: 0,
            }),
            line: None,
        };
        let activation = |end| Activation {
            anchor: end as u64,
            end,
        };
        InterpretedStack {
            frames: (0..activations).map(frame).collect(),
            activations: (1..=activations).map(activation).collect(),
            on_stack: activations,
            frameless_loop,
            ..InterpretedStack::default()
        }
    }

    /// The loops of `count` that have frames, and how many activations are in none.
    #[track_caller]
    fn check(
        stack: &InterpretedStack,
        count: usize,
        expected: Result<(&[usize], usize), MissingFrames>,
    ) {
        let note = StackNote::new(StackEnd::Root);
        let fits = fit(stack, (0..count).collect(), note);
        let fits = fits.map(|(_, loops, waiting)| (loops, waiting));
        assert_eq!(
            fits,
            expected.map(|(loops, waiting)| (loops.to_vec(), waiting))
        );
    }

    #[test]
    fn one_loop_may_have_no_frames() {
        let mismatch = Err(MissingFrames::Mismatch);
        check(&stack(2, None), 2, Ok((&[0, 1], 0)));
        check(&stack(1, Some(0)), 2, Ok((&[1], 0)));
        check(&stack(2, Some(1)), 3, Ok((&[0, 2], 0)));
        check(&stack(2, Some(1)), 2, Ok((&[0, 1], 0)));
        check(&stack(1, None), 2, mismatch);
        check(&stack(1, Some(0)), 3, mismatch);
    }

    #[test]
    fn the_innermost_activation_may_be_in_no_loop() {
        let outside = InterpretedStack {
            may_lack_loop: true,
            ..stack(2, None)
        };
        check(&outside, 1, Ok((&[0], 1)));
        check(&outside, 2, Ok((&[0, 1], 0)));
        check(&stack(2, None), 1, Err(MissingFrames::Mismatch));
    }

    #[test]
    fn frames_keep_their_places() {
        let mut chain = vec![context::USER, 10, 11, 12, 13];
        let mut note = StackNote {
            remote_read: 2,
            elided: 7,
            elided_at: 2,
            ..StackNote::new(StackEnd::Root)
        };
        let insertions = [(2, vec![100]), (3, vec![101, 102]), (5, vec![103])];
        insert(&insertions, &mut chain, &mut note);
        assert_eq!(chain, [context::USER, 10, 100, 11, 101, 102, 12, 13, 103]);
        assert_eq!((note.elided_at, note.remote_read), (3, 5));
    }
}
