//! How long prof waits for a store, and how much it reads: whoever answers may do so without end.

use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The limits of one operation at a time.
#[derive(Debug)]
pub(super) struct Limits {
    /// How long an operation, or a page of a list, may take beside its bytes.
    time_out: Duration,
    current: Mutex<Operation>,
}

#[derive(Clone, Copy, Debug)]
struct Operation {
    began: Instant,
    /// When it began, or when the last page of a list had come.
    since: Instant,
    /// The most bytes of an answer.
    most: u64,
}

/// Why prof gives an answer up.
#[derive(Debug, thiserror::Error)]
pub(super) enum Exceeded {
    #[error("it has answered {bytes} bytes in {seconds} s: prof waits no longer")]
    Time { bytes: u64, seconds: u64 },
    #[error("it answers with over {most} bytes (is AWS_ENDPOINT_URL the store's address?)")]
    Bytes { most: u64 },
    #[error("its list takes over {minutes} minutes")]
    List { minutes: u64 },
}

impl Limits {
    /// Scripts should not hang.
    pub(super) const TIME_OUT: Duration = Duration::from_secs(30);
    /// The most bytes of an answer that is no file of a data set.
    pub(super) const MOST_ANSWER: u64 = 8 << 20;
    /// Bytes of a file in a second: who sends fewer is given up.
    pub(super) const SLOWEST: u64 = 256 << 10;
    /// All pages of a list.
    const LONGEST_LIST: Duration = Duration::from_secs(10 * 60);

    pub(super) fn new(time_out: Duration) -> Self {
        let now = Instant::now();
        let current = Operation {
            began: now,
            since: now,
            most: Self::MOST_ANSWER,
        };
        Self {
            time_out,
            current: Mutex::new(current),
        }
    }

    fn current(&self) -> Operation {
        match self.current.lock() {
            Ok(current) => *current,
            Err(poisoned) => *poisoned.into_inner(),
        }
    }

    fn set(&self, operation: Operation) {
        match self.current.lock() {
            Ok(mut current) => *current = operation,
            Err(poisoned) => *poisoned.into_inner() = operation,
        }
    }

    /// An operation begins, of which an answer has at most so many bytes.
    pub(super) fn begin(&self, most: u64) {
        let now = Instant::now();
        self.set(Operation {
            began: now,
            since: now,
            most,
        });
    }

    /// A page of a list has come: the next one may take its own time.
    pub(super) fn next_page(&self) -> Result<(), Exceeded> {
        let current = self.current();
        if current.began.elapsed() > Self::LONGEST_LIST {
            let minutes = Self::LONGEST_LIST.as_secs() / 60;
            return Err(Exceeded::List { minutes });
        }
        self.set(Operation {
            since: Instant::now(),
            ..current
        });
        Ok(())
    }

    /// How long to wait for more of an exchange that has moved so many bytes.
    pub(super) fn left(&self, moved: u64) -> Duration {
        let moving = Duration::from_secs_f64(moved as f64 / Self::SLOWEST as f64);
        let spent = self.current().since.elapsed();
        (self.time_out + moving).saturating_sub(spent)
    }

    /// The error of an answer of which so many bytes came in time.
    pub(super) fn too_slow(&self, bytes: u64) -> Exceeded {
        let seconds = self.current().since.elapsed().as_secs();
        Exceeded::Time { bytes, seconds }
    }

    /// Whether an answer may have so many bytes.
    pub(super) fn admits(&self, bytes: u64) -> Result<(), Exceeded> {
        let most = self.current().most;
        match bytes > most {
            true => Err(Exceeded::Bytes { most }),
            false => Ok(()),
        }
    }
}
