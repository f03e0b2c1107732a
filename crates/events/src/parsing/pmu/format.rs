//! The bits that a term of a PMU fills, from its file in `format/`.

use crate::parsing::spec::Encoding;
use crate::system::parse_list;

/// Which bits of which field a term fills, lowest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Format {
    field: Field,
    bits: Vec<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Config,
    Config1,
    Config2,
    Config3,
}

impl Format {
    /// `config1:0-7,21`
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (field, ranges) = text.split_once(':')?;
        let field = match field {
            "config" => Field::Config,
            "config1" => Field::Config1,
            "config2" => Field::Config2,
            "config3" => Field::Config3,
            _ => return None,
        };
        let bits = parse_list(ranges)?;
        (bits.len() <= 64 && bits.iter().all(|&bit| bit < 64)).then_some(Self { field, bits })
    }

    /// Spreads the value's bits over the format's; `None` if it has more.
    pub(super) fn put(&self, value: u64, encoding: &mut Encoding) -> Option<()> {
        if self.bits.len() < 64 && value >> self.bits.len() != 0 {
            return None;
        }
        let field = match self.field {
            Field::Config => &mut encoding.config,
            Field::Config1 => &mut encoding.config1,
            Field::Config2 => &mut encoding.config2,
            Field::Config3 => &mut encoding.config3,
        };
        for (index, bit) in self.bits.iter().enumerate() {
            let mask = 1 << bit;
            *field = *field & !mask | (value >> index & 1) << bit;
        }
        Some(())
    }

    /// How many bits it has.
    pub(super) fn bits(&self) -> u32 {
        self.bits.len() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_spread_bits() {
        let check = |format: &str, value: u64, expected: Option<u64>| {
            let mut encoding = Encoding::default();
            let put = Format::parse(format).and_then(|format| format.put(value, &mut encoding));
            assert_eq!(
                put.map(|()| encoding.config),
                expected,
                "{format} {value:#x}"
            );
        };
        check("config:0-7,32-35", 0x120, Some(0x1_0000_0020));
        check("config:0-7,32-35", 0xfff, Some(0xf_0000_00ff));
        check("config:0-7,32-35", 0x1000, None);
        check("config:18", 1, Some(1 << 18));
        check("config:18", 2, None);
        check("config:0-63", u64::MAX, Some(u64::MAX));
        check("config:64", 1, None);
        check("config9:0", 1, None);
        check("config:", 1, None);
        check("config:7-0", 1, None);
    }

    #[test]
    fn a_term_set_twice_holds_the_last_value() {
        let format = Format::parse("config:8-15").unwrap();
        let mut encoding = Encoding::default();
        format.put(0xff, &mut encoding).unwrap();
        format.put(0x01, &mut encoding).unwrap();
        assert_eq!(encoding.config, 0x100);
    }
}
