//! Commands from outside while we record, through a pipe or FIFO: perf's `--control`.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use prof_events::{system, wait_readable};

/// Reads commands, one per line, and answers each with `ack` and a newline when it is done, or with
/// `unknown` and a newline if there is no such command.
#[derive(Clone, Debug)]
pub struct Control {
    commands: Arc<File>,
    answers: Option<Arc<File>>,
}

impl Control {
    /// Uses these open files.
    pub(crate) fn new(commands: Arc<File>, answers: Option<Arc<File>>) -> Self {
        Self { commands, answers }
    }

    /// Uses these FIFOs, which must exist.
    ///
    /// # Errors
    ///
    /// One cannot be opened for reading and writing, or is not a FIFO; the error names it.
    pub fn fifos(commands: &Path, answers: Option<&Path>) -> io::Result<Self> {
        // For both, so that opening does not wait for the other side and reading does not end.
        let open = |path: &Path| {
            let mut options = OpenOptions::new();
            options
                .read(true)
                .write(true)
                .custom_flags(libc::O_NONBLOCK);
            let named = |error: io::Error| {
                io::Error::new(
                    error.kind(),
                    format!("{}: {error} (mkfifo creates one)", path.display()),
                )
            };
            let file = options.open(path).map_err(named)?;
            match file.metadata()?.file_type().is_fifo() {
                true => Ok(Arc::new(file)),
                false => Err(named(io::Error::other("it is not a FIFO"))),
            }
        };
        Ok(Self {
            commands: open(commands)?,
            answers: answers.map(open).transpose()?,
        })
    }

    /// Uses descriptors that we were started with.
    ///
    /// # Errors
    ///
    /// One is not open, or belongs to a regular file, which cannot be waited for.
    pub fn descriptors(commands: i32, answers: Option<i32>) -> io::Result<Self> {
        let open = |number| {
            let file = File::from(system::inherited(number)?);
            let kind = file.metadata()?.file_type();
            match kind.is_file() || kind.is_dir() {
                true => Err(io::Error::other(format!(
                    "descriptor {number} is neither a pipe nor a socket"
                ))),
                false => Ok(Arc::new(file)),
            }
        };
        Ok(Self {
            commands: open(commands)?,
            answers: answers.map(open).transpose()?,
        })
    }
}

/// A command of perf's protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Enable sampling.
    Enable,
    /// Disable sampling.
    Disable,
    /// Only answer.
    Ping,
    /// End the recording.
    Stop,
}

impl Command {
    fn parse(line: &[u8]) -> Option<Self> {
        match line.trim_ascii() {
            b"enable" => Some(Self::Enable),
            b"disable" => Some(Self::Disable),
            b"ping" => Some(Self::Ping),
            b"stop" => Some(Self::Stop),
            _ => None,
        }
    }
}

/// Reads commands as they arrive.
#[derive(Debug)]
pub(crate) struct ControlPipe {
    control: Control,
    /// The beginning of an incomplete line.
    line: Vec<u8>,
}

impl ControlPipe {
    /// The longest command, in bytes.
    const LONGEST: usize = 4096;

    pub(crate) fn new(control: Control) -> Self {
        Self {
            control,
            line: Vec::new(),
        }
    }

    /// Passes each command that has arrived to `each`, then answers it. `false` at the end of the
    /// input.
    pub(crate) fn read<E>(
        &mut self,
        mut each: impl FnMut(Command) -> Result<(), E>,
    ) -> Result<bool, E> {
        let mut bytes = [0; 256];
        while self.is_readable() {
            let length = match (&*self.control.commands).read(&mut bytes) {
                Ok(0) => return Ok(false),
                Ok(length) => length,
                Err(error) => return Ok(is_passing(&error)),
            };
            for &byte in bytes.get(..length).unwrap_or(&[]) {
                if byte != b'\n' {
                    self.line.push(byte);
                    self.line.truncate(Self::LONGEST);
                    continue;
                }
                let command = Command::parse(&self.line);
                let is_empty = self.line.trim_ascii().is_empty();
                self.line.clear();
                if let Some(command) = command {
                    each(command)?;
                    self.answer(b"ack\n");
                } else if !is_empty {
                    // The sender of a misspelled command waits for an answer, too.
                    self.answer(b"unknown\n");
                }
            }
        }
        Ok(true)
    }

    /// Whether reading does not block: others may have opened the file in blocking mode.
    fn is_readable(&self) -> bool {
        wait_readable(&[self.as_fd()], Some(Duration::ZERO)).is_ok_and(|ready| ready)
    }

    fn answer(&self, line: &[u8]) {
        if let Some(mut answers) = self.control.answers.as_deref() {
            // Errors are ignored: maybe nobody waits for the answer.
            let _ = answers.write_all(line);
        }
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

impl AsFd for ControlPipe {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.control.commands.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_come_in_any_pieces_and_are_answered() {
        let (commands, mut command_writer) = io::pipe().expect("a pipe");
        let (mut answer_reader, answers) = io::pipe().expect("a pipe");
        let mut reader = ControlPipe::new(Control {
            commands: Arc::new(File::from(std::os::fd::OwnedFd::from(commands))),
            answers: Some(Arc::new(File::from(std::os::fd::OwnedFd::from(answers)))),
        });
        let mut found = Vec::new();
        let mut read = |reader: &mut ControlPipe| {
            let mut got = Vec::new();
            let more = reader.read(|command| {
                got.push(command);
                Ok::<_, ()>(())
            });
            found.extend(got);
            more
        };
        for piece in ["ena", "ble\nping\n", "nonsense\n\n", " disable \nst"] {
            command_writer
                .write_all(piece.as_bytes())
                .expect("it is read");
            assert_eq!(read(&mut reader), Ok(true));
        }
        command_writer
            .write_all(&[b'x'; 10_000])
            .expect("it is read");
        command_writer.write_all(b"\nstop\n").expect("it is read");
        assert_eq!(read(&mut reader), Ok(true));
        drop(command_writer);
        assert_eq!(read(&mut reader), Ok(false));
        use Command::{Disable, Enable, Ping, Stop};
        assert_eq!(found, [Enable, Ping, Disable, Stop]);
        drop(reader);
        let mut received = String::new();
        answer_reader
            .read_to_string(&mut received)
            .expect("answers");
        assert_eq!(received, "ack\nack\nunknown\nack\nunknown\nack\n");
    }
}
