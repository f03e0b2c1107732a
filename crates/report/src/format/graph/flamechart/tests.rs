use super::*;
use crate::calltree::Split;
use crate::testing::{TestProfile, everything};

fn draw(lines: &[&str], options: &FlameOptions) -> String {
    let symbolized = TestProfile::of(lines);
    let chart = Chart::new(&symbolized, &everything(), Split::Name, 0.0).unwrap();
    let mut svg = Vec::new();
    write(&chart, options, &mut svg).unwrap();
    String::from_utf8(svg).unwrap()
}

/// Title, left end in nanoseconds and top of each frame.
fn frames(svg: &str) -> Vec<(String, u64, u64)> {
    let (_, frames) = svg.split_once("<svg id=\"frames\"").unwrap();
    let attribute = |frame: &str, name: &str| -> u64 {
        let (_, rest) = frame.split_once(&format!(" {name}=\"")).unwrap();
        rest.split_once('"').unwrap().0.parse().unwrap()
    };
    let frame = |frame: &str| {
        let (title, rest) = frame.split_once("</title>").unwrap();
        (
            title.to_owned(),
            attribute(rest, "fg:x"),
            attribute(rest, "y"),
        )
    };
    frames.split("<title>").skip(1).map(frame).collect()
}

#[test]
fn each_thread_has_a_lane_on_one_scale() {
    // Samples are a millisecond apart.
    let lines = ["z m 1", "t m;a 1", "t m;k:b 1", "u n 1", "t m;a 1"];
    let svg = draw(&lines, &FlameOptions::default());
    let expected = [
        ("z (sampled for 0 ns)", 0, 22),
        ("t (sampled for 3.00 ms)", 0, 62),
    ];
    let found = frames(&svg);
    for (title, x, y) in expected {
        assert!(found.contains(&(title.into(), x, y)), "{title}: {found:?}");
    }
    for text in [
        "in the order of time",
        ">kernel<",
        ">2.0 ms</text>",
        "show_time",
    ] {
        assert!(svg.contains(text), "{text}");
    }
}
