//! Recordings with symbols, for every verb that shows functions.

mod live;
mod packages;
mod places;
mod progress;
mod unnamed;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use prof_filemap::MappedFile;
use prof_model::Pid;
use prof_perfdata::Recording;
use prof_recorder::PinnedFiles;
use prof_report::symbolize::{ModuleNaming, StoredNames};
use prof_report::{LoadOptions, LoadProgress, Profile, StackCopies, SymbolizedProfile};
use prof_symbols::{
    AmbiguousPaths, Debuginfod, Demangle, EmbeddedSymbols, Source, SymbolOptions, Symbolizer,
};
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use crate::flags::{ServerFlags, SymbolFlags};
use crate::output::replace_file;
use crate::progress::{Bar, with_line};

use places::{PinnedPlaces, ProcessFiles};

pub(crate) use live::LiveSymbols;
pub(crate) use unnamed::unnamed;

/// The level of detail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Functions, from symbol tables only.
    Functions,
    /// Inlined functions and lines, too, from debug info.
    Inlines,
}

impl Detail {
    /// The level with or without `--no-inline`.
    pub(crate) fn new(no_inline: bool) -> Self {
        match no_inline {
            true => Self::Functions,
            false => Self::Inlines,
        }
    }
}

/// Reads profiles of any format as one, and symbolizes them.
///
/// # Errors
///
/// One of them cannot be read.
pub(crate) fn read(
    inputs: &[PathBuf],
    flags: &SymbolFlags,
    detail: Detail,
) -> Result<SymbolizedProfile> {
    Ok(read_with_symbolizer(inputs, flags, detail)?.profile)
}

/// A profile with its symbols, and the symbolizer for further requests.
pub(crate) struct Named {
    pub(crate) profile: SymbolizedProfile,
    pub(crate) symbolizer: Symbolizer,
}

/// Like [`read`], and returns the symbolizer for further requests.
///
/// # Errors
///
/// The same errors as [`read`].
pub(crate) fn read_with_symbolizer(
    inputs: &[PathBuf],
    flags: &SymbolFlags,
    detail: Detail,
) -> Result<Named> {
    read_copies(inputs, StackCopies::Unwind, flags, detail)
}

/// Like [`read_with_symbolizer`], with an instruction for stack dumps.
///
/// # Errors
///
/// The same errors as [`read`]; or there are no stack dumps, and `copies` requires them.
pub(crate) fn read_copies(
    inputs: &[PathBuf],
    copies: StackCopies,
    flags: &SymbolFlags,
    detail: Detail,
) -> Result<Named> {
    let Loaded {
        profile,
        symbolizer,
    } = load(inputs, copies, flags, detail)?;
    Ok(Named {
        profile: progress::shown(|watch| SymbolizedProfile::watched(profile, &symbolizer, watch)),
        symbolizer,
    })
}

/// Writes the recording `input` to `output`, which may be the same, with symbols for all its
/// addresses. Returns how many addresses of each module have symbols.
///
/// # Errors
///
/// It cannot be read or written; `output` is then unchanged.
pub(crate) fn embed(input: &Path, output: &Path, flags: &SymbolFlags) -> Result<Vec<ModuleNaming>> {
    let copies = StackCopies::Unwind;
    // A report may request any of this.
    let flags = SymbolFlags {
        native: true,
        ..flags.clone()
    };
    let Loaded {
        profile,
        symbolizer,
    } = load(&[input.to_owned()], copies, &flags, Detail::Inlines)?;
    let stored = progress::shown(|watch| StoredNames::new(&profile, &symbolizer, watch));
    store(input, output, &stored.symbols)?;
    Ok(stored.naming)
}

/// Embeds those symbols in a new recording that cannot be found later: of files that only the
/// recorder can still open, and of `perf_maps`, those of processes. Returns the processes in the
/// recording.
///
/// # Errors
///
/// It cannot be read or written.
pub(crate) fn embed_pinned(
    recording: &Path,
    pinned: &Arc<PinnedFiles>,
    perf_maps: &BTreeSet<Pid>,
) -> Result<BTreeSet<Pid>> {
    let profile = loading(StackCopies::Unwind, false, |options| {
        options.native = true;
        Ok(prof_report::load(Recording::open(recording)?, options)?)
    })?;
    let pinned = PinnedPlaces(Arc::clone(pinned));
    let mut options = options(&profile, &SymbolFlags::default(), Detail::Inlines)?;
    options.debug_dirs.extend(pinned.debug_dirs());
    let wanted = PinnedPlaces(Arc::clone(&pinned.0));
    let wanted = |source: Source<'_>| match source {
        Source::Jit { pid } if perf_maps.contains(&pid) => true,
        _ => wanted.has(source),
    };
    let symbolizer = Symbolizer::new(options).with_places(pinned);
    let symbols = progress::shown(|watch| StoredNames::some(&profile, &symbolizer, wanted, watch));
    store(recording, recording, &symbols)?;
    let ended = profile.thread_lifetimes.by_thread();
    let sampled = profile.samples.iter().map(|sample| sample.pid);
    Ok(sampled
        .chain(ended.into_keys().map(|(pid, _)| pid))
        .collect())
}

fn store(input: &Path, output: &Path, symbols: &EmbeddedSymbols) -> Result<()> {
    let file = MappedFile::open(input)?;
    let symbols = symbols.to_bytes();
    replace_file(output, |out| {
        prof_perfdata::write_with_symbols(&file, &symbols, out)
            .with_context(|| format!("cannot add symbols to {}", input.display()))
    })
}

/// A recording with its symbolizer.
struct Loaded {
    profile: Profile,
    symbolizer: Symbolizer,
}

fn load(
    inputs: &[PathBuf],
    copies: StackCopies,
    flags: &SymbolFlags,
    detail: Detail,
) -> Result<Loaded> {
    // In parallel, but merged in their order, so that the result is always the same.
    let piped = inputs.iter().any(|input| input == Path::new("-"));
    let profile = loading(copies, piped, |options| {
        options.native = flags.native;
        options.symfs.clone_from(&flags.symfs);
        let options = &*options;
        let loaded = inputs.par_iter().map(|input| load_one(input, options));
        let loaded: Vec<_> = loaded.collect();
        Ok(Profile::merged(loaded.into_iter().collect::<Result<_>>()?))
    })?;
    let stored = profile.symbols.as_deref();
    let stored = stored.map(EmbeddedSymbols::from_bytes).transpose()?;
    let living = ProcessFiles::of(&profile);
    let mut options = options(&profile, flags, detail)?;
    options.debug_dirs.extend(living.debug_dirs());
    let symbolizer = Symbolizer::new(options).with_places(living);
    Ok(Loaded {
        profile,
        symbolizer: match stored {
            Some(stored) => symbolizer.with_embedded(stored),
            None => symbolizer,
        },
    })
}

/// Shows the progress of `work`. While input is `piped`, the terminal belongs to the programs that
/// write it.
fn loading(
    copies: StackCopies,
    piped: bool,
    load: impl FnOnce(&mut LoadOptions) -> Result<Profile>,
) -> Result<Profile> {
    let progress = Arc::new(LoadProgress::default());
    let mut options = LoadOptions::default();
    options.stack_copies = copies;
    options.progress = Some(Arc::clone(&progress));
    let text = || match progress.bytes() {
        // The size is unknown for other formats than recordings, and until a pipe ends.
        (_, 0) if piped => String::new(),
        (_, 0) => "loading".to_owned(),
        done => {
            let what = "loading";
            Bar { what, done }.to_string()
        }
    };
    with_line(text, || load(&mut options))
}

fn load_one(input: &Path, options: &LoadOptions) -> Result<Profile> {
    match prof_report::read(input, options) {
        Err(error) if !input.exists() => match input.to_str() {
            Some("prof.data") => bail!("{error}; run `prof record` first, or name a recording"),
            Some("prof.data.old") => bail!(
                "{error}; `prof record` renames the last recording to this, or name two recordings"
            ),
            _ => Err(error.into()),
        },
        loaded => Ok(loaded?),
    }
}

fn options(profile: &Profile, flags: &SymbolFlags, detail: Detail) -> Result<SymbolOptions> {
    let demangle = match (flags.no_demangle, flags.short_names) {
        (true, _) => Demangle::None,
        (_, true) => Demangle::Short,
        _ => Demangle::Full,
    };
    let options = SymbolOptions {
        inlines: detail == Detail::Inlines,
        demangle,
        recorded_kernel: profile.kernel,
        recorded_host: profile.header.host(),
        ambiguous_paths: AmbiguousPaths::of(&profile.modules),
        debuginfod: debuginfod(&flags.servers)?,
        ..SymbolOptions::default()
    };
    Ok(match &flags.symfs {
        Some(root) => options.below(root.clone()),
        None => options,
    })
}

fn debuginfod(flags: &ServerFlags) -> Result<Option<Debuginfod>> {
    let servers = match flags.debuginfod.as_deref() {
        _ if flags.no_debuginfod => return Ok(None),
        None => return Ok(Debuginfod::from_environment()),
        Some("") => Debuginfod::from_environment(),
        Some(urls) => Debuginfod::at(urls),
    };
    if servers.is_none() {
        bail!(
            "--debuginfod needs a server: set DEBUGINFOD_URLS, or name one \
             (--debuginfod=https://...); HOME must be set, too, for the cache"
        );
    }
    Ok(servers)
}
