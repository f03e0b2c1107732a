//! DWARF expressions in CFI: PLT stubs, signal frames, realigned stacks.
//!
//! gimli's own evaluator allocates; this one has a fixed stack and a bound on its steps.

use gimli::{Encoding, Expression, Format, Operation};
use prof_model::StackEnd;

use super::{Bytes, FrameState};

const STACK: usize = 32;
const STEPS: usize = 1_000;
const ENCODING: Encoding = Encoding {
    address_size: 8,
    format: Format::Dwarf32,
    version: 5,
};

/// Runs a program with `initial` on its stack; the topmost value at its end is the result.
pub(super) fn evaluate(
    program: Expression<Bytes<'_>>,
    initial: Option<u64>,
    state: &mut impl FrameState,
) -> Result<u64, StackEnd> {
    let mut machine = Machine::default();
    if let Some(value) = initial {
        machine.push(value).ok_or(StackEnd::NoUnwindInfo)?;
    }
    let code = program.0;
    let mut rest = code;
    for _ in 0..STEPS {
        if rest.is_empty() {
            return machine.pop().ok_or(StackEnd::NoUnwindInfo);
        }
        let operation =
            Operation::parse(&mut rest, ENCODING).map_err(|_| StackEnd::NoUnwindInfo)?;
        let jump = match operation {
            Operation::Skip { target } => Some(target),
            Operation::Bra { target } => {
                let condition = machine.pop().ok_or(StackEnd::NoUnwindInfo)?;
                (condition != 0).then_some(target)
            }
            Operation::Deref { size, .. } => {
                let address = machine.pop().ok_or(StackEnd::NoUnwindInfo)?;
                let value = state.read(address)?;
                let unused = 64 - 8 * u32::from(size.clamp(1, 8));
                machine.push(value << unused >> unused);
                None
            }
            Operation::RegisterOffset {
                register, offset, ..
            } => {
                let value = state.register(register.0).ok_or(StackEnd::NoUnwindInfo)?;
                machine
                    .push(value.wrapping_add_signed(offset))
                    .ok_or(StackEnd::NoUnwindInfo)?;
                None
            }
            other => {
                machine.run(&other).ok_or(StackEnd::NoUnwindInfo)?;
                None
            }
        };
        if let Some(target) = jump {
            let here = code.len() - rest.len();
            let there = here.checked_add_signed(isize::from(target));
            let there = there.filter(|&there| there <= code.len());
            rest = code.range_from(there.ok_or(StackEnd::NoUnwindInfo)?..);
        }
    }
    Err(StackEnd::NoUnwindInfo)
}

#[derive(Default)]
struct Machine {
    values: [u64; STACK],
    depth: usize,
}

impl Machine {
    fn push(&mut self, value: u64) -> Option<()> {
        *self.values.get_mut(self.depth)? = value;
        self.depth += 1;
        Some(())
    }

    fn pop(&mut self) -> Option<u64> {
        self.depth = self.depth.checked_sub(1)?;
        self.values.get(self.depth).copied()
    }

    /// The value `index` below the top.
    fn pick(&self, index: usize) -> Option<u64> {
        let at = self.depth.checked_sub(1)?.checked_sub(index)?;
        self.values.get(at).copied()
    }

    /// Everything that needs neither registers nor memory. `None`: not possible here.
    fn run(&mut self, operation: &Operation<Bytes<'_>>) -> Option<()> {
        match *operation {
            Operation::UnsignedConstant { value } => self.push(value),
            Operation::SignedConstant { value } => self.push(value as u64),
            Operation::Address { address } => self.push(address),
            Operation::Pick { index } => self.push(self.pick(usize::from(index))?),
            Operation::Drop => self.pop().map(drop),
            Operation::Nop => Some(()),
            Operation::Swap => {
                let (top, second) = (self.pop()?, self.pop()?);
                self.push(top)?;
                self.push(second)
            }
            Operation::Rot => {
                let (top, second, third) = (self.pop()?, self.pop()?, self.pop()?);
                self.push(top)?;
                self.push(third)?;
                self.push(second)
            }
            Operation::Abs => self.unary(|a| (a as i64).unsigned_abs()),
            Operation::Neg => self.unary(u64::wrapping_neg),
            Operation::Not => self.unary(|a| !a),
            Operation::PlusConstant { value } => self.unary(|a| a.wrapping_add(value)),
            _ => {
                let (b, a) = (self.pop()?, self.pop()?);
                self.push(binary(operation, a, b)?)
            }
        }
    }

    fn unary(&mut self, apply: impl FnOnce(u64) -> u64) -> Option<()> {
        let value = self.pop()?;
        self.push(apply(value))
    }
}

fn binary(operation: &Operation<Bytes<'_>>, a: u64, b: u64) -> Option<u64> {
    let (signed_a, signed_b) = (a as i64, b as i64);
    let shift = u32::try_from(b).unwrap_or(u32::MAX);
    Some(match operation {
        Operation::And => a & b,
        Operation::Or => a | b,
        Operation::Xor => a ^ b,
        Operation::Plus => a.wrapping_add(b),
        Operation::Minus => a.wrapping_sub(b),
        Operation::Mul => a.wrapping_mul(b),
        Operation::Div => signed_a.checked_div(signed_b)? as u64,
        Operation::Mod => a.checked_rem(b)?,
        Operation::Shl => a.checked_shl(shift).unwrap_or(0),
        Operation::Shr => a.checked_shr(shift).unwrap_or(0),
        Operation::Shra => (signed_a >> shift.min(63)) as u64,
        Operation::Eq => u64::from(a == b),
        Operation::Ne => u64::from(a != b),
        Operation::Ge => u64::from(signed_a >= signed_b),
        Operation::Gt => u64::from(signed_a > signed_b),
        Operation::Le => u64::from(signed_a <= signed_b),
        Operation::Lt => u64::from(signed_a < signed_b),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use gimli::{EndianSlice, LittleEndian};

    /// Register n holds 1000 * n; each word of memory holds its address + 1.
    struct Numbers;

    impl FrameState for Numbers {
        fn register(&self, number: u16) -> Option<u64> {
            (number < 17).then_some(1000 * u64::from(number))
        }

        fn read(&mut self, address: u64) -> Result<u64, StackEnd> {
            Ok(address + 1)
        }
    }

    fn check(program: &[u8], expected: Result<u64, StackEnd>) {
        let program_bytes = Expression(EndianSlice::new(program, LittleEndian));
        let result = evaluate(program_bytes, Some(5), &mut Numbers);
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
        check(&[0x8f, 0], Err(NoUnwindInfo));
        // More values than there is room for.
        check(&[0x31; 100], Err(NoUnwindInfo));
    }
}
