//! The page for browsers.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::Result;
use prof_console::Console;
use prof_report::format::html::{self, HtmlInput};
use prof_report::profile::Weight;
use prof_report::view::annotate::{Annotation, CodeListing, Syntax, Wanted};
use prof_report::view::flat::Flat;
use prof_report::{CallTree, Filter, Sources, Split, SymbolizedProfile};

use crate::flags::{SymbolFlags, ViewFlags};
use crate::output::write_file;
use crate::symbolization::{self, Detail, Named};

/// Writes the page of one recording, or of two to compare, which were read from these files.
pub(super) fn write(
    path: &Path,
    title: &str,
    recordings: &[&Named],
    files: &[PathBuf],
    filter: &Filter,
) -> Result<()> {
    let inputs: Vec<HtmlInput<'_>> = recordings
        .iter()
        .map(|named| HtmlInput {
            profile: &named.profile,
            code: hottest_code(named),
        })
        .collect();
    let sources = Sources::beside(files);
    write_file(path, |out| {
        Ok(html::write(title, &inputs, filter, &sources, out)?)
    })
}

/// The instructions of the functions with the most self weight, if available.
fn hottest_code(named: &Named) -> Vec<CodeListing> {
    const FUNCTIONS: usize = 10;
    let filter = Filter::default();
    let Ok(tree) = CallTree::new(&named.profile, &filter, Split::Nothing) else {
        return Vec::new();
    };
    let hottest = Flat::new(&tree).rows;
    let names = hottest.iter().filter(|row| row.own > Weight::default());
    let names: Vec<String> = names
        .take(FUNCTIONS)
        .map(|row| regex_of(&named.profile[row.function].name))
        .collect();
    let wanted = format!("^(?:{})$", names.join("|"));
    let annotation = Annotation::new(&named.profile, &filter, Wanted::Named(&wanted));
    let code = annotation.map(|it| it.code(&named.symbolizer, Syntax::Intel));
    let mut code = code.unwrap_or_default();
    code.retain(|listing| listing.instructions.is_ok());
    code.truncate(FUNCTIONS);
    code
}

/// A regular expression that matches exactly this text.
fn regex_of(text: &str) -> String {
    let special = |c: char| c.is_ascii_punctuation();
    let escape = |c: char| [special(c).then_some('\\'), Some(c)];
    text.chars().flat_map(escape).flatten().collect()
}

/// Writes the page of new recordings.
///
/// # Errors
///
/// They cannot be read or the page cannot be written.
pub(crate) fn write_recording(recording: &Path, page: &Path, filter: &Filter) -> Result<()> {
    let inputs = [recording.to_owned()];
    let detail = Detail::new(filter.no_inline);
    let named = symbolization::read_with_symbolizer(&inputs, &SymbolFlags::default(), detail)?;
    let title = title_of(&named.profile, recording);
    write(page, &title, &[&named], &inputs, filter)
}

/// The recorded command, or else the file's name.
pub(super) fn title_of(profile: &SymbolizedProfile, file: &Path) -> String {
    let words = &profile.profile().header.command_line;
    let command = words
        .iter()
        .position(|word| word == "--")
        .map(|at| words[at + 1..].join(" "));
    command
        .filter(|command| !command.is_empty())
        .unwrap_or_else(|| file.display().to_string())
}

/// `prof view`: writes the page beside the recording and opens it in a browser.
///
/// # Errors
///
/// The recording cannot be read or the page cannot be written.
pub(crate) fn view(flags: &ViewFlags) -> Result<ExitCode> {
    let page = flags
        .output
        .clone()
        .unwrap_or_else(|| page_of(flags.recording()));
    write_recording(flags.recording(), &page, &Filter::default())?;
    let console = Console::new(false, false);
    console.say(format_args!("wrote {}", page.display()));
    if !flags.no_open {
        show_in_browser(&page, console);
    }
    Ok(ExitCode::SUCCESS)
}

/// Opens a page or picture in a browser if there is a desktop, or prints its path.
pub(crate) fn show_in_browser(page: &Path, console: Console) {
    if !has_desktop() || !open(page) {
        console.say(format_args!("open {} in a browser", page.display()));
    }
}

/// The page of `prof.data` is `prof.html`, that of `perf-6.12` is `perf-6.12.html`.
fn page_of(recording: &Path) -> PathBuf {
    let stem = match recording.extension() {
        Some(extension) if extension == "data" => recording.with_extension(""),
        _ => recording.to_owned(),
    };
    let mut page = stem.into_os_string();
    page.push(".html");
    page.into()
}

fn has_desktop() -> bool {
    ["DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}

fn open(page: &Path) -> bool {
    let mut command = Command::new("xdg-open");
    command.arg(page).stdin(Stdio::null());
    let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_as_they_are() {
        assert_eq!(regex_of("a::<b>(c*)"), r"a\:\:\<b\>\(c\*\)");
        assert_eq!(
            page_of(Path::new("/x/prof.data")),
            Path::new("/x/prof.html")
        );
    }
}
