//! Doors to parsers that are nobody else's business, for `tests/fuzz`.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use crate::control::{Control, ControlPipe};
use crate::output::kernel_modules;
use crate::output::synthesize;
use crate::reader::stack_tail;

/// Reads bytes as commands that come through a pipe, as many as fit into it.
///
/// # Panics
/// If there is no pipe.
pub fn control(bytes: &[u8]) {
    const ROOM: usize = 4096;
    let pipe = || {
        let (reader, writer) = io::pipe().expect("a pipe");
        (OwnedFd::from(reader), OwnedFd::from(writer))
    };
    let ((reader, writer), (_answered, answers)) = (pipe(), pipe());
    let mut writer = File::from(writer);
    let written = writer.write_all(bytes.get(..ROOM).unwrap_or(bytes));
    written.expect("room in the pipe");
    drop(writer);
    let mut commands = ControlPipe::new(Control::new(
        Arc::new(reader.into()),
        Some(Arc::new(answers.into())),
    ));
    let more = commands.read(|_| Ok::<(), ()>(()));
    assert_eq!(more, Ok(false), "the pipe has ended");
}

/// Reads bytes as each of the lists in /proc.
pub fn maps(bytes: &[u8]) {
    synthesize::fuzz(bytes);
    if let Ok(text) = std::str::from_utf8(bytes) {
        for address in [0, 0x5555_5555_5000, u64::MAX] {
            if let Some(range) = stack_tail::find(text, address) {
                assert!(range.contains(&address));
            }
        }
        text.lines().for_each(kernel_modules::fuzz);
    }
}
