//! Pictures for tests.

use prof_filemap::MappedFile;
use prof_report::{Filter, LoadOptions, SymbolizedProfile};
use prof_symbols::{SymbolOptions, Symbolizer};

use super::picture::{Foot, Picture, Tree};

/// A picture of folded stacks (`main;a;b 30`), as this many samples of `cpu-clock`, all whole.
pub(super) fn picture(stacks: &[&str]) -> Picture {
    let profile = profile(stacks);
    let picture = Picture::new(&profile, &Filter::default(), false);
    Picture {
        event: "cpu-clock".into(),
        foot: Foot {
            samples: picture.total(),
            whole: Some(1.0),
            ..Foot::default()
        },
        ..picture
    }
}

pub(super) fn profile(stacks: &[&str]) -> SymbolizedProfile {
    let folded = MappedFile::from(stacks.join("\n").into_bytes());
    let profile = prof_report::profile_of(folded, &LoadOptions::default()).expect("folded stacks");
    let symbolizer = Symbolizer::new(SymbolOptions::default());
    SymbolizedProfile::new(profile, &symbolizer)
}

pub(super) fn tree(stacks: &[&str]) -> Tree {
    picture(stacks).tree
}
