//! Filters that the user has typed.

use prof_report::{Filter, InvalidPattern, Pattern};

/// Filters, which must all match.
#[derive(Clone, Debug, Default)]
pub(super) struct Filters {
    pub function: Option<Pattern>,
    pub thread: Option<Pattern>,
    pub module: Option<Pattern>,
    pub no_kernel: bool,
}

/// The purpose of a pattern that the user types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PromptKind {
    Search,
    Function,
    Thread,
    Module,
}

impl PromptKind {
    /// The prompt before the pattern.
    pub(super) fn prompt(self) -> &'static str {
        match self {
            Self::Search => "/",
            Self::Function => "only stacks with function: ",
            Self::Thread => "only threads: ",
            Self::Module => "only stacks with module: ",
        }
    }
}

/// The typed text as a regular expression; `None` if it is empty. Without capital letters, it
/// matches either case.
///
/// # Errors
///
/// It is not a regular expression.
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

    /// Whether nothing is filtered.
    pub(super) fn are_none(&self) -> bool {
        self.text().is_empty()
    }

    /// The filters in words, for the foot.
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
