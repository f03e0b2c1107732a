//! Recordings of many machines, derived from real ones of this machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::process;

/// A real recording, with its names stored in it.
pub(super) struct Base {
    bytes: Vec<u8>,
    /// The offset of the time of day in it, in ns since 1970.
    wall_clock_at: usize,
    pub(super) path: PathBuf,
}

/// Stores the names of the recordings of a folder in copies of them.
pub(super) fn with_names(prof: &Path, recordings: &Path, folder: &Path) -> Result<Vec<Base>> {
    fs::create_dir_all(folder)?;
    let entries = fs::read_dir(recordings)
        .with_context(|| format!("cannot read {}", recordings.display()))?;
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    // The one without a time in its name is being written.
    paths.retain(|path| path.extension().is_some());
    paths.sort();
    let mut bases = Vec::new();
    for (number, recording) in paths.iter().enumerate() {
        let path = folder.join(format!("{number}.data"));
        if !path.exists() {
            let mut archive = Command::new(prof);
            archive
                .args(["archive", "--no-debuginfod", "-o"])
                .arg(&path);
            process::run(archive.arg(recording))?;
        }
        let bytes = fs::read(&path)?;
        let wall_clock_at = wall_clock(&bytes)
            .with_context(|| format!("{} says no time of day", path.display()))?;
        bases.push(Base {
            bytes,
            wall_clock_at,
            path,
        });
    }
    ensure!(
        !bases.is_empty(),
        "no recordings in {}",
        recordings.display()
    );
    Ok(bases)
}

impl Base {
    /// Writes a copy that was recorded `nanos` after 1970.
    pub(super) fn write_at(&self, nanos: u64, path: &Path) -> Result<()> {
        let mut bytes = self.bytes.clone();
        let field = self.wall_clock_at..self.wall_clock_at + size_of::<u64>();
        if let Some(field) = bytes.get_mut(field) {
            field.copy_from_slice(&nanos.to_le_bytes());
        }
        fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
    }
}

/// The offset of the time of day that matches a recording's clock: in the feature CLOCK_DATA, after
/// its version and the clock's id (tools/perf/Documentation/perf.data-file-format.txt).
fn wall_clock(bytes: &[u8]) -> Option<usize> {
    const DATA: usize = 40;
    const FEATURES: usize = 72;
    const CLOCK_DATA: u64 = 29;
    /// Position and size.
    const SECTION: usize = 16;
    let word = |at: usize| -> Option<u64> {
        let bytes = bytes.get(at..at + size_of::<u64>())?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    };
    let features = word(FEATURES)?;
    let has_clock = features >> CLOCK_DATA & 1 == 1;
    let before = (features & ((1 << CLOCK_DATA) - 1)).count_ones() as usize;
    let sections = usize::try_from(word(DATA)?.checked_add(word(DATA + 8)?)?).ok()?;
    let section = word(sections + before * SECTION).filter(|_| has_clock)?;
    Some(usize::try_from(section).ok()? + 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_day_is_found() {
        let mut file = vec![0; 400];
        let mut put = |at: usize, word: u64| file[at..at + 8].copy_from_slice(&word.to_le_bytes());
        put(40, 104);
        put(48, 96);
        // Two features come before it.
        put(72, 1 << 3 | 1 << 5 | 1 << 29 | 1 << 31);
        put(200 + 2 * 16, 300);
        assert_eq!(wall_clock(&file), Some(308));
        file[72..80].copy_from_slice(&(1_u64 << 3).to_le_bytes());
        assert_eq!(wall_clock(&file), None);
        assert_eq!(wall_clock(&file[..60]), None);
    }
}
