use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::{Color, Modifier};

use super::*;
use crate::top::testing::picture;

const PLAIN: Look = Look {
    colors: false,
    unicode: false,
};

const STACKS: [&str; 3] = ["main;parse;read 60", "main;parse 10", "main;write 30"];

/// The content of a terminal of this size.
fn drawn(app: &mut App, look: Look, (width, height): (u16, u16)) -> Buffer {
    let picture = picture(&STACKS);
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
    let draw = |frame: &mut ratatui::Frame<'_>| {
        super::draw(app, &picture, look, frame.area(), frame.buffer_mut());
    };
    terminal.draw(draw).expect("drawn");
    terminal.backend().buffer().clone()
}

fn lines(buffer: &Buffer) -> Vec<String> {
    let width = usize::from(buffer.area.width);
    let rows = buffer.content.chunks(width);
    rows.map(|row| {
        row.iter()
            .map(|cell| cell.symbol())
            .collect::<String>()
            .trim_end()
            .to_owned()
    })
    .collect()
}

fn check(view: View, size: (u16, u16), expected: &[&str]) {
    let mut app = App {
        view,
        ..App::default()
    };
    let buffer = drawn(&mut app, PLAIN, size);
    assert_eq!(lines(&buffer), expected, "{view:?}");
    let is_plain =
        |cell: &ratatui::buffer::Cell| (cell.fg, cell.bg) == (Color::Reset, Color::Reset);
    assert!(buffer.content.iter().all(is_plain), "without colours");
}

#[test]
fn functions_on_a_terminal() {
    check(
        View::Functions,
        (80, 9),
        &[
            " 1 Functions  2 Tree  3 Flamegraph  4 Threads             cpu-clock last seconds",
            "    self*   total  function                                  module",
            "  60.00%   60.00%  read                                      ",
            "  30.00%   30.00%  write                                     ",
            "  10.00%   70.00%  parse                                     ",
            "   0.00%  100.00%  main                                      ",
            "",
            "100 samples, 100 % whole, 0 lost",
            "? help  / search  space freeze  w write  q quit",
        ]
        .map(str::trim_end),
    );
}

#[test]
fn a_tree_in_a_narrow_pane() {
    check(
        View::Tree,
        (40, 10),
        &[
            " 1Func  2Tree  3Flame  4Thread",
            "   total     self  calls",
            " 100.00%    0.00%  - main",
            "  70.00%   10.00%   - parse",
            "  60.00%   60.00%     read",
            "  30.00%   30.00%     write",
            "",
            "",
            "100 samples, 100 % whole, 0 lost",
            "? help  / search  space freeze  w write",
        ],
    );
}

#[test]
fn a_flamegraph_in_a_narrow_pane() {
    check(
        View::Flamegraph,
        (40, 10),
        &[
            " 1Func  2Tree  3Flame  4Thread",
            "100.00% all",
            "|all",
            "|main",
            "|parse                      |write",
            "|read",
            "",
            "",
            "100 samples, 100 % whole, 0 lost",
            "? help  / search  space freeze  w write",
        ],
    );
}

#[test]
fn any_size_will_do() {
    for view in View::ALL {
        for help in [false, true] {
            for size in [(1, 1), (3, 2), (10, 3), (20, 4), (200, 60)] {
                let mut app = App {
                    view,
                    help,
                    prompt: Some((super::super::filters::PromptKind::Search, "x".into())),
                    ..App::default()
                };
                drawn(&mut app, PLAIN, size);
            }
        }
    }
}

#[test]
fn matches_stand_out_with_and_without_colours() {
    for colors in [false, true] {
        let look = Look { colors, ..PLAIN };
        for view in [View::Functions, View::Tree, View::Flamegraph] {
            let mut app = App {
                view,
                search: "^parse$".parse().ok(),
                ..App::default()
            };
            let buffer = drawn(&mut app, look, (80, 24));
            let found = buffer.content.iter();
            let found = found.filter(|cell| cell.modifier.contains(Modifier::UNDERLINED));
            let text: String = found.map(|cell| cell.symbol()).collect();
            assert!(text.contains("parse") && !text.contains("read"), "{text}");
        }
    }
}

#[test]
fn the_state_is_said() {
    let mut app = App {
        frozen: true,
        ended: Some("ENDED".into()),
        message: Some("wrote prof.data.1".into()),
        ..App::default()
    };
    app.filters.no_kernel = true;
    let lines = lines(&drawn(&mut app, PLAIN, (80, 24)));
    assert_eq!(
        lines[22],
        "100 samples, 100 % whole, 0 lost  only no kernel, FROZEN, ENDED"
    );
    assert_eq!(lines[23], "wrote prof.data.1");
}
