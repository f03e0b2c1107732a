//! The reference of all flags, as Markdown.

use std::io::{self, Write};

use clap::builder::{PossibleValue, StyledStr};
use clap::{Arg, Command};

/// Writes a chapter on `command`: its purpose, its usage, and its flags by heading.
///
/// # Errors
///
/// `out` cannot be written.
pub(crate) fn write(command: &Command, out: &mut dyn Write) -> io::Result<()> {
    let name = command.get_bin_name().unwrap_or(command.get_name());
    writeln!(out, "## {name}\n")?;
    if let Some(about) = command.get_about() {
        writeln!(out, "{}\n", plain(about))?;
    }
    let usage = command.clone().render_usage();
    writeln!(out, "```text\n{usage}\n```\n")?;
    let mut heading = None;
    let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
    for arg in shown {
        let own = arg.get_help_heading().unwrap_or("Options");
        if heading != Some(own) {
            writeln!(out, "\n**{own}**\n")?;
            heading = Some(own);
        }
        writeln!(out, "- `{}`: {}", flag(arg), help(arg))?;
    }
    writeln!(out)
}

/// A flag as users type it: `-F, --freq <HZ>`.
fn flag(arg: &Arg) -> String {
    let short = arg.get_short().map(|short| format!("-{short}"));
    let long = arg.get_long().map(|long| format!("--{long}"));
    let names: Vec<String> = short.into_iter().chain(long).collect();
    let takes_value = arg.get_action().takes_values();
    let values = arg.get_value_names().unwrap_or_default();
    let values: Vec<String> = values.iter().map(|value| format!("<{value}>")).collect();
    match (names.is_empty(), takes_value) {
        (true, _) => values.join(" "),
        (false, true) => format!("{} {}", names.join(", "), values.join(" ")),
        (false, false) => names.join(", "),
    }
}

fn help(arg: &Arg) -> String {
    let mut text = arg.get_help().map(plain).unwrap_or_default();
    if !arg.get_action().takes_values() {
        return text;
    }
    let defaults = arg.get_default_values().iter();
    let defaults: Vec<_> = defaults.map(|value| value.to_string_lossy()).collect();
    if !defaults.is_empty() {
        text += &format!(" [default: {}]", defaults.join(", "));
    }
    let possible = arg.get_possible_values();
    let possible = possible.iter().filter(|value| !value.is_hide_set());
    let possible: Vec<_> = possible.map(PossibleValue::get_name).collect();
    if !possible.is_empty() {
        text += &format!(" [possible values: {}]", possible.join(", "));
    }
    text
}

/// The text without line breaks and without characters that Markdown takes for HTML.
fn plain(text: &StyledStr) -> String {
    let words: Vec<String> = text
        .to_string()
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    words
        .join(" ")
        .replace('<', "&lt;")
        .replace('*', "\\*")
        .replace('_', "\\_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_stand_below_their_headings() {
        let command = Command::new("demo").about("Does <things>").arg(
            Arg::new("rate")
                .short('F')
                .long("freq")
                .value_name("HZ")
                .default_value("999")
                .value_parser(["999", "max"])
                .help("Samples per second")
                .help_heading("Sampling"),
        );
        let mut out = Vec::new();
        write(&command, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let expected = [
            "## demo\n\nDoes &lt;things>\n",
            "**Sampling**\n\n- `-F, --freq <HZ>`: Samples per second [default: 999] \
             [possible values: 999, max]\n",
        ];
        for expected in expected {
            assert!(text.contains(expected), "{text}");
        }
    }
}
