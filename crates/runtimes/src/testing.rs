//! Memory for tests.

use std::collections::HashMap;

use crate::Memory;

/// Memory of a program, by pages.
#[derive(Default)]
pub(crate) struct Pages(HashMap<u64, Vec<u8>>);

impl Pages {
    const SIZE: u64 = 4096;

    pub(crate) fn write(&mut self, address: u64, bytes: &[u8]) {
        for (address, &byte) in (address..).zip(bytes) {
            let page = self.0.entry(address / Self::SIZE);
            let page = page.or_insert_with(|| vec![0; Self::SIZE as usize]);
            page[(address % Self::SIZE) as usize] = byte;
        }
    }

    pub(crate) fn word(&mut self, address: u64, value: u64) {
        self.write(address, &value.to_le_bytes());
    }
}

impl Memory for Pages {
    fn read(&mut self, address: u64, buffer: &mut [u8]) -> usize {
        for (count, byte) in buffer.iter_mut().enumerate() {
            let Some(at) = address.checked_add(count as u64) else {
                return count;
            };
            match self.0.get(&(at / Self::SIZE)) {
                Some(page) => *byte = page[(at % Self::SIZE) as usize],
                None => return count,
            }
        }
        buffer.len()
    }
}
