//! The code of an interpreter's evaluation loop.

use std::ops::Range;

use crate::native::NativeStack;

/// The function that runs the evaluation loop.
#[derive(Clone, Debug)]
pub(crate) struct EvaluationLoop {
    /// Its parts.
    pub(crate) code: Vec<Range<u64>>,
}

impl EvaluationLoop {
    /// Whether its code is at this address.
    pub(crate) fn contains(&self, address: u64) -> bool {
        self.code.iter().any(|part| part.contains(&address))
    }

    /// Where the native frame of its innermost activation begins, or a place further in.
    pub(crate) fn innermost_frame(&self, native: &NativeStack<'_>) -> u64 {
        let ip = native.instruction_pointer;
        match ip.is_some_and(|ip| self.contains(ip)) {
            true => native.start,
            // The first word that can be the return address of what the loop has called.
            false => native.first(|word| self.contains(word)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_frame_is_where_the_stack_leads_back_to_it() {
        let evaluation = EvaluationLoop {
            code: vec![0x100..0x200, 0x400..0x500],
        };
        let words = [1, 2, 0x404_u64];
        let bytes: Vec<u8> = words.iter().flat_map(|it| it.to_le_bytes()).collect();
        let frame = |bytes, instruction_pointer| {
            evaluation.innermost_frame(&NativeStack {
                start: 0x7000,
                bytes,
                is_whole: true,
                registers: &[],
                instruction_pointer,
            })
        };
        assert_eq!(frame(&bytes, Some(0x300)), 0x7010);
        assert_eq!(frame(&bytes, Some(0x100)), 0x7000);
        // It is beyond the dump.
        assert_eq!(frame(&bytes[..16], None), 0x7010);
    }
}
