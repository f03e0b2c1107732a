//! Entry points for `tests/fuzz` to otherwise private parsers.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use crate::control::{Control, ControlPipe};
use crate::output::synthesize;

/// Parses bytes as commands that come through a pipe, as many as fit into it.
///
/// # Panics
/// There is no pipe.
pub fn control(bytes: &[u8]) {
    const PIPE_SIZE: usize = 4096;
    let pipe = || {
        let (reader, writer) = io::pipe().expect("a pipe");
        (OwnedFd::from(reader), OwnedFd::from(writer))
    };
    let ((reader, writer), (_answered, answers)) = (pipe(), pipe());
    let mut writer = File::from(writer);
    let written = writer.write_all(bytes.get(..PIPE_SIZE).unwrap_or(bytes));
    written.expect("space in the pipe");
    drop(writer);
    let mut commands = ControlPipe::new(Control::new(
        Arc::new(reader.into()),
        Some(Arc::new(answers.into())),
    ));
    let more = commands.read(|_| Ok::<(), ()>(()));
    assert_eq!(more, Ok(false), "the pipe has ended");
}

/// Parses bytes as the kernel's ELF notes.
pub fn notes(bytes: &[u8]) {
    synthesize::note_build_id(bytes);
}
