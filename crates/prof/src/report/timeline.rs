//! `prof report --timeline`: activity over time.

use std::path::Path;

use anyhow::Result;
use prof_report::format::json;
use prof_report::format::timeline::{self, SvgOptions};
use prof_report::view::timeline::Timeline;
use prof_report::{Filter, Split, SymbolizedProfile};

use super::closing::{ReportQuality, asides, print_closing};
use super::text::{terminal_width, write_closing};
use crate::flags::OutputFlags;
use crate::output::{write_file, write_stdout};

/// The number of moments in a picture of the usual width.
const IN_PICTURES: usize = 480;

/// Draws a picture if there is a path for one, or writes JSON or text; then prints the verdict.
pub(super) fn write(
    flags: &OutputFlags,
    picture: Option<&Path>,
    profile: &SymbolizedProfile,
    filter: &Filter,
) -> Result<()> {
    let split = flags.by.map_or(Split::Thread, Split::from);
    let files = &flags.files;
    let moments = match (picture, &files.json) {
        (Some(_), _) => IN_PICTURES,
        (None, Some(_)) => timeline::moments(None),
        (None, None) => timeline::moments(terminal_width()),
    };
    let view = Timeline::new(profile, filter, split, moments)?;
    if let Some(path) = picture {
        let options = SvgOptions {
            width: files.width.map(|width| width as usize),
            rows: flags.text.limit,
            title: files.title.clone().unwrap_or(SvgOptions::default().title),
        };
        write_file(path, |out| Ok(timeline::write_svg(&view, &options, out)?))?;
    }
    if let Some(path) = &files.json {
        write_file(path, |out| Ok(json::timeline(&view, out)?))?;
    }
    let (asides, quality) = (asides(profile, view.event), ReportQuality::of(profile));
    if picture.is_some() || files.json.is_some() {
        print_closing(&asides, &quality);
        return Ok(());
    }
    write_stdout(|out| Ok(timeline::write(&view, flags.text.limit, out)?))?;
    write_closing(&asides, &quality)
}
