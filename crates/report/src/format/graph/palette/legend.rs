//! The meaning of the colours of a picture.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use inferno::flamegraph::color::Color;
use rustc_hash::FxHashMap;

use crate::symbolize::{FunctionId, Language};

use super::{CallStyle, Hue, Palette, PaletteBy, of_module};

/// A colour and its meaning.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::format) struct Entry {
    /// The middle of its shades.
    pub(in crate::format) color: Color,
    /// The meaning of the colour.
    pub(in crate::format) text: String,
}

/// Collects the functions in a picture.
pub(in crate::format) struct Legend<'a, 'p> {
    palette: &'a Palette<'p>,
    hues: BTreeMap<Group<'p>, FxHashMap<&'p str, u64>>,
    style: CallStyle,
}

/// An entry of the legend.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Group<'p> {
    Module(&'p str),
    Hue(Hue),
}

impl<'a, 'p> Legend<'a, 'p> {
    pub(in crate::format) fn new(palette: &'a Palette<'p>) -> Self {
        Self {
            palette,
            hues: BTreeMap::new(),
            style: CallStyle::default(),
        }
    }

    /// Adds a frame of this function; `own` is its self weight.
    pub(in crate::format) fn add(&mut self, id: FunctionId, style: CallStyle, own: u64) {
        let group = match self.palette.module_hue(id) {
            Some(module) => Group::Module(module),
            None => Group::Hue(self.palette.hue(id)),
        };
        let symbolized = self.palette.symbolized;
        let modules = self.hues.entry(group).or_default();
        *modules.entry(&symbolized[id].module).or_default() += own;
        self.style.inlined |= style.inlined;
        self.style.remote_read |= style.remote_read;
    }

    /// The entries: kinds of code in their order, libraries and modules by weight; then marks.
    pub(in crate::format) fn entries(&self) -> Vec<Entry> {
        const MOST: usize = 16;
        let mut groups: Vec<(&Group<'p>, &FxHashMap<&str, u64>)> = self.hues.iter().collect();
        groups.sort_by_key(|(group, modules)| {
            let weight = Reverse(modules.values().sum::<u64>());
            match group {
                Group::Module(_) => (Hue::Language(Language::C), weight),
                Group::Hue(Hue::Library(_)) => (Hue::Library(0), weight),
                Group::Hue(hue) => (*hue, weight),
            }
        });
        let left_out = groups.len().saturating_sub(MOST);
        let mut entries: Vec<Entry> = groups
            .into_iter()
            .take(MOST)
            .map(|(&group, modules)| Entry {
                color: middle(group),
                text: self.text(group, modules),
            })
            .collect();
        if left_out > 0 {
            entries.push(Entry {
                color: middle(Group::Hue(Hue::Missing)),
                text: format!("{left_out} more"),
            });
        }
        let marks = [
            (self.style.inlined, "pale: inlined", true),
            (self.style.remote_read, "dull italics: read later", false),
        ];
        for (_, text, inlined) in marks.into_iter().filter(|(is_there, ..)| *is_there) {
            let style = CallStyle {
                inlined,
                remote_read: !inlined,
            };
            entries.push(Entry {
                color: style.seen_in(middle(Group::Hue(Hue::Language(Language::C)))),
                text: text.into(),
            });
        }
        entries
    }

    fn text(&self, group: Group<'p>, modules: &FxHashMap<&str, u64>) -> String {
        let hue = match group {
            Group::Module("") => return "no module".into(),
            Group::Module(module) => return module.into(),
            Group::Hue(hue) => hue,
        };
        let language = match hue {
            Hue::Language(Language::C) => "C and others",
            Hue::Language(language) => language.name(),
            Hue::Library(_) => "",
            Hue::Jit => return "run-time code".into(),
            Hue::Kernel => return "kernel".into(),
            Hue::State => return "on and off CPU".into(),
            Hue::Unnamed => return "no name".into(),
            Hue::Missing => return "missing".into(),
            Hue::Part => return "thread".into(),
        };
        if self.palette.by == PaletteBy::Language {
            return language.into();
        }
        match (heaviest(modules), hue) {
            (modules, _) if modules.is_empty() => language.into(),
            (modules, Hue::Language(Language::Cpp | Language::Rust | Language::Go)) => {
                format!("{modules} ({language})")
            }
            (modules, Hue::Language(Language::C) | Hue::Library(_)) => modules,
            // Run-time and interpreted code has no modules.
            _ => language.into(),
        }
    }
}

/// The names of the two heaviest, and the number of others.
fn heaviest(modules: &FxHashMap<&str, u64>) -> String {
    const SHOWN: usize = 2;
    /// Bytes of both together.
    const LONGEST: usize = 40;
    let mut names: Vec<(&str, u64)> = modules.iter().map(|(name, own)| (*name, *own)).collect();
    names.retain(|(name, _)| !name.is_empty());
    names.sort_unstable_by_key(|&(name, own)| (Reverse(own), name));
    let mut shown: Vec<&str> = names.iter().map(|(name, _)| short(name)).collect();
    // Builds of one library are one name.
    shown.dedup();
    let all = shown.len();
    shown.truncate(SHOWN);
    if shown.concat().len() > LONGEST {
        shown.truncate(1);
    }
    match all.saturating_sub(shown.len()) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// A library's name without what packages add: `libgomp` for `libgomp-e985bcbb.so.1.0.0`, `_core`
/// for `_core.cpython-311-x86_64-linux-gnu.so`.
fn short(module: &str) -> &str {
    const HASH: usize = 8;
    let Some((stem, _)) = module.split_once(".so") else {
        return module;
    };
    if let Some((name, _)) = stem.split_once(".cpython-") {
        return name;
    }
    let is_hash = |it: &str| it.len() == HASH && it.bytes().all(|it| it.is_ascii_hexdigit());
    match stem.rsplit_once('-') {
        Some((name, hash)) if is_hash(hash) => name,
        _ => module,
    }
}

/// The colour in the legend for all shades.
fn middle(group: Group<'_>) -> Color {
    // A name whose shade happens to be in the middle.
    const MIDDLE: &str = "middle";
    match group {
        Group::Module(module) => of_module(module, MIDDLE),
        Group::Hue(hue) => hue.shade(MIDDLE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_libraries_are_short() {
        let check = |module: &str, expected: &str| assert_eq!(short(module), expected);
        check("libgomp-e985bcbb.so.1.0.0", "libgomp");
        check("_core.cpython-311-x86_64-linux-gnu.so", "_core");
        check("libc.so.6", "libc.so.6");
        check("libfoo-internal.so.2", "libfoo-internal.so.2");
        check("bash", "bash");
        let modules = |names: &[&'static str]| names.iter().map(|it| (*it, 1)).collect();
        let check = |names: &[&'static str], expected: &str| {
            assert_eq!(heaviest(&modules(names)), expected);
        };
        check(
            &["libgomp-e985bcbb.so.1.0.0", "libm.so.6"],
            "libgomp, libm.so.6",
        );
        let long = "libscipy_openblas_of_a_very_long_name.so";
        check(
            &[long, "libz.so.1", "libzstd.so.1"],
            &format!("{long} and 2 more"),
        );
    }
}
