//! Recordings with names: where every verb that shows functions gets them.

mod progress;

use std::path::Path;

use anyhow::{Context, Result, bail};
use prof_perfdata::Recording;
use prof_report::{LoadOptions, Profile, SymbolizedProfile};
use prof_symbols::{Debuginfod, Demangle, SymbolOptions, Symbolizer};

use crate::flags::SymbolFlags;

/// How thorough to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Functions, from symbol tables only.
    Functions,
    /// Inlined functions and lines, too, from debug info.
    Inlines,
}

impl Detail {
    /// What `--no-inline` leaves.
    pub(crate) fn new(no_inline: bool) -> Self {
        match no_inline {
            true => Self::Functions,
            false => Self::Inlines,
        }
    }
}

/// Reads a recording and names all that is in it.
///
/// # Errors
///
/// When it cannot be read.
pub(crate) fn read(input: &Path, flags: &SymbolFlags, detail: Detail) -> Result<SymbolizedProfile> {
    let recording = match Recording::open(input) {
        Err(error) if input != Path::new("-") && !input.exists() => Err(error).context(
            "there is nothing to report (`prof record` makes a recording, `-i FILE` names one)",
        ),
        opened => opened.map_err(Into::into),
    }?;
    let profile = prof_report::load(recording, &LoadOptions::default())?;
    let symbolizer = Symbolizer::new(options(&profile, flags, detail)?);
    Ok(progress::shown(|watch| {
        SymbolizedProfile::watched(profile, &symbolizer, watch)
    }))
}

fn options(profile: &Profile, flags: &SymbolFlags, detail: Detail) -> Result<SymbolOptions> {
    let demangle = match flags.no_demangle {
        true => Demangle::None,
        false => Demangle::Full,
    };
    Ok(SymbolOptions {
        inlines: detail == Detail::Inlines,
        demangle,
        recorded_kernel: profile.kernel,
        debuginfod: debuginfod(flags)?,
        ..SymbolOptions::default()
    })
}

fn debuginfod(flags: &SymbolFlags) -> Result<Option<Debuginfod>> {
    let servers = match flags.debuginfod.as_deref() {
        _ if flags.no_debuginfod => return Ok(None),
        None => return Ok(Debuginfod::from_environment()),
        Some("") => Debuginfod::from_environment(),
        Some(urls) => Debuginfod::at(urls),
    };
    if servers.is_none() {
        bail!(
            "--debuginfod knows no server: set DEBUGINFOD_URLS, or give http:// or https:// \
             addresses (--debuginfod=URL), and a HOME for the cache"
        );
    }
    Ok(servers)
}
