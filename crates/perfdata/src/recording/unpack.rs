//! The zstd stream of a compressed recording.

use std::fmt;
use std::ops::Range;

use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer};

/// Decompresses the bodies of PERF_RECORD_COMPRESSED records, which are slices of one continuing
/// stream; records in the stream may span them.
pub(super) struct Unpacker {
    decoder: DCtx<'static>,
    /// The rest of the current body, as a range of the file.
    input: Range<usize>,
    /// Whether the decoder may have more output than it gave.
    pending: bool,
    output: Box<[u8]>,
}

/// The stream is damaged: nothing after this can be unpacked.
#[derive(Debug)]
pub(super) struct Damaged;

impl Unpacker {
    /// Bytes unpacked at once, however much a hostile stream expands to.
    const STEP: usize = 256 << 10;
    /// perf's best compression looks back this far: 2 to the power of 27 bytes.
    const WINDOW_LOG: u32 = 27;

    pub(super) fn new() -> Result<Self, Damaged> {
        let mut decoder = DCtx::try_create().ok_or(Damaged)?;
        decoder
            .set_parameter(DParameter::WindowLogMax(Self::WINDOW_LOG))
            .map_err(|_| Damaged)?;
        Ok(Self {
            decoder,
            input: 0..0,
            pending: false,
            output: vec![0; Self::STEP].into_boxed_slice(),
        })
    }

    /// Takes the next body, which lies at `body` in the file. The one before must be used up.
    pub(super) fn feed(&mut self, body: Range<usize>) {
        self.pending = !body.is_empty();
        self.input = body;
    }

    /// The next piece of output; `None` when the body is used up.
    pub(super) fn unpack(&mut self, file: &[u8]) -> Result<Option<&[u8]>, Damaged> {
        if !self.pending {
            return Ok(None);
        }
        let body = file.get(self.input.clone()).ok_or(Damaged)?;
        let mut input = InBuffer::around(body);
        let mut output = OutBuffer::around(&mut self.output[..]);
        self.decoder
            .decompress_stream(&mut output, &mut input)
            .map_err(|_| Damaged)?;
        let (taken, given) = (input.pos(), output.pos());
        if taken == 0 && given == 0 && !body.is_empty() {
            return Err(Damaged);
        }
        self.input.start += taken;
        // A full buffer may mean that the decoder has more to give.
        self.pending = !self.input.is_empty() || given == self.output.len();
        Ok(Some(&self.output[..given]))
    }
}

impl fmt::Debug for Unpacker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Unpacker {{ input: {:?} }}", self.input)
    }
}
