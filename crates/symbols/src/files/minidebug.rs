//! The packed symbol table that some distributions put into their programs (`.gnu_debugdata`).

use std::io::{self, Read};

use lzma_rust2::XzReader;

use crate::image::Image;

/// Unpacked ones are a few percent of the program; larger ones are refused, in bytes.
const LONGEST: u64 = 256 << 20;

/// The decoder's own memory limit in KiB: enough for the dictionary of `xz -9`.
const MOST_MEMORY: u32 = 128 << 10;

/// The ELF file within, if there is one.
pub(crate) fn unpack(image: &Image<'_>) -> Option<Vec<u8>> {
    let packed = image.section(".gnu_debugdata");
    if packed.is_empty() {
        return None;
    }
    unxz(&packed).ok()
}

fn unxz(packed: &[u8]) -> io::Result<Vec<u8>> {
    let mut unpacked = Vec::new();
    XzReader::new_mem_limit(packed, false, MOST_MEMORY)
        .take(LONGEST)
        .read_to_end(&mut unpacked)?;
    Ok(unpacked)
}
