//! Drawing: tabs, a view, and the foot with the verdict.
//!
//! ```text
//!   1 Functions  2 Tree  3 Flamegraph  4 Threads           cpu-clock, last seconds
//!   the view
//!   12345 samples, 99.8 % whole, 0 lost                                     FROZEN
//!   ? help  / search  space freeze  w write  q quit
//! ```

pub(super) mod flame;
mod help;
mod list;
pub(super) mod tree;

use prof_report::Span;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::app::{App, View};
use super::picture::Picture;
use super::style::Look;

/// Draws all of it.
pub(super) fn draw(app: &mut App, picture: &Picture, look: Look, area: Rect, out: &mut Buffer) {
    let mut canvas = Canvas { out, look };
    let foot = area.height.min(2);
    let head = u16::from(area.height > foot);
    let body = Rect {
        y: area.y + head,
        height: area.height - head - foot,
        ..area
    };
    app.size = (body.width, body.height.saturating_sub(list::HEAD));
    if head > 0 {
        canvas.head(app, picture, area);
    }
    match app.view {
        _ if app.help => help::draw(&mut canvas, body),
        View::Functions | View::Threads => list::draw(app, picture, &mut canvas, body),
        View::Tree => tree::draw(app, &picture.tree, &mut canvas, body),
        View::Flamegraph => flame::draw(app, &picture.tree, &mut canvas, body),
    }
    let foot = Rect {
        y: area.y + area.height - foot,
        height: foot,
        ..area
    };
    canvas.foot(app, picture, foot);
}

/// The buffer to draw to, and the style.
pub(super) struct Canvas<'b> {
    pub(super) out: &'b mut Buffer,
    pub(super) look: Look,
}

impl Canvas<'_> {
    /// Writes as much of a text as fits between `x` and the end of `area`; returns where it ends.
    pub(super) fn text(&mut self, area: Rect, (x, y): (u16, u16), text: &str, style: Style) -> u16 {
        let end = area.x + area.width;
        if y >= area.y + area.height || x >= end {
            return x;
        }
        let space = usize::from(end - x);
        self.out.set_stringn(x, y, text, space, style).0
    }

    fn head(&mut self, app: &App, picture: &Picture, area: Rect) {
        let names = match area.width {
            ..60 => ["1Func", "2Tree", "3Flame", "4Thread"],
            _ => ["1 Functions", "2 Tree", "3 Flamegraph", "4 Threads"],
        };
        let mut x = area.x;
        for (name, view) in names.into_iter().zip(View::ALL) {
            let style = match view == app.view {
                true => self.look.selected(self.look.title()),
                false => Style::new(),
            };
            x = self.text(area, (x, area.y), &format!(" {name} "), style);
        }
        let span = match app.span {
            Span::Recent => "last seconds",
            Span::All => "since the start",
        };
        let about = format!("{} {span}", picture.event);
        let width = about.chars().count() as u16;
        // Only if all of it fits beside the tabs.
        if x + 1 + width <= area.x + area.width {
            let x = area.x + area.width - width;
            let style = self.look.aside();
            self.text(area, (x, area.y), about.trim_start(), style);
        }
    }

    fn foot(&mut self, app: &App, picture: &Picture, area: Rect) {
        let foot = &picture.foot;
        let mut parts = vec![prof_model::counted(foot.samples, "sample")];
        parts.extend(foot.wholeness());
        parts.push(format!("{} lost", foot.lost));
        if foot.throttled > 0 {
            parts.push(format!("throttled {} times", foot.throttled));
        }
        if foot.left_out >= 0.001 {
            parts.push(format!("{:.1} % rare, not shown", foot.left_out * 100.0));
        }
        let lossy = foot.lost > 0 || foot.throttled > 0;
        let style = if lossy {
            self.look.warning()
        } else {
            Style::new()
        };
        let x = self.text(area, (area.x, area.y), &parts.join(", "), style);
        let mut state = Vec::new();
        if !app.filters.are_none() {
            state.push(format!("only {}", app.filters.text()));
        }
        if app.frozen {
            state.push("FROZEN".into());
        }
        state.extend(app.ended.clone());
        let state = state.join(", ");
        self.text(area, (x + 2, area.y), &state, self.look.warning());
        let line = area.y + 1;
        if let Some((kind, text)) = &app.prompt {
            let x = self.text(area, (area.x, line), kind.prompt(), self.look.title());
            let x = self.text(area, (x, line), text, Style::new());
            self.text(area, (x, line), " ", self.look.selected(Style::new()));
        } else if let Some(message) = &app.message {
            self.text(area, (area.x, line), message, self.look.warning());
        } else {
            let hints = "? help  / search  space freeze  w write  q quit";
            self.text(area, (area.x, line), hints, self.look.aside());
        }
    }
}

/// The first visible line of a list, so that the selected one is among `height` lines, if possible
/// in the middle.
pub(super) fn first_line(selected: usize, count: usize, height: usize) -> usize {
    let most = count.saturating_sub(height);
    selected.saturating_sub(height / 2).min(most)
}

/// The line that a key leads to in a list that ends with `last`, with `page` visible lines.
pub(super) fn moved(code: KeyCode, at: usize, last: usize, page: usize) -> usize {
    let page = page.saturating_sub(1).max(1);
    match code {
        KeyCode::Up | KeyCode::Char('k') => at.saturating_sub(1),
        KeyCode::Down | KeyCode::Char('j') => (at + 1).min(last),
        KeyCode::PageUp => at.saturating_sub(page),
        KeyCode::PageDown => (at + page).min(last),
        KeyCode::Home | KeyCode::Char('g') => 0,
        KeyCode::End | KeyCode::Char('G') => last,
        _ => at,
    }
}

#[cfg(test)]
mod tests;
