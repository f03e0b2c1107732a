//! The weight of a call of an allocator: from its arguments, in the sample's registers.

use prof_events::SizeArguments;
use prof_model::UserRegisters;
use prof_model::perf_registers::ARGUMENTS;

/// The requested bytes; `None` if the call does not count.
pub(crate) fn bytes(size: SizeArguments, registers: &UserRegisters) -> Option<u64> {
    let argument = |index: usize| registers.get(*ARGUMENTS.get(index)?);
    match size {
        SizeArguments::One(index) => argument(index),
        SizeArguments::Product => argument(0)?.checked_mul(argument(1)?),
        SizeArguments::Again => argument(1).filter(|_| argument(0) != Some(0)),
        SizeArguments::Mapping => argument(1).filter(|_| {
            let flags = argument(3).unwrap_or(0);
            flags & MAP_ANONYMOUS != 0
        }),
    }
}

/// `MAP_ANONYMOUS` of mmap(2).
const MAP_ANONYMOUS: u64 = 0x20;

/// Samples every this many bytes over all calls: decides which calls are kept, and their weights.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EveryBytes {
    /// Bytes since the last multiple.
    rest: u64,
}

impl EveryBytes {
    /// The weight of a call with this weight, or `None` if it is dropped.
    pub(crate) fn weight(&mut self, bytes: u64, every: u64) -> Option<u64> {
        let every = every.max(1);
        let sum = self.rest.saturating_add(bytes);
        self.rest = sum % every;
        Some(sum - self.rest).filter(|&weight| weight > 0)
    }
}

#[cfg(test)]
mod tests {
    use prof_model::RegisterAbi;

    use super::*;

    #[test]
    fn sizes_are_in_the_arguments() {
        let check = |size, arguments: [u64; 4], expected: Option<u64>| {
            let mask = ARGUMENTS.iter().fold(0, |mask, number| mask | 1 << number);
            // The values are in the order of the registers' numbers.
            let mut values: Vec<_> = ARGUMENTS.into_iter().zip(arguments).collect();
            values.sort();
            let values = values.into_iter().map(|(_, value)| value);
            let registers = UserRegisters::new(RegisterAbi::Bits64, mask, values);
            assert_eq!(bytes(size, &registers.unwrap()), expected, "{size:?}");
        };
        check(SizeArguments::One(0), [7, 0, 0, 0], Some(7));
        check(SizeArguments::One(2), [0, 0, 9, 0], Some(9));
        check(SizeArguments::One(4), [0, 0, 9, 0], None);
        check(SizeArguments::Product, [7, 6, 0, 0], Some(42));
        check(SizeArguments::Product, [u64::MAX, 2, 0, 0], None);
        check(SizeArguments::Again, [0x1000, 6, 0, 0], Some(6));
        check(SizeArguments::Again, [0, 6, 0, 0], None);
        check(SizeArguments::Mapping, [0, 4096, 3, 0x22], Some(4096));
        check(SizeArguments::Mapping, [0, 4096, 3, 0x2], None);
    }

    #[test]
    fn no_byte_is_lost_by_sampling() {
        let mut every = EveryBytes::default();
        let calls = [10, 300, 5, 1000, 0, 99, 1];
        let weights: Vec<_> = calls.map(|bytes| every.weight(bytes, 100)).into();
        let expected = [None, Some(300), None, Some(1000), None, Some(100), None];
        assert_eq!(weights, expected);
    }
}
