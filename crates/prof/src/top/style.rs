//! Text styles, with and without colours.

use std::hash::{DefaultHasher, Hash, Hasher};

use prof_report::symbolize::FunctionKind;
use ratatui::style::{Color, Modifier, Style};

/// The capabilities of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Look {
    pub colors: bool,
    /// Characters beyond ASCII.
    pub unicode: bool,
}

impl Look {
    /// The capabilities that these environment variables imply.
    pub(super) fn of(variable: impl Fn(&str) -> Option<String>) -> Self {
        let term = variable("TERM").unwrap_or_default();
        let without = ["vt100", "vt102", "vt220", "linux-m", "xterm-mono", ""];
        let unwanted = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter();
        let locale = locale.filter_map(|name| variable(name).filter(|value| !value.is_empty()));
        let locale = locale.map(|value| value.to_uppercase()).next();
        let is_old = without.contains(&&*term);
        Self {
            colors: !unwanted && !is_old && !term.ends_with("-m"),
            unicode: !is_old
                && locale.is_some_and(|name| name.contains("UTF-8") || name.contains("UTF8")),
        }
    }

    fn colored(self, color: Color) -> Style {
        match self.colors {
            true => Style::new().fg(color),
            false => Style::new(),
        }
    }

    /// The current view's tab, and titles.
    pub(super) fn title(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// The selected line or box.
    pub(super) fn selected(self, style: Style) -> Style {
        style.add_modifier(Modifier::REVERSED)
    }

    /// Matches of the search.
    pub(super) fn found(self, style: Style) -> Style {
        let style = style.add_modifier(Modifier::BOLD | Modifier::UNDERLINED);
        match self.colors {
            true => style.fg(Color::Magenta),
            false => style,
        }
    }

    /// Less important text. (Not dim: some terminals show that as nothing.)
    pub(super) fn aside(self) -> Style {
        self.colored(Color::Cyan)
    }

    /// Warnings.
    pub(super) fn warning(self) -> Style {
        self.colored(Color::Yellow).add_modifier(Modifier::BOLD)
    }

    /// A function's name.
    pub(super) fn function(self, kind: FunctionKind) -> Style {
        match kind {
            FunctionKind::User | FunctionKind::State => Style::new(),
            FunctionKind::Kernel => self.colored(Color::Blue),
            FunctionKind::Jit | FunctionKind::Interpreted(_) => self.colored(Color::Green),
            FunctionKind::Missing => self.colored(Color::Red),
        }
    }

    /// A function's box in the flamegraph. Neighbours mostly have different colours.
    pub(super) fn flame(self, name: &str, kind: FunctionKind) -> Style {
        if !self.colors {
            return Style::new();
        }
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        let second = hasher.finish().is_multiple_of(2);
        let color = match (kind, second) {
            (FunctionKind::Kernel, true) => Color::Cyan,
            (FunctionKind::Kernel, false) => Color::LightCyan,
            (FunctionKind::Jit | FunctionKind::Interpreted(_), true) => Color::Green,
            (FunctionKind::Jit | FunctionKind::Interpreted(_), false) => Color::LightGreen,
            (FunctionKind::Missing | FunctionKind::State, _) => Color::Gray,
            (FunctionKind::User, true) => Color::Yellow,
            (FunctionKind::User, false) => Color::LightRed,
        };
        Style::new().fg(Color::Black).bg(color)
    }

    /// `plain` is for terminals that only have ASCII.
    pub(super) fn glyph(self, glyph: &'static str, plain: &'static str) -> &'static str {
        if self.unicode { glyph } else { plain }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_differ() {
        let check = |variables: &[(&str, &str)], colors, unicode| {
            let find = |name: &str| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            assert_eq!(Look::of(find), Look { colors, unicode }, "{variables:?}");
        };
        check(&[("TERM", "xterm"), ("LANG", "de_DE.UTF-8")], true, true);
        check(&[("TERM", "xterm"), ("LANG", "C")], true, false);
        check(
            &[("TERM", "xterm"), ("LC_ALL", "C"), ("LANG", "C.utf8")],
            true,
            false,
        );
        check(
            &[("TERM", "xterm"), ("LC_ALL", ""), ("LANG", "C.utf8")],
            true,
            true,
        );
        check(&[("TERM", "xterm"), ("NO_COLOR", "1")], false, false);
        check(&[("TERM", "xterm"), ("NO_COLOR", "")], true, false);
        check(&[("TERM", "vt100"), ("LANG", "C.UTF-8")], false, false);
        check(&[], false, false);
    }
}
