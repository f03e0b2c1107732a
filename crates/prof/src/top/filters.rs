//! What is shown: conditions that were typed.

use prof_report::{Filter, InvalidPattern, Pattern};

/// Conditions on what is shown, together.
#[derive(Clone, Debug, Default)]
pub(super) struct Filters {
    pub function: Option<Pattern>,
    pub thread: Option<Pattern>,
    pub module: Option<Pattern>,
    pub no_kernel: bool,
}

/// What a pattern that is typed is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Search,
    Function,
    Thread,
    Module,
}

impl Wanted {
    /// What stands before the pattern while it is typed.
    pub(super) fn prompt(self) -> &'static str {
        match self {
            Self::Search => "/",
            Self::Function => "only stacks with function: ",
            Self::Thread => "only threads: ",
            Self::Module => "only stacks with module: ",
        }
    }
}

/// What was typed, as a regular expression; nothing is no condition. Without capital letters, it
/// matches either case.
///
/// # Errors
///
/// When it is none.
pub(super) fn pattern(text: &str) -> Result<Option<Pattern>, InvalidPattern> {
    match text {
        "" => Ok(None),
        text if text.contains(char::is_uppercase) => text.parse().map(Some),
        text => format!("(?i){text}").parse().map(Some),
    }
}

impl Filters {
    pub(super) fn filter(&self) -> Filter {
        Filter {
            function: self.function.clone(),
            comm: self.thread.clone(),
            module: self.module.clone(),
            no_kernel: self.no_kernel,
            ..Filter::default()
        }
    }

    /// Whether all is shown.
    pub(super) fn are_none(&self) -> bool {
        self.text().is_empty()
    }

    /// In words, for the foot.
    pub(super) fn text(&self) -> String {
        let text = |pattern: &Pattern| {
            let text = pattern.to_string();
            text.strip_prefix("(?i)").map(str::to_owned).unwrap_or(text)
        };
        let conditions = [
            ("function", &self.function),
            ("thread", &self.thread),
            ("module", &self.module),
        ];
        let conditions = conditions.into_iter().filter_map(|(what, pattern)| {
            let pattern = pattern.as_ref()?;
            Some(format!("{what} {}", text(pattern)))
        });
        let kernel = self.no_kernel.then(|| "no kernel".to_owned());
        conditions.chain(kernel).collect::<Vec<_>>().join(", ")
    }
}
