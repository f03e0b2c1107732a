//! The effect of keys on the display.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use prof_report::Span;

use super::app::{App, View};
use super::filters::{Filters, PromptKind, pattern};
use super::picture::{Picture, Tree};
use super::views::{flame, moved, tree};

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextAction {
    Nothing,
    /// Only draw the current state.
    Draw,
    /// Make another picture of the same profile.
    Picture,
    /// Make a profile of another span of the recording.
    Profile,
    /// Write a recording.
    Write,
    Quit,
}

impl App {
    /// Handles a key.
    pub(super) fn key(&mut self, key: KeyEvent, picture: &Picture) -> NextAction {
        self.message = None;
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control && matches!(key.code, KeyCode::Char('c' | 'd')) {
            return NextAction::Quit;
        }
        if control {
            return NextAction::Draw;
        }
        if self.prompt.is_some() {
            return self.type_key(key.code, picture);
        }
        if std::mem::take(&mut self.help) {
            return NextAction::Draw;
        }
        match key.code {
            KeyCode::Char('q') => return NextAction::Quit,
            KeyCode::Char('?' | 'h') | KeyCode::F(1) => self.help = true,
            KeyCode::Char(digit @ '1'..='4') => {
                return self.show(View::ALL[digit as usize - '1' as usize]);
            }
            KeyCode::Tab => return self.show_next(1),
            KeyCode::BackTab => return self.show_next(View::ALL.len() - 1),
            KeyCode::Char(' ') => {
                self.frozen = !self.frozen;
                if !self.frozen {
                    return NextAction::Profile;
                }
            }
            KeyCode::Char('s') => self.by_total = !self.by_total,
            KeyCode::Char('d') => {
                self.span = match self.span {
                    Span::Recent => Span::All,
                    Span::All => Span::Recent,
                };
                return NextAction::Profile;
            }
            KeyCode::Char('w') => return NextAction::Write,
            KeyCode::Char('K') => {
                self.filters.no_kernel = !self.filters.no_kernel;
                return NextAction::Picture;
            }
            KeyCode::Char('/') => self.open_prompt(PromptKind::Search),
            KeyCode::Char('f') => self.open_prompt(PromptKind::Function),
            KeyCode::Char('t') => self.open_prompt(PromptKind::Thread),
            KeyCode::Char('m') => self.open_prompt(PromptKind::Module),
            KeyCode::Char('n') => self.find(picture, true),
            KeyCode::Char('N') => self.find(picture, false),
            KeyCode::Esc => return self.reset(),
            code => return self.move_key(code, picture),
        }
        NextAction::Draw
    }

    fn show(&mut self, view: View) -> NextAction {
        self.view = view;
        // Only the view of threads lists them separately.
        NextAction::Picture
    }

    fn show_next(&mut self, by: usize) -> NextAction {
        let at = View::ALL.iter().position(|view| *view == self.view);
        self.show(View::ALL[(at.unwrap_or(0) + by) % View::ALL.len()])
    }

    fn open_prompt(&mut self, kind: PromptKind) {
        self.prompt = Some((kind, String::new()));
    }

    /// Clears search, filters and zoom.
    fn reset(&mut self) -> NextAction {
        let no_kernel = self.filters.no_kernel;
        self.filters = Filters {
            no_kernel,
            ..Filters::default()
        };
        self.search = None;
        self.zoom.clear();
        NextAction::Picture
    }

    /// Handles a key in the prompt.
    fn type_key(&mut self, code: KeyCode, picture: &Picture) -> NextAction {
        let Some((kind, mut text)) = self.prompt.take() else {
            return NextAction::Draw;
        };
        match code {
            KeyCode::Enter => return self.take_pattern(kind, &text, picture),
            KeyCode::Esc => return NextAction::Draw,
            KeyCode::Backspace if text.pop().is_none() => return NextAction::Draw,
            KeyCode::Char(character) => text.push(character),
            _ => {}
        }
        self.prompt = Some((kind, text));
        NextAction::Draw
    }

    fn take_pattern(&mut self, kind: PromptKind, text: &str, picture: &Picture) -> NextAction {
        let found = match pattern(text) {
            Ok(found) => found,
            Err(_) => {
                self.message = Some(format!("not a regular expression: {text}"));
                return NextAction::Draw;
            }
        };
        match kind {
            PromptKind::Search => {
                self.search = found;
                self.find(picture, true);
                return NextAction::Draw;
            }
            PromptKind::Function => self.filters.function = found,
            PromptKind::Thread => self.filters.thread = found,
            PromptKind::Module => self.filters.module = found,
        }
        NextAction::Picture
    }

    /// Goes to the next match of the search, or to the previous one.
    fn find(&mut self, picture: &Picture, forward: bool) {
        let (names, at): (Vec<(&str, u64)>, usize) = match self.view {
            View::Functions | View::Threads => {
                let rows = self.sorted(picture);
                let names = rows
                    .iter()
                    .enumerate()
                    .map(|(at, row)| (&*row.name, at as u64));
                (names.collect(), self.row())
            }
            View::Tree | View::Flamegraph => {
                // All calls, whether they are open or wide enough or not.
                let nodes = picture.tree.nodes.iter();
                let names = nodes.map(|node| (&*node.name, node.id));
                (names.collect(), picture.tree.find(self.call))
            }
        };
        let count = names.len();
        let step = |by: usize| match forward {
            true => (at + by) % count,
            false => (at + count - by) % count,
        };
        let found = (1..=count).map(step).find(|&at| self.is_found(names[at].0));
        match (found, self.view) {
            (None, _) if self.search.is_some() => self.message = Some("nothing found".into()),
            (None, _) => {}
            (Some(at), View::Functions | View::Threads) => *self.row_mut() = at,
            (Some(at), _) => self.reveal(&picture.tree, at),
        }
    }

    /// Selects a call, and opens and shows all its callers.
    fn reveal(&mut self, calls: &Tree, node: usize) {
        self.call = calls.nodes[node].id;
        let root = self.root(calls);
        let mut at = node;
        while at != Tree::ROOT && at != root {
            at = calls.nodes[at].parent;
            self.opened.insert(calls.nodes[at].id, true);
        }
        if at != root {
            self.zoom.clear();
        }
        if self.view == View::Flamegraph && !flame::is_wide_enough(self, calls, node) {
            self.zoom.push(calls.nodes[node].id);
        }
    }

    fn move_key(&mut self, code: KeyCode, picture: &Picture) -> NextAction {
        match self.view {
            View::Functions | View::Threads => return self.move_in_rows(code, picture),
            View::Tree => tree::move_key(self, code, &picture.tree),
            View::Flamegraph => flame::move_key(self, code, &picture.tree),
        }
        NextAction::Draw
    }

    fn move_in_rows(&mut self, code: KeyCode, picture: &Picture) -> NextAction {
        let rows = self.sorted(picture);
        let Some(last) = rows.len().checked_sub(1) else {
            return NextAction::Draw;
        };
        let at = self.row().min(last);
        if code == KeyCode::Enter {
            // The id after a thread's name is not part of what patterns match.
            let name = match self.view {
                View::Threads => rows[at].name.rsplit_once(' ').map_or("", |(name, _)| name),
                _ => &rows[at].name,
            };
            let exact = format!("^{}$", escaped(name)).parse().ok();
            match self.view {
                View::Threads => self.filters.thread = exact,
                _ => self.filters.function = exact,
            }
            self.view = View::Flamegraph;
            return NextAction::Picture;
        }
        *self.row_mut() = moved(code, at, last, usize::from(self.size.1));
        NextAction::Draw
    }
}

/// A regular expression that matches this text and no other.
fn escaped(text: &str) -> String {
    let mut pattern = String::new();
    for character in text.chars() {
        // `\<` and `\>` are the bounds of words.
        if character.is_ascii_punctuation() && !"<>_".contains(character) {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern
}

#[cfg(test)]
mod tests;
