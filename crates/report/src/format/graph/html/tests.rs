use super::*;
use crate::testing::{TestProfile, everything};

fn page(title: &str, lines: &[&str]) -> String {
    let profile = TestProfile::of(lines);
    let input = HtmlInput {
        profile: &profile,
        code: Vec::new(),
    };
    let mut out = Vec::new();
    write(
        title,
        &[input],
        &everything(),
        &Sources::default(),
        &mut out,
    )
    .unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn names_never_stand_in_the_markup() {
    let hostile = "</script><script>alert(1)</script>";
    let page = page(hostile, &["t <img onerror=x>;<b>main</b>;\u{202e}evil 1"]);
    for text in ["alert", "onerror", "<b>main", "\u{202e}", MARK] {
        assert!(!page.contains(text), "{text}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn the_same_profile_gives_the_same_page() {
    let make = || page("demo", &["t main;a 1", "t main;b 2"]);
    assert_eq!(make(), make());
}
