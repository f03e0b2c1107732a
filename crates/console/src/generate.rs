//! `--generate`: manual pages and shell completions, made from a program's flags.

use std::env;
use std::ffi::OsString;
use std::io::{self, Write};

use anyhow::{Result, bail};
use clap::Command;
use clap_complete::CompleteEnv;
use clap_complete::env::{Bash, EnvCompleter, Fish, Zsh};
use clap_mangen::Man;
use prof_model::{one_of, similar};

use crate::reference;

/// The environment variable that a shell's script sets when it asks for completions of the words
/// typed so far.
const VARIABLE: &str = "_PROF_COMPLETE";

const SCRIPTS: [(&str, &dyn EnvCompleter); 3] = [
    ("complete-bash", &Bash),
    ("complete-zsh", &Zsh),
    ("complete-fish", &Fish),
];

/// Bash splits words at colons and equals signs: `sched:sched_switch` is three words. This joins
/// them for clap's function, and removes from its answers what bash does not replace.
const BASH_WORDS: &str = r#"
_FUNCTION_complete() {
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
    _clap_complete_FUNCTION PROGRAM "$word"
    if [[ $COMP_WORDBREAKS == *:* ]]; then
        word=${word%"${word##*[:=]}"}
        for at in "${!COMPREPLY[@]}"; do
            COMPREPLY[at]=${COMPREPLY[at]#"$word"}
        done
    fi
}
complete -o nospace -o bashdefault -F _FUNCTION_complete PROGRAM
"#;

/// The words of the command line that a shell asks to complete, from the program's name on; `None`
/// if no shell asks.
pub fn typed_words() -> Option<impl Iterator<Item = OsString>> {
    env::var_os(VARIABLE)?;
    // prof -- prof record ...
    Some(env::args_os().skip(2))
}

/// Answers a shell that asks for completions; returns `false` if none asks.
///
/// # Errors
///
/// The shell is unknown, or the answer cannot be written.
pub fn complete(flags: fn() -> Command) -> clap::error::Result<bool> {
    let directory = env::current_dir().ok();
    CompleteEnv::with_factory(flags)
        .var(VARIABLE)
        .try_complete(env::args_os(), directory.as_deref())
}

/// The commands that have a manual page: `program` with these flags, and each of its verbs.
pub fn pages(program: &'static str, flags: Command) -> Vec<Command> {
    let mut command = flags.disable_help_subcommand(true);
    command.build();
    let mut pages = vec![command.display_name(program).bin_name(program)];
    let mut next = 0;
    while let Some(page) = pages.get(next) {
        let verbs: Vec<Command> = page.get_subcommands().cloned().collect();
        pages.extend(verbs);
        next += 1;
    }
    pages
}

/// The output of `program --generate KIND`: `man` is the program's own page, `man-record`
/// prof-record(1) and so on, `complete-bash` a script for that shell, `reference` all flags as
/// Markdown, `list` all kinds.
///
/// # Errors
///
/// There is no such kind.
pub fn generate(program: &str, pages: &[Command], kind: &str) -> Result<String> {
    let mut out = Vec::new();
    if let Some((_, shell)) = SCRIPTS.iter().find(|(name, _)| *name == kind) {
        return script(program, *shell);
    }
    match kind {
        "list" => {
            let kinds = kinds(program, pages);
            return Ok(kinds.iter().map(|kind| format!("{kind}\n")).collect());
        }
        "reference" => {
            writeln!(out, "# All flags of {program}\n")?;
            for page in pages {
                reference::write(page, &mut out)?;
            }
        }
        _ => match pages.iter().find(|page| kind_of(program, page) == kind) {
            Some(page) => write_page(page, &mut out)?,
            None => bail!("--generate {kind}: {}", unknown(program, pages, kind)),
        },
    }
    Ok(String::from_utf8(out)?)
}

/// A shell's script, which says how to use it.
fn script(program: &str, shell: &dyn EnvCompleter) -> Result<String> {
    let mut out = Vec::new();
    shell.write_registration(VARIABLE, program, program, program, &mut out)?;
    let registration = String::from_utf8(out)?;
    let shell = shell.name();
    let (place, command) = match shell {
        "fish" => (
            "~/.config/fish/config.fish",
            format!("{program} --generate complete-fish | source"),
        ),
        "zsh" => (
            "~/.zshrc, after compinit",
            format!("source <({program} --generate complete-zsh)"),
        ),
        _ => (
            "~/.bashrc",
            format!("source <({program} --generate complete-{shell})"),
        ),
    };
    let lead_in = format!(
        "# Completions of {program} for {shell}. To have them in each shell, add this line to\n\
         # {place}:\n#   {command}\n"
    );
    // zsh's compinit looks for this in the first line.
    let (first, rest) = match registration.split_once('\n') {
        Some((first, rest)) if first.starts_with("#compdef") => (format!("{first}\n"), rest),
        _ => (String::new(), &*registration),
    };
    let words = match shell {
        "bash" => BASH_WORDS
            .replace("FUNCTION", &program.replace('-', "_"))
            .replace("PROGRAM", program),
        _ => String::new(),
    };
    Ok(format!("{first}{lead_in}{rest}{words}"))
}

fn kinds(program: &str, pages: &[Command]) -> Vec<String> {
    let pages = pages.iter().map(|page| kind_of(program, page));
    let scripts = SCRIPTS.iter().map(|(name, _)| (*name).to_owned());
    pages.chain(scripts).chain(["reference".into()]).collect()
}

fn unknown(program: &str, pages: &[Command], kind: &str) -> String {
    let kinds = kinds(program, pages);
    let meant = match &*similar(kind, kinds.iter().map(String::as_str)) {
        [] => String::new(),
        similar => format!("; did you mean {}?", one_of(similar)),
    };
    format!("there is no such page or script{meant} (`{program} --generate list` shows all)")
}

/// The KIND of `--generate KIND` that prints this page.
fn kind_of(program: &str, page: &Command) -> String {
    let name = page.get_display_name().unwrap_or(program);
    match name.strip_prefix("prof-") {
        _ if name == program => "man".to_owned(),
        Some(verb) => format!("man-{verb}"),
        None => format!("man-{name}"),
    }
}

fn write_page(page: &Command, out: &mut dyn Write) -> io::Result<()> {
    let mut text = Vec::new();
    Man::new(page.clone())
        .source(concat!("prof ", env!("CARGO_PKG_VERSION")))
        .manual("prof")
        .render(&mut text)?;
    // Users type the verbs of prof-fleet as verbs of prof: their pages are named so, too.
    let text = String::from_utf8_lossy(&text).replace("prof\\-fleet\\-", "prof\\-");
    out.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use clap::Arg;

    use super::*;

    /// The output of `--generate` for a program of several verbs, one of which has verbs of its
    /// own.
    fn generated(program: &'static str, kind: &str) -> String {
        let data = Command::new("data").subcommand(Command::new("check"));
        let push = Command::new("push").arg(Arg::new("host").long("host-name").value_name("HOST"));
        let push = push.about("Store recordings");
        let flags = Command::new("prof").subcommand(push).subcommand(data);
        generate(program, &pages(program, flags), kind).unwrap_or_else(|error| error.to_string())
    }

    #[test]
    fn each_verb_has_its_page() {
        let kinds = "man\nman-push\nman-data\nman-data-check\ncomplete-bash\ncomplete-zsh\n\
                     complete-fish\nreference\n";
        assert_eq!(generated("prof", "list"), kinds);
        assert_eq!(generated("prof-fleet", "list"), kinds);
        assert!(
            kinds
                .lines()
                .all(|kind| !generated("prof", kind).is_empty())
        );
    }

    #[test]
    fn an_unknown_kind_gets_suggestions() {
        let check = |kind: &str, expected: &str| {
            assert_eq!(generated("prof", kind), expected);
        };
        check(
            "man-psuh",
            "--generate man-psuh: there is no such page or script; did you mean man-push? (`prof \
             --generate list` shows all)",
        );
        check(
            "nonsense",
            "--generate nonsense: there is no such page or script (`prof --generate list` shows all)",
        );
    }

    #[test]
    fn scripts_say_how_to_use_them() {
        let check = |kind: &str, expected: &str| {
            let script = generated("prof-fleet", kind);
            assert!(script.contains(expected), "{script}");
            let has_lead_in = script
                .lines()
                .take(2)
                .any(|line| line.starts_with("# Compl"));
            assert!(has_lead_in, "{script}");
        };
        check(
            "complete-bash",
            "\n#   source <(prof-fleet --generate complete-bash)\n",
        );
        check("complete-zsh", "#compdef prof-fleet\n# Completions of");
        check(
            "complete-fish",
            "\n#   prof-fleet --generate complete-fish | source\n",
        );
    }

    #[test]
    fn pages_name_their_command_and_its_flags() {
        let check = |kind: &str, expected: &[&str]| {
            let text = generated("prof-fleet", kind);
            for expected in expected {
                assert!(text.contains(expected), "{expected} in {text}");
            }
        };
        let title = ".TH prof-push 1";
        let name = "prof\\-push \\- Store recordings";
        check(
            "man-push",
            &[title, name, "\\fBprof push\\fR", "\\-\\-host\\-name"],
        );
        check("man", &[".TH prof-fleet 1", "\nprof\\-push(1)\n"]);
        check("man-data", &["\nprof\\-data\\-check(1)\n"]);
        let title = "# All flags of prof-fleet\n\n## prof-fleet\n";
        check(
            "reference",
            &[title, "## prof push\n", "`--host-name <HOST>`"],
        );
    }
}
