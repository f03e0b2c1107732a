//! Writing to a standard output that may close early.

use std::io::{self, BufWriter, ErrorKind, Write};

use anyhow::Result;

/// Writes to the standard output. A reader that has seen enough (`| head`) is no error.
///
/// # Errors
///
/// The output cannot be written for another reason, or `fill` fails.
pub fn write_stdout(fill: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let mut out = BufWriter::new(prof_events::stdout()?.lock());
    let written = fill(&mut out).and_then(|()| Ok(out.flush()?));
    match written {
        Err(error) if is_broken_pipe(&error) => {
            // The reader has closed the pipe: dropping the buffer must not write it again.
            let _ = out.into_parts();
            Ok(())
        }
        written => written,
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == ErrorKind::BrokenPipe)
}
