//! DWARF expressions in CFI: PLT stubs, signal frames, realigned stacks.

use gimli::{
    Encoding, Evaluation, EvaluationResult, EvaluationStorage, Expression, Format, Piece, Value,
};
use prof_model::StackEnd;

use super::{Bytes, FrameState};

const STEPS: u32 = 1_000;
const ENCODING: Encoding = Encoding {
    address_size: 8,
    format: Format::Dwarf32,
    version: 5,
};

/// Storage for real expressions; nothing is allocated.
struct Storage;

impl<'a> EvaluationStorage<Bytes<'a>> for Storage {
    type Stack = [Value; 32];
    type ExpressionStack = [(Bytes<'a>, Bytes<'a>); 0];
    type Result = [Piece<Bytes<'a>>; 1];
}

/// Runs a program with `initial` on its stack; the topmost value at its end is the result.
pub(super) fn evaluate(
    program: Expression<Bytes<'_>>,
    initial: Option<u64>,
    state: &mut impl FrameState,
) -> Result<u64, StackEnd> {
    let mut machine = Evaluation::<_, Storage>::new_in(program.0, ENCODING);
    machine.set_max_iterations(STEPS);
    if let Some(value) = initial {
        machine.set_initial_value(value);
    }
    let mut result = machine.evaluate();
    loop {
        result = match result.map_err(|_| StackEnd::NoUnwindInfo)? {
            EvaluationResult::RequiresMemory { address, size, .. } => {
                let unused = 64 - 8 * u32::from(size.clamp(1, 8));
                let value = state.read(address)? << unused >> unused;
                machine.resume_with_memory(Value::Generic(value))
            }
            EvaluationResult::RequiresRegister { register, .. } => {
                let value = state.register(register.0)?;
                machine.resume_with_register(Value::Generic(value))
            }
            EvaluationResult::RequiresRelocatedAddress(address) => {
                machine.resume_with_relocated_address(address)
            }
            EvaluationResult::Complete => break,
            _ => return Err(StackEnd::NoUnwindInfo),
        };
    }
    match machine.value_result() {
        Some(Value::Generic(value)) => Ok(value),
        _ => Err(StackEnd::NoUnwindInfo),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registers::Registers;
    use gimli::{EndianSlice, LittleEndian};

    /// Register n holds 1000 * n; each word of memory holds its address + 1.
    struct Numbers(Registers);

    impl Numbers {
        fn new() -> Self {
            let mut registers = Registers::default();
            (0..17).for_each(|number| registers.set(number, 1000 * u64::from(number)));
            Self(registers)
        }
    }

    impl FrameState for Numbers {
        fn registers(&self) -> &Registers {
            &self.0
        }

        fn without_register(&self) -> StackEnd {
            StackEnd::HiddenRegisters
        }

        fn read(&mut self, address: u64) -> Result<u64, StackEnd> {
            Ok(address + 1)
        }
    }

    fn check(program: &[u8], expected: Result<u64, StackEnd>) {
        let program_bytes = Expression(EndianSlice::new(program, LittleEndian));
        let result = evaluate(program_bytes, Some(5), &mut Numbers::new());
        assert_eq!(result, expected, "{program:02x?}");
    }

    #[test]
    fn programs() {
        use StackEnd::NoUnwindInfo;
        // The initial value alone.
        check(&[], Ok(5));
        // breg7 +8; breg16 +0; lit15; and; lit11; ge; lit3; shl; plus: a PLT stub.
        let plt = [0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22];
        check(&plt, Ok(7008));
        // breg6 -8; deref
        check(&[0x76, 0x78, 0x06], Ok(5993));
        // lit1; lit2; swap; minus
        check(&[0x31, 0x32, 0x16, 0x1c], Ok(1));
        // lit7; lit0; div
        check(&[0x37, 0x30, 0x1b], Err(NoUnwindInfo));
        // skip -3: forever
        check(&[0x2f, 0xfd, 0xff], Err(NoUnwindInfo));
        // skip +1000: out of the program
        check(&[0x2f, 0xe8, 0x03], Err(NoUnwindInfo));
        // drop; drop
        check(&[0x13, 0x13], Err(NoUnwindInfo));
        // breg31, which is not known
        check(&[0x8f, 0], Err(StackEnd::HiddenRegisters));
        // More values than fit.
        check(&[0x31; 100], Err(NoUnwindInfo));
    }
}
