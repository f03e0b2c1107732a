//! `prof --generate`: manual pages and shell completions, made from the flags.

use std::env;
use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Command, CommandFactory};
use clap_complete::CompleteEnv;
use clap_complete::env::{Bash, EnvCompleter, Fish, Zsh};
use clap_mangen::Man;

use crate::flags::{CargoCli, ProfCli};
use crate::output::write_stdout;
use crate::reference;

/// A shell's script calls `prof` with this variable set, and the words typed so far.
const VARIABLE: &str = "_PROF_COMPLETE";

const SCRIPTS: [(&str, &dyn EnvCompleter); 3] = [
    ("complete-bash", &Bash),
    ("complete-zsh", &Zsh),
    ("complete-fish", &Fish),
];

/// Bash splits words at colons and equals signs: `sched:sched_switch` is three. This joins them for
/// clap's function, and takes from its answers what bash does not replace.
const BASH_WORDS: &str = r#"
_prof_complete() {
    local rest=$COMP_LINE word at
    local -a joined=()
    for ((at = 0; at <= COMP_CWORD; at++)); do
        word=${COMP_WORDS[at]}
        if ((at > 0)) && [[ $rest != [[:space:]]* ]] &&
            [[ $word == [:=]* || ${COMP_WORDS[at - 1]} == *[:=] ]]; then
            joined[${#joined[@]} - 1]+=$word
        else
            joined+=("$word")
        fi
        rest=${rest#"${rest%%[![:space:]]*}"}
        rest=${rest#"$word"}
    done
    local COMP_WORDS=("${joined[@]}")
    local COMP_CWORD=$((${#joined[@]} - 1))
    word=${joined[COMP_CWORD]}
    _clap_complete_prof prof "$word"
    if [[ $COMP_WORDBREAKS == *:* ]]; then
        word=${word%"${word##*[:=]}"}
        for at in "${!COMPREPLY[@]}"; do
            COMPREPLY[at]=${COMPREPLY[at]#"$word"}
        done
    fi
}
complete -o nospace -o bashdefault -F _prof_complete prof
"#;

/// Answers a shell that asks for completions; `false` if none does.
///
/// # Errors
///
/// When the shell is unknown, or the answer cannot be written.
pub(crate) fn complete() -> clap::error::Result<bool> {
    let directory = env::current_dir().ok();
    CompleteEnv::with_factory(ProfCli::command)
        .var(VARIABLE)
        .try_complete(env::args_os(), directory.as_deref())
}

/// Prints what `--generate` asks for: `man` is prof(1), `man-record` prof-record(1) and so on,
/// `complete-bash` a script for that shell, `list` the names of
/// the pages, `reference` all flags as Markdown.
///
/// # Errors
///
/// When there is no such thing, or the standard output cannot be written.
pub(crate) fn run(kind: &str) -> Result<ExitCode> {
    if let Some((_, shell)) = SCRIPTS.iter().find(|(name, _)| *name == kind) {
        write_stdout(|out| {
            shell.write_registration(VARIABLE, "prof", "prof", "prof", out)?;
            if shell.is("bash") {
                out.write_all(BASH_WORDS.as_bytes())?;
            }
            Ok(())
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut pages = pages();
    if kind == "reference" {
        write_stdout(|out| {
            writeln!(out, "# All flags\n")?;
            for page in &pages {
                reference::write(&page.command, out)?;
            }
            Ok(())
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    if kind == "list" {
        write_stdout(|out| {
            let mut kinds = pages.iter().map(|page| &page.kind);
            Ok(kinds.try_for_each(|kind| writeln!(out, "{kind}"))?)
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    match pages.iter().position(|page| page.kind == kind) {
        Some(index) => write_stdout(|out| Ok(pages.swap_remove(index).write(out)?))?,
        None => {
            let pages = pages.iter().map(|page| page.kind.as_str());
            let known: Vec<&str> = pages.chain(SCRIPTS.map(|(name, _)| name)).collect();
            bail!(
                "--generate {kind}: there is no such page or script, only {}",
                known.join(", ")
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A manual page, and the value of `--generate` that prints it.
struct Page {
    kind: String,
    command: Command,
}

/// One for `prof`, one for each of its verbs, and one for `cargo prof`.
fn pages() -> Vec<Page> {
    let built = |command: Command| {
        let mut command = command.disable_help_subcommand(true);
        command.build();
        command
    };
    let prof = built(ProfCli::command());
    let verbs = prof.get_subcommands().chain([&prof]).cloned();
    let cargo = built(CargoCli::command());
    verbs
        .chain(cargo.get_subcommands().cloned())
        .map(Page::new)
        .collect()
}

impl Page {
    fn new(command: Command) -> Self {
        let name = command.get_display_name().unwrap_or("prof");
        let kind = match name.strip_prefix("prof") {
            Some(verb) => format!("man{verb}"),
            None => format!("man-{name}"),
        };
        Self { kind, command }
    }

    fn write(self, out: &mut dyn Write) -> io::Result<()> {
        let source = concat!("prof ", env!("CARGO_PKG_VERSION"));
        Man::new(self.command)
            .source(source)
            .manual("prof")
            .render(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_verb_has_its_page() {
        let kinds: Vec<String> = pages().into_iter().map(|page| page.kind).collect();
        for kind in ["man", "man-record", "man-report", "man-cargo-prof"] {
            assert!(
                kinds.iter().any(|known| known == kind),
                "{kind} of {kinds:?}"
            );
        }
    }

    #[test]
    fn pages_name_their_command_and_its_flags() {
        let page = pages()
            .into_iter()
            .find(|page| page.kind == "man-record")
            .unwrap();
        let mut out = Vec::new();
        page.write(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains(".TH prof-record 1"), "{text}");
        assert!(
            text.contains("prof\\-record \\- Sample a command"),
            "{text}"
        );
        assert!(text.contains("\\-\\-call\\-graph"), "{text}");
    }
}
