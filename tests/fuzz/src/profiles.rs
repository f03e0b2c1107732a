//! Profiles: loading them, and writing them in every format.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use prof_filemap::MappedFile;
use prof_model::{Module, Modules};
use prof_report::format::flamegraph::{self, FlameOptions};
use prof_report::format::json::{self, CallView};
use prof_report::format::timeline::SvgOptions;
use prof_report::format::{
    coverage, csv, failures, firefox, flamechart, folded, pprof, script, speedscope, timeline, tree,
};
use prof_report::view::chart::Chart;
use prof_report::view::failures::Failures;
use prof_report::view::flat::Flat;
use prof_report::view::outline::Outline;
use prof_report::view::timeline::Timeline;
use prof_report::{
    CallTree, Filter, LoadOptions, Profile, Split, StackCopies, SymbolizedProfile, profile_of,
};
use prof_symbols::{SymbolOptions, Symbolizer};

/// Any bytes as a profile (perf.data, folded stacks, pprof, any of them gzipped): an error or a
/// profile that hangs together.
pub fn profile(bytes: &[u8]) {
    // Unwinding opens the files that a recording names.
    let Some(profile) = load(bytes, StackCopies::Ignore) else {
        return;
    };
    check(&profile);
    let samples = profile.samples.len();
    let twice = Profile::merged(vec![profile.clone(), profile]);
    assert_eq!(twice.samples.len(), 2 * samples);
}

/// Any bytes as a profile whose copies of stacks are unwound. Its files are opened where they are.
pub fn unwound(bytes: &[u8]) {
    if let Some(profile) = load(bytes, StackCopies::Check) {
        check(&profile);
    }
}

fn load(bytes: &[u8], stack_copies: StackCopies) -> Option<Profile> {
    let mut options = LoadOptions::default();
    options.stack_copies = stack_copies;
    profile_of(MappedFile::from(bytes.to_vec()), &options).ok()
}

fn check(profile: &Profile) {
    for sample in profile.samples.iter() {
        assert!(usize::from(sample.event) < profile.events.len());
        assert!(profile.stacks.frames(sample.stack).count() > 0);
    }
}

/// Any bytes as a profile that is written in every format.
pub fn formats(bytes: &[u8]) {
    let Some(mut profile) = load(bytes, StackCopies::Ignore) else {
        return;
    };
    profile.modules = nowhere(&profile.modules);
    let options = SymbolOptions {
        kallsyms: "/nowhere".into(),
        vmlinux: Vec::new(),
        debug_dirs: Vec::new(),
        jit_map_dir: "/nowhere".into(),
        ..SymbolOptions::default()
    };
    let profile = SymbolizedProfile::new(profile, &Symbolizer::new(options));
    let filter = Filter::default();
    json(|out| firefox::write(&profile, &filter, out));
    json(|out| speedscope::write(&profile, &filter, out));
    let mut out = io::sink();
    let _ = pprof::write(&profile, &filter, &mut out);
    let _ = script::write(&profile, &filter, &mut out);
    let _ = coverage::write(&profile.profile().quality, None, &mut out);
    let _ = failures::write(&Failures::new(&profile), None, &mut out);
    for split in [Split::Nothing, Split::Thread] {
        if let Ok(tree) = CallTree::new(&profile, &filter, split) {
            write_tree(&tree);
        }
        if let Ok(chart) = Chart::new(&profile, &filter, split, 0.0) {
            svg(|out| flamechart::write(&chart, &FlameOptions::default(), out));
        }
        if let Ok(spread) = Timeline::new(&profile, &filter, split, 20) {
            let _ = timeline::write(&spread, None, &mut out);
            svg(|out| timeline::write_svg(&spread, &SvgOptions::default(), out));
        }
    }
}

fn write_tree(tree: &CallTree<'_>) {
    let mut out = io::sink();
    let _ = folded::write(tree, &mut out);
    let _ = csv::write(tree, &Flat::new(&tree.inverted()), &mut out);
    let _ = tree::write(tree, &Outline::new(tree, 0.0), Some(80), &mut out);
    for view in [CallView::Calls, CallView::Callers, CallView::Callees] {
        json(|out| json::calls(tree, view, out));
    }
    for reversed in [false, true] {
        let options = FlameOptions {
            reversed,
            ..FlameOptions::default()
        };
        svg(|out| flamegraph::write(tree, &options, out));
    }
}

/// Checks that the output is JSON, if there is any.
fn json<E>(write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) {
    let mut out = Vec::new();
    if write(&mut out).is_ok() {
        let read = serde_json::from_slice::<serde::de::IgnoredAny>(&out);
        assert!(read.is_ok(), "{read:?}: {}", String::from_utf8_lossy(&out));
    }
}

/// Checks that the output is text.
fn svg<E>(write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) {
    let mut out = Vec::new();
    if write(&mut out).is_ok() {
        let text = std::str::from_utf8(&out).expect("UTF-8");
        let legal = |c: char| {
            !c.is_control() && !matches!(c, '\u{fffe}' | '\u{ffff}') || "\n\r\t".contains(c)
        };
        assert!(text.chars().all(legal), "{text:?}");
    }
}

/// The same modules with paths that do not exist, so that no files of this machine are read.
fn nowhere(modules: &Modules) -> Modules {
    let mut moved = Modules::default();
    for (_, module) in modules.iter() {
        let mut path = OsString::from("/nowhere/");
        path.push(&module.path);
        moved.intern(Module {
            path: Path::new(&path).into(),
            ..module.clone()
        });
    }
    moved
}
