//! Reads the command line.

use clap::error::{ContextKind, ErrorKind};
use clap::{Command, Parser};

/// The command line; ends the program if it is wrong.
pub fn parsed<Cli: Parser>() -> Cli {
    let command = with_negative_numbers(Cli::command());
    let cli = command
        .try_get_matches()
        .and_then(|matches| Cli::from_arg_matches(&matches));
    cli.unwrap_or_else(|mut error| {
        // Of an unknown flag, clap would also say how to pass it on: it would become the name of
        // the program to run.
        if error.kind() == ErrorKind::UnknownArgument {
            error.remove(ContextKind::Suggested);
        }
        error.exit()
    })
}

/// Lets the values of flags begin with a minus, so that their parsers say what they expect instead.
/// Otherwise clap takes `-1` for an unknown flag.
fn with_negative_numbers(command: Command) -> Command {
    let command = command.mut_args(|arg| {
        let takes_values = arg.get_action().takes_values() && !arg.is_positional();
        arg.allow_negative_numbers(takes_values)
    });
    command.mut_subcommands(with_negative_numbers)
}

#[cfg(test)]
mod tests {
    use clap::{Arg, ArgAction};

    use super::*;

    #[test]
    fn flags_get_negative_numbers_and_commands_keep_theirs() {
        let check = |line: &str, expected: Option<(&[&str], &[&str])>| {
            let rate = Arg::new("rate").short('F').num_args(1);
            let quiet = Arg::new("quiet").short('q').action(ArgAction::SetTrue);
            let words = Arg::new("words").num_args(0..).trailing_var_arg(true);
            let record = Command::new("record").args([rate, quiet, words]);
            let command = with_negative_numbers(Command::new("prof").subcommand(record));
            let matches = command.try_get_matches_from(line.split(' '));
            let found = matches.ok().map(|matches| {
                let record = matches.subcommand_matches("record").unwrap().clone();
                ["rate", "words"].map(|name| {
                    let values = record.get_many::<String>(name).unwrap_or_default();
                    values.cloned().collect::<Vec<_>>()
                })
            });
            let expected = expected.map(|(rate, words)| {
                [rate, words].map(|all| all.iter().map(|&it| it.to_owned()).collect::<Vec<_>>())
            });
            assert_eq!(found, expected, "{line}");
        };
        check("prof record -F -1 true", Some((&["-1"], &["true"])));
        check("prof record -F-1.5", Some((&["-1.5"], &[])));
        check(
            "prof record -q kill -9 1",
            Some((&[], &["kill", "-9", "1"])),
        );
        check("prof record -F -q", None);
        check("prof record -9", None);
    }
}
