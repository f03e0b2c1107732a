//! A recording with its symbols, and facts about it as a whole.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use prof_filemap::MappedFile;
use prof_perfdata::Recording;
use prof_report::{LoadOptions, SymbolizedProfile};
use prof_symbols::{AmbiguousPaths, Debuginfod, EmbeddedSymbols, SymbolOptions, Symbolizer};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::Error;

/// Whose recordings they are, as far as they do not say it themselves.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Origin {
    /// The service of the machines: a program, a team, a cluster; `None`: the recorded program.
    pub(crate) service: Option<String>,
    /// The machine's name, if not that in the recording.
    pub(crate) host: Option<String>,
    /// Further labels.
    pub(crate) labels: Labels,
    /// Time of day of the first sample, in µs since 1970, of recordings that do not say it.
    pub(crate) start: Option<i64>,
    /// Where symbols come from.
    pub(crate) symbols: Symbols,
}

/// Where symbols come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
pub(crate) enum Symbols {
    /// Files of this machine, debuginfod, and the recording itself
    #[default]
    Local,
    /// Nowhere: frames are files, build ids and offsets; `prof query` names those it has files of
    Later,
}

/// Names and values.
pub(crate) type Labels = BTreeMap<String, String>;

/// One recording, to be stored.
#[derive(Debug)]
pub(crate) struct Run {
    /// Equal for the same recording.
    pub(crate) id: RunId,
    /// The service of the machines.
    pub(crate) service: String,
    /// The machine's name.
    pub(crate) host: String,
    /// Further labels.
    pub(crate) labels: Labels,
    /// Samples with names.
    pub(crate) profile: SymbolizedProfile,
    /// How many of the profile's events are the recording's own. Others are derived from those.
    pub(crate) own_events: usize,
    /// The time of day where the recording's clock shows zero, in ns since 1970.
    pub(crate) clock_zero: i128,
}

/// A recording's id: the start of the SHA-256 of its bytes, except the symbols that `prof archive`
/// adds, the same with and without them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RunId(pub(crate) [u8; 16]);

impl RunId {
    fn of(recording: &[u8]) -> Result<Self, prof_perfdata::Error> {
        let mut hash = Sha256::new();
        for part in prof_perfdata::parts_without_symbols(recording)? {
            hash.update(part);
        }
        let mut id = [0; 16];
        for (byte, of) in id.iter_mut().zip(hash.finalize()) {
            *byte = of;
        }
        Ok(Self(id))
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Run {
    /// The time of day of a sample, in µs since 1970.
    pub(crate) fn micros(&self, time: u64) -> i64 {
        let nanos = i128::from(time) + self.clock_zero;
        i64::try_from(nanos.div_euclid(1000)).unwrap_or(0)
    }

    /// When the ten seconds began that a sample is of.
    pub(crate) fn ten_seconds(&self, time: u64) -> i64 {
        const LENGTH: i64 = 10_000_000;
        let micros = self.micros(time);
        micros - micros.rem_euclid(LENGTH)
    }

    /// Reads a recording and symbolizes it.
    ///
    /// # Errors
    /// It cannot be read, or has no time of day.
    pub(crate) fn load(path: &Path, origin: &Origin) -> Result<Self, Error> {
        let damaged = |source| Error::Input {
            path: path.to_owned(),
            source: Box::new(source),
        };
        let file = MappedFile::open(path)?;
        let id = RunId::of(&file).map_err(|source| damaged(source.into()))?;
        let recording = Recording::from_file(file).map_err(|source| damaged(source.into()))?;
        let own_events = recording.events().len();
        let clock = recording.features().clock;
        let profile = prof_report::load(recording, &LoadOptions::default()).map_err(damaged)?;
        let first = profile
            .samples
            .iter()
            .next()
            .map_or(0, |sample| sample.time);
        let zero = |wall: i128, clock: u64| wall - i128::from(clock);
        let recorded = clock.map(|clock| match profile.samples.is_empty() {
            // The run has no time but that of the recording, where its times are zero.
            true => clock.wall_clock.into(),
            false => zero(clock.wall_clock.into(), clock.clock),
        });
        let stated = origin
            .start
            .map(|start| zero(i128::from(start) * 1000, first));
        let clock_zero = recorded.or(stated).ok_or_else(|| Error::NoTime {
            path: path.to_owned(),
        })?;
        let host = origin.host.clone();
        let host = host.or_else(|| profile.header.hostname.clone());
        let service = origin.service.clone();
        let service = service.unwrap_or_else(|| recorded_program(&profile));
        let mut profile = profile;
        profile.clock_zero = i64::try_from(clock_zero).ok();
        let profile = match origin.symbols {
            Symbols::Local => {
                let symbolizer = symbolizer(path, &profile)?;
                SymbolizedProfile::new(profile, &symbolizer)
            }
            Symbols::Later => SymbolizedProfile::without_names(profile),
        };
        Ok(Self {
            id,
            service,
            host: host.unwrap_or_else(|| "unknown".into()),
            labels: origin.labels.clone(),
            profile,
            own_events,
            clock_zero,
        })
    }
}

/// The program that was recorded; `all` where it was whole machines or running processes.
fn recorded_program(profile: &prof_report::Profile) -> String {
    let words = &profile.header.command_line;
    let command = words.iter().position(|word| word == "--");
    let program = command.and_then(|at| Path::new(words.get(at + 1)?).file_name());
    program.map_or_else(|| "all".into(), |name| name.to_string_lossy().into_owned())
}

/// A symbolizer with the files of this machine, the recording's symbols, and debuginfod.
fn symbolizer(path: &Path, profile: &prof_report::Profile) -> Result<Symbolizer, Error> {
    let symbolizer = Symbolizer::new(SymbolOptions {
        recorded_kernel: profile.kernel,
        recorded_host: profile.header.host(),
        ambiguous_paths: AmbiguousPaths::of(&profile.modules),
        debuginfod: Debuginfod::from_environment(),
        ..SymbolOptions::default()
    });
    let stored = profile.symbols.as_deref();
    let stored = stored.map(EmbeddedSymbols::from_bytes).transpose();
    let stored = stored.map_err(|source| Error::EmbeddedNames {
        path: path.to_owned(),
        source,
    })?;
    Ok(match stored {
        Some(stored) => symbolizer.with_embedded(stored),
        None => symbolizer,
    })
}
