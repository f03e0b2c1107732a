//! Files that are packed, and text in another encoding.

use std::io::{self, Read};

use flate2::read::MultiGzDecoder;
use lzma_rust2::XzReader;
use prof_filemap::MappedFile;
use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer};

use crate::error::InputError;

/// Bytes: packers can make a thousand times as much of a hostile file.
const MOST_UNPACKED: u64 = 1 << 30;

/// The decoder's own memory limit for xz in KiB: enough for the dictionary of `xz -9`.
const MOST_MEMORY: u32 = 128 << 10;

/// The most that zstd looks back, as a power of two: `zstd --long`.
const WINDOW_LOG: u32 = 27;

/// A packer that is known by how its files begin.
#[derive(Clone, Copy)]
enum Packer {
    Gzip,
    Xz,
    Zstd,
}

impl Packer {
    fn of(bytes: &[u8]) -> Option<Self> {
        let starts: [(&[u8], Self); 3] = [
            (&[0x1f, 0x8b], Self::Gzip),
            (b"\xfd7zXZ\0", Self::Xz),
            (&[0x28, 0xb5, 0x2f, 0xfd], Self::Zstd),
        ];
        let mut starts = starts.into_iter();
        starts.find_map(|(start, packer)| bytes.starts_with(start).then_some(packer))
    }

    /// Its name, and what unpacks its files.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Gzip => ("gzip", "gunzip"),
            Self::Xz => ("xz", "unxz"),
            Self::Zstd => ("zstd", "unzstd"),
        }
    }

    /// At most so many bytes and one more.
    fn unpack(self, packed: &[u8], most: u64) -> io::Result<Vec<u8>> {
        match self {
            Self::Gzip => read(MultiGzDecoder::new(packed), most),
            Self::Xz => read(XzReader::new_mem_limit(packed, true, MOST_MEMORY), most),
            Self::Zstd => unpack_zstd(packed, most),
        }
    }
}

/// The bytes that are packed in a file, or the file itself.
///
/// # Errors
/// It is damaged, too large, or packed in a way that is not read.
pub(super) fn unpack(file: MappedFile) -> Result<MappedFile, InputError> {
    unpack_within(file, MOST_UNPACKED)
}

fn unpack_within(file: MappedFile, most: u64) -> Result<MappedFile, InputError> {
    let Some(packer) = Packer::of(&file) else {
        return decode(file);
    };
    let (format, tool) = packer.names();
    let damaged = |source| InputError::Packed { format, source };
    let unpacked = packer.unpack(&file, most).map_err(damaged)?;
    match unpacked.len() as u64 > most {
        true => Err(InputError::TooLarge { format, tool }),
        false => decode(MappedFile::from(unpacked)),
    }
}

fn read(packed: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut unpacked = Vec::new();
    packed.take(most + 1).read_to_end(&mut unpacked)?;
    Ok(unpacked)
}

fn unpack_zstd(packed: &[u8], most: u64) -> io::Result<Vec<u8>> {
    const STEP: usize = 256 << 10;
    let failed = |code| io::Error::other(zstd_safe::get_error_name(code));
    let mut decoder = DCtx::try_create().ok_or(io::ErrorKind::OutOfMemory)?;
    decoder
        .set_parameter(DParameter::WindowLogMax(WINDOW_LOG))
        .map_err(failed)?;
    let (mut unpacked, mut step) = (Vec::new(), vec![0; STEP]);
    let mut input = InBuffer::around(packed);
    while unpacked.len() as u64 <= most {
        let mut output = OutBuffer::around(&mut step[..]);
        let before = input.pos();
        let left = decoder
            .decompress_stream(&mut output, &mut input)
            .map_err(failed)?;
        let given = output.pos();
        unpacked.extend_from_slice(&step[..given]);
        let is_at_end = input.pos() == packed.len();
        if is_at_end && left == 0 {
            break;
        }
        if given == 0 && input.pos() == before {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(unpacked)
}

/// Text in UTF-16, as PowerShell writes it, in UTF-8.
fn decode(file: MappedFile) -> Result<MappedFile, InputError> {
    let from: fn([u8; 2]) -> u16 = match file.get(..2) {
        Some([0xff, 0xfe]) => u16::from_le_bytes,
        Some([0xfe, 0xff]) => u16::from_be_bytes,
        _ => return Ok(file),
    };
    let (units, _) = file.as_chunks::<2>();
    let units = units.iter().skip(1).map(|&unit| from(unit));
    let text: String = char::decode_utf16(units)
        .map(|char| char.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect();
    Ok(MappedFile::from(text.into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: u64 = 1 << 20;

    fn check(packed: &[u8], expected: Result<&[u8], &str>) {
        let found = unpack_within(MappedFile::from(packed.to_vec()), MOST);
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(&found[..], expected),
            (Err(error), Err(expected)) => {
                assert!(error.to_string().contains(expected), "{error}");
            }
            (found, _) => panic!("{:?}", found.map(|file| file.to_vec())),
        }
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        let mut packed = vec![0; 1 << 12];
        let length = zstd_safe::compress(&mut packed[..], bytes, 1).unwrap();
        packed.truncate(length);
        packed
    }

    #[test]
    fn what_is_packed_is_unpacked_and_a_part_of_it_is_damaged() {
        let text = b"main;work 3\nmain;rest 1\n".repeat(20);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        io::Write::write_all(&mut gzip, &text).unwrap();
        let zstd = zstd(&text);
        // `printf 'main;work 3\n' | xz | xxd -i`
        let xz: &[u8] = &[
            0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x04, 0xe6, 0xd6, 0xb4, 0x46, 0x02, 0x00,
            0x21, 0x01, 0x16, 0x00, 0x00, 0x00, 0x74, 0x2f, 0xe5, 0xa3, 0x01, 0x00, 0x0b, 0x6d,
            0x61, 0x69, 0x6e, 0x3b, 0x77, 0x6f, 0x72, 0x6b, 0x20, 0x33, 0x0a, 0x00, 0x5b, 0x35,
            0xe0, 0x18, 0x26, 0x21, 0x5e, 0x60, 0x00, 0x01, 0x24, 0x0c, 0xa6, 0x18, 0xd8, 0xd8,
            0x1f, 0xb6, 0xf3, 0x7d, 0x01, 0x00, 0x00, 0x00, 0x00, 0x04, 0x59, 0x5a,
        ];
        check(&text, Ok(&text));
        check(xz, Ok(b"main;work 3\n"));
        check(&xz[..40], Err("xz data is damaged"));
        for (packed, name) in [(gzip.finish().unwrap(), "gzip"), (zstd, "zstd")] {
            check(&packed, Ok(&text));
            let damaged = format!("{name} data is damaged");
            check(&packed[..packed.len() / 2], Err(&damaged));
        }
    }

    #[test]
    fn bombs_are_refused() {
        let zeros = zstd(&vec![0; MOST as usize]);
        check(&zeros, Ok(&vec![0; MOST as usize]));
        check(&zeros.repeat(1000), Err("more than 1 GiB"));
    }

    #[test]
    fn utf_16_is_read() {
        let text = "main;größe 3\n";
        let units = || std::iter::once(0xfeff).chain(text.encode_utf16());
        let little: Vec<u8> = units().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = units().flat_map(u16::to_be_bytes).collect();
        check(&little, Ok(text.as_bytes()));
        check(&big, Ok(text.as_bytes()));
    }
}
