use prof_report::Pattern;

use super::*;
use crate::top::testing::picture;

const STACKS: [&str; 3] = ["main;parse;read 60", "main;parse 10", "main;write 30"];

/// Presses keys, each given by its name or character; expects this next step after the last one.
fn press(app: &mut App, picture: &Picture, keys: &[&str]) -> NextAction {
    // As it is drawn on 80 columns.
    app.size = (80, 20);
    let mut action = NextAction::Draw;
    for key in keys {
        let code = match *key {
            "enter" => KeyCode::Enter,
            "back" => KeyCode::Backspace,
            "esc" => KeyCode::Esc,
            "tab" => KeyCode::Tab,
            "up" => KeyCode::Up,
            "down" => KeyCode::Down,
            "left" => KeyCode::Left,
            "right" => KeyCode::Right,
            key => KeyCode::Char(key.chars().next().expect("a key")),
        };
        action = app.key(KeyEvent::from(code), picture);
    }
    action
}

fn chosen(app: &App, picture: &Picture) -> String {
    let tree = &picture.tree;
    tree.nodes[tree.find(app.call)].name.to_string()
}

#[test]
fn tabs() {
    let picture = picture(&STACKS);
    let mut app = App::default();
    for (keys, view) in [
        (&["3"][..], View::Flamegraph),
        (&["tab"], View::Threads),
        (&["tab"], View::Functions),
        (&["2"], View::Tree),
    ] {
        assert_eq!(press(&mut app, &picture, keys), NextAction::Picture);
        assert_eq!(app.view, view);
    }
}

#[test]
fn the_search_wraps_around_and_goes_back() {
    let picture = picture(&STACKS);
    let mut app = App::default();
    // By self weight: read, write, parse, main.
    press(&mut app, &picture, &["/", "a", "enter"]);
    assert_eq!(app.row(), 2, "parse");
    press(&mut app, &picture, &["n"]);
    assert_eq!(app.row(), 3, "main");
    press(&mut app, &picture, &["n"]);
    assert_eq!(app.row(), 0, "read");
    press(&mut app, &picture, &["N"]);
    assert_eq!(app.row(), 3, "main");
    press(&mut app, &picture, &["/", "x", "enter"]);
    assert_eq!(app.message.as_deref(), Some("nothing found"));
    press(&mut app, &picture, &["/", "(", "enter"]);
    assert!(
        app.message
            .as_ref()
            .is_some_and(|it| it.contains("regular expression"))
    );
    press(&mut app, &picture, &["2", "/", "r", "e", "a", "d", "enter"]);
    assert_eq!(chosen(&app, &picture), "read");
}

#[test]
fn a_flamegraph_is_walked_and_zoomed() {
    let picture = picture(&STACKS);
    let mut app = App::default();
    press(&mut app, &picture, &["3", "down", "down"]);
    assert_eq!(chosen(&app, &picture), "parse");
    press(&mut app, &picture, &["right"]);
    assert_eq!(chosen(&app, &picture), "write");
    press(&mut app, &picture, &["left", "enter"]);
    assert_eq!(
        picture.tree.nodes[app.root(&picture.tree)].name.as_ref(),
        "parse"
    );
    press(&mut app, &picture, &["down", "up", "up", "up"]);
    assert_eq!(chosen(&app, &picture), "parse", "not out of what is shown");
    press(&mut app, &picture, &["back"]);
    assert_eq!(app.root(&picture.tree), Tree::ROOT);
}

#[test]
fn a_tree_is_closed_and_opened() {
    let picture = picture(&STACKS);
    let mut app = App::default();
    press(&mut app, &picture, &["2", "down"]);
    assert_eq!(chosen(&app, &picture), "parse");
    press(&mut app, &picture, &["left", "down"]);
    assert_eq!(chosen(&app, &picture), "write", "read is hidden");
    press(&mut app, &picture, &["up", "right", "down"]);
    assert_eq!(chosen(&app, &picture), "read");
    press(&mut app, &picture, &["left", "left"]);
    assert_eq!(
        chosen(&app, &picture),
        "parse",
        "first to the caller, then closed"
    );
    press(&mut app, &picture, &["enter"]);
    assert_eq!(
        picture.tree.nodes[app.root(&picture.tree)].name.as_ref(),
        "parse"
    );
}

#[test]
fn conditions_are_typed_and_dropped() {
    let picture = picture(&STACKS);
    let mut app = App::default();
    assert_eq!(
        press(&mut app, &picture, &["f", "r", "e", "enter"]),
        NextAction::Picture
    );
    assert_eq!(app.filters.text(), "function re");
    press(&mut app, &picture, &["m", "x", "back", "esc", "K"]);
    assert_eq!(app.filters.text(), "function re, no kernel");
    assert_eq!(press(&mut app, &picture, &["esc"]), NextAction::Picture);
    assert_eq!(app.filters.text(), "no kernel");
    assert_eq!(press(&mut app, &picture, &["enter"]), NextAction::Picture);
    let function = app.filters.function.as_ref().expect("the first one");
    assert!(function.matches("read") && !function.matches("thread"));
}

#[test]
fn freezing_writing_and_quitting() {
    let picture = picture(&STACKS);
    let mut app = App::default();
    assert_eq!(press(&mut app, &picture, &[" "]), NextAction::Draw);
    assert!(app.frozen);
    assert_eq!(press(&mut app, &picture, &[" "]), NextAction::Profile);
    assert_eq!(press(&mut app, &picture, &["d"]), NextAction::Profile);
    assert_eq!(app.span, Span::All);
    assert_eq!(press(&mut app, &picture, &["w"]), NextAction::Write);
    assert_eq!(press(&mut app, &picture, &["?"]), NextAction::Draw);
    assert_eq!(
        press(&mut app, &picture, &["q"]),
        NextAction::Draw,
        "the help goes away"
    );
    assert_eq!(press(&mut app, &picture, &["q"]), NextAction::Quit);
    let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    app.prompt = Some((PromptKind::Search, String::new()));
    assert_eq!(app.key(interrupt, &picture), NextAction::Quit);
}

#[test]
fn names_are_matched_as_they_are() {
    for name in [
        "operator<<",
        "f(int, char*)",
        "<T as U>::f::{closure#0}",
        "a+0x1f",
        "a.b|c",
    ] {
        let pattern: Pattern = format!("^{}$", escaped(name)).parse().expect("a pattern");
        assert!(pattern.matches(name), "{name}");
    }
}
