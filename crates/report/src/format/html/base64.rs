//! Base64 (RFC 4648, section 4) as it is written.

use std::io::{self, Write};

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Encodes what is written to it.
pub(super) struct Base64Writer<W> {
    out: W,
    /// Up to two bytes that wait for a third.
    rest: Vec<u8>,
}

impl<W: Write> Base64Writer<W> {
    pub(super) fn new(out: W) -> Self {
        Self {
            out,
            rest: Vec::new(),
        }
    }

    /// Writes the last bytes, padded.
    pub(super) fn finish(mut self) -> io::Result<()> {
        let rest = std::mem::take(&mut self.rest);
        if !rest.is_empty() {
            let mut digits = encode(&rest);
            digits[rest.len() + 1..].fill(b'=');
            self.out.write_all(&digits)?;
        }
        self.out.flush()
    }
}

impl<W: Write> Write for Base64Writer<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.rest.extend_from_slice(bytes);
        let whole = self.rest.len() / 3 * 3;
        let digits: Vec<u8> = self.rest[..whole].chunks(3).flat_map(encode).collect();
        self.out.write_all(&digits)?;
        self.rest.drain(..whole);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The digits of up to three bytes.
fn encode(bytes: &[u8]) -> [u8; 4] {
    let byte = |at: usize| u32::from(bytes.get(at).copied().unwrap_or(0));
    let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
    [18, 12, 6, 0].map(|shift| DIGITS[(bits >> shift & 63) as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc_4648_section_10() {
        for (bytes, expected) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            for step in 1..=bytes.len().max(1) {
                let mut out = Vec::new();
                let mut writer = Base64Writer::new(&mut out);
                for part in bytes.as_bytes().chunks(step) {
                    writer.write_all(part).unwrap();
                }
                writer.finish().unwrap();
                assert_eq!(
                    String::from_utf8(out).unwrap(),
                    expected,
                    "{bytes} by {step}"
                );
            }
        }
    }
}
