//! Records packed with zstd, as `perf record -z` writes them.

use std::io;

use zstd_safe::zstd_sys::ZSTD_EndDirective;
use zstd_safe::{CCtx, CParameter, InBuffer, OutBuffer};

use crate::abi::record_type;
use crate::features::Compression;
use crate::header::RecordHeader;

/// Packs records into the bodies of PERF_RECORD_COMPRESSED, which are slices of one zstd stream.
pub(crate) struct Packer {
    encoder: CCtx<'static>,
    level: i32,
    /// Bytes taken so far.
    taken: u64,
    /// Bytes of records given for them.
    given: u64,
    body: Box<[u8]>,
}

impl Packer {
    /// The longest body of a record, in whole steps of 8 bytes.
    const LONGEST: usize = 65_528 - RecordHeader::SIZE;
    /// Bytes packed at once.
    const STEP: usize = 128 << 10;
    /// The size of the readers' buffer for one decompressed record: a step, and the remaining start
    /// of a record from before.
    const BUFFER_SIZE: u32 = 256 << 10;

    /// # Errors
    /// There is no memory for it, or no such level.
    pub(crate) fn new(level: i32) -> io::Result<Self> {
        let mut encoder = CCtx::try_create().ok_or(io::ErrorKind::OutOfMemory)?;
        encoder
            .set_parameter(CParameter::CompressionLevel(level))
            .map_err(failed)?;
        Ok(Self {
            encoder,
            level,
            taken: 0,
            given: 0,
            body: vec![0; Self::LONGEST].into_boxed_slice(),
        })
    }

    /// Appends `records`, compressed, to `out`. After that, all of them can be decompressed.
    ///
    /// # Errors
    /// There is no memory for it.
    pub(crate) fn pack(&mut self, records: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        let before = out.len();
        for step in records.chunks(Self::STEP) {
            let mut input = InBuffer::around(step);
            loop {
                let mut output = OutBuffer::around(&mut self.body[..]);
                let flush = ZSTD_EndDirective::ZSTD_e_flush;
                let left = self
                    .encoder
                    .compress_stream2(&mut output, &mut input, flush)
                    .map_err(failed)?;
                put(out, output.as_slice());
                if left == 0 {
                    break;
                }
            }
        }
        self.taken += records.len() as u64;
        self.given += (out.len() - before) as u64;
        Ok(())
    }

    /// Its description in the recording.
    pub(crate) fn described(&self) -> Compression {
        let ratio = self.taken.checked_div(self.given).unwrap_or(1);
        Compression {
            level: self.level,
            ratio: u32::try_from(ratio).unwrap_or(u32::MAX),
            buffer_size: Self::BUFFER_SIZE,
        }
    }
}

fn put(out: &mut Vec<u8>, body: &[u8]) {
    if !body.is_empty() {
        RecordHeader::put(out, record_type::COMPRESSED, body);
    }
}

fn failed(code: usize) -> io::Error {
    io::Error::other(zstd_safe::get_error_name(code))
}

impl std::fmt::Debug for Packer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Packer")
            .field("level", &self.level)
            .finish_non_exhaustive()
    }
}
