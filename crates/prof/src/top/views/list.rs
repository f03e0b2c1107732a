//! Functions and threads: a row each.

use std::sync::Arc;

use ratatui::layout::Rect;
use ratatui::style::Style;

use super::{Canvas, first_line};
use crate::top::app::{App, View};
use crate::top::picture::{Picture, percent};

/// The number of lines above the rows.
pub(super) const HEAD: u16 = 1;

/// From this width on, modules have columns of their own.
const WIDE: u16 = 70;
const MODULE: u16 = 20;

pub(super) fn draw(app: &App, picture: &Picture, canvas: &mut Canvas<'_>, area: Rect) {
    let threads = app.view == View::Threads;
    let wide = area.width >= WIDE && !threads;
    let name_end = match wide {
        true => area.width - MODULE,
        false => area.width,
    };
    let names = Rect {
        width: name_end,
        ..area
    };
    let sorted = |by_total: bool, title: &'static str| match by_total == app.by_total {
        true => format!("{title:>8}*"),
        false => format!("{title:>8} "),
    };
    let title = match threads {
        true => format!("{:>8}  thread", "share"),
        false => format!(
            "{}{} function",
            sorted(false, "self"),
            sorted(true, "total")
        ),
    };
    let style = canvas.look.title();
    canvas.text(names, (area.x, area.y), &title, style);
    if wide {
        canvas.text(area, (area.x + name_end, area.y), " module", style);
    }
    let rows = app.sorted(picture);
    let height = usize::from(area.height.saturating_sub(HEAD));
    let selected = app.row().min(rows.len().saturating_sub(1));
    let first = first_line(selected, rows.len(), height);
    for (at, row) in rows.iter().enumerate().skip(first).take(height) {
        let y = area.y + HEAD + (at - first) as u16;
        let own = percent(row.own, picture.total());
        let total = percent(row.total, picture.total());
        let shares = match threads {
            true => format!("{own:>7.2}%  "),
            false => format!("{own:>7.2}% {total:>7.2}%  "),
        };
        let plain = Style::new();
        let name = match app.is_found(&row.name) {
            true => canvas.look.found(plain),
            false => plain,
        };
        let x = canvas.text(names, (area.x, y), &shares, plain);
        canvas.text(names, (x, y), &row.name, name);
        if wide {
            let module = Arc::clone(&row.module);
            let style = canvas.look.aside();
            canvas.text(area, (area.x + name_end, y), &format!(" {module}"), style);
        }
        if at == selected {
            let line = Rect {
                y,
                height: 1,
                ..area
            };
            let style = canvas.look.selected(plain);
            canvas.out.set_style(line, style);
        }
    }
    if rows.is_empty() {
        let at = (area.x, area.y + HEAD);
        canvas.text(area, at, " nothing was sampled here", canvas.look.aside());
    }
}
