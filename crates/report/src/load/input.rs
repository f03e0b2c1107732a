//! Files of any profile format, distinguished by their content.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use prof_filemap::MappedFile;
use prof_perfdata::Recording;

use super::imports::{cpuprofile, folded, gperftools, perf_script, pprof};
use super::{LoadOptions, foreign, load, packed};
use crate::error::{Error, InputError};
use crate::profile::Profile;

/// Reads a recording of prof or perf, the text of `perf script`, folded stacks, or a profile of
/// pprof, gperftools, jemalloc or V8, whatever it is called; any of them may be packed by gzip, xz
/// or zstd. `-` is the standard input; what comes from there or from a pipe is
/// held in memory as it is.
///
/// # Errors
/// [`Error::File`], [`Error::Input`].
pub fn read(path: &Path, options: &LoadOptions) -> Result<Profile, Error> {
    let unusable = |source| Error::Input {
        path: path.to_owned(),
        source: Box::new(source),
    };
    let file = open(&recording_file(path).map_err(unusable)?)?;
    profile_of(file, options).map_err(unusable)
}

/// The profile that these bytes are.
///
/// # Errors
/// They are none, or are damaged.
pub fn profile_of(file: MappedFile, options: &LoadOptions) -> Result<Profile, InputError> {
    plain(packed::unpack(file)?, options)
}

/// How perf.data files begin: of both byte orders, and of long ago.
const MAGICS: [&[u8]; 3] = [b"PERFILE2", b"2ELIFREP", b"PERFFILE"];

/// Bytes: they are held in memory.
const MOST_PIPED: u64 = 4 << 30;

fn plain(file: MappedFile, options: &LoadOptions) -> Result<Profile, InputError> {
    let start = &file[..file.len().min(MAGICS[0].len())];
    if MAGICS.iter().any(|magic| magic.starts_with(start)) {
        return load(Recording::from_file(file)?, options);
    }
    if options.stack_copies.are_needed() {
        return Err(InputError::NoStackCopies);
    }
    if let Some(heap) = gperftools::read_heap(&file) {
        return Ok(heap);
    }
    if is_go_text(&file) {
        return Err(InputError::GoText);
    }
    if cpuprofile::is_cpuprofile(&file) {
        return cpuprofile::read(&file);
    }
    foreign::check(&file)?;
    if perf_script::is_perf_script(&file) {
        return Ok(perf_script::read(&file));
    }
    if folded::is_folded(&file) {
        return folded::read(&file);
    }
    if let Some(cpu) = gperftools::read_cpu(&file) {
        return Ok(cpu);
    }
    pprof::read(&file).unwrap_or(Err(InputError::Unknown))
}

/// Whether it begins as Go's profiles for people do.
///
/// Source: runtime/pprof/pprof.go, runtime/traceback.go.
fn is_go_text(bytes: &[u8]) -> bool {
    const LONGEST: usize = 200;
    let start = &bytes[..bytes.len().min(LONGEST)];
    let first = start.split(|&byte| byte == b'\n').next();
    let first = String::from_utf8_lossy(first.unwrap_or_default());
    let is_named = |rest: &str| rest.starts_with("total ") || rest.contains(" @ heap");
    let profile = first.split_once(" profile: ");
    profile.is_some_and(|(name, rest)| !name.contains(' ') && is_named(rest))
        || first.starts_with("goroutine ") && first.ends_with("]:")
        || ["--- contention:", "--- mutex:"].contains(&&*first)
}

fn open(path: &Path) -> Result<MappedFile, Error> {
    let cannot_read = |source| {
        Error::File(prof_filemap::Error::Io {
            path: path.to_owned(),
            source,
        })
    };
    let mut bytes = Vec::new();
    let mut read = |input: &mut dyn Read| {
        let read = input.take(MOST_PIPED + 1).read_to_end(&mut bytes);
        match read.map_err(cannot_read)? as u64 > MOST_PIPED {
            true => Err(cannot_read(io::Error::other(
                "more than 4 GiB came through the pipe: write them to a file",
            ))),
            false => Ok(()),
        }
    };
    if path == Path::new("-") {
        read(&mut io::stdin().lock())?;
    } else if path
        .metadata()
        .is_ok_and(|metadata| metadata.file_type().is_fifo())
    {
        read(&mut File::open(path).map_err(cannot_read)?)?;
    } else {
        return Ok(MappedFile::open(path)?);
    }
    Ok(MappedFile::from(bytes))
}

/// The file of a recording: the path itself, or the file that `perf record --kcore` writes into a
/// directory of this name.
///
/// # Errors
/// [`InputError::ManyFiles`].
pub fn recording_file(path: &Path) -> Result<PathBuf, InputError> {
    // Those of `perf record --threads`: one for each ring.
    if path.join("data.0").exists() {
        return Err(InputError::ManyFiles);
    }
    let inner = path.join("data");
    Ok(match inner.is_file() {
        true => inner,
        false => path.to_owned(),
    })
}
