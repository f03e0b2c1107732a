//! Hues of shared libraries.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use crate::symbolize::SymbolizedProfile;

use super::hash;

/// Cool colours, as those of programs and of the kernel are warm: red, green and blue of the
/// darkest shade. The first one is the C library's.
const DARKEST: [[u8; 3]; 7] = [
    [100, 150, 215],
    [65, 170, 160],
    [160, 125, 215],
    [205, 115, 190],
    [80, 185, 210],
    [125, 135, 225],
    [140, 165, 185],
];

/// The darkest shade of a hue, and how much is added to it at most.
pub(super) fn range(hue: u8) -> ([u8; 3], [u8; 3]) {
    (DARKEST[usize::from(hue) % DARKEST.len()], [30, 30, 25])
}

/// The hue of each shared library of a profile.
///
/// A library's hue follows from its name, so that it looks the same in most graphs. If a heavier
/// one has that hue already, the library gets the next free one.
#[derive(Default)]
pub(super) struct Libraries<'p> {
    hues: FxHashMap<&'p str, u8>,
}

impl<'p> Libraries<'p> {
    pub(super) fn of(symbolized: &'p SymbolizedProfile) -> Self {
        let mut weights: FxHashMap<&str, u64> = FxHashMap::default();
        for function in symbolized.functions() {
            if is_library(&function.module) {
                weights.insert(&function.module, 0);
            }
        }
        let profile = symbolized.profile();
        for sample in profile.samples.iter() {
            let innermost = &symbolized.locations(profile.stacks.frame(sample.stack))[0];
            let module = &*symbolized[innermost.function].module;
            if let Some(weight) = weights.get_mut(module) {
                *weight += sample.count;
            }
        }
        let mut libraries: Vec<(&str, u64)> = weights.into_iter().collect();
        libraries.sort_unstable_by_key(|&(name, weight)| (Reverse(weight), name));
        let mut taken = [false; DARKEST.len()];
        let mut hues = FxHashMap::default();
        for (name, _) in libraries {
            let hue = match is_c_library(name) {
                true => 0,
                false => free(name, &taken),
            };
            taken[hue] = true;
            hues.insert(name, hue as u8);
        }
        Self { hues }
    }

    pub(super) fn hue(&self, module: &str) -> Option<u8> {
        self.hues.get(module).copied()
    }
}

/// The hue of a library other than the C library: its own one, or the next free one.
fn free(name: &str, taken: &[bool; DARKEST.len()]) -> usize {
    let others = DARKEST.len() - 1;
    let own = usize::from(hash(name)) % others;
    let mut hues = (0..others).map(|step| 1 + (own + step) % others);
    hues.find(|&hue| !taken[hue]).unwrap_or(1 + own)
}

fn is_library(module: &str) -> bool {
    module.contains(".so") || module == "[vdso]"
}

/// The C library and its parts.
fn is_c_library(module: &str) -> bool {
    let starts = ["libc.", "libc-", "ld-", "libm.", "libpthread", "[vdso]"];
    starts.iter().any(|start| module.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestProfile;

    #[test]
    fn libraries_of_one_graph_have_different_hues() {
        let names: Vec<String> = (1..7).map(|n| format!("lib{n}.so")).collect();
        let lines = names.iter().map(|name| format!("t main;{name}!f 1"));
        let lines: Vec<String> = lines.chain(["t main;libc.so.6!f 1".into()]).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let symbolized = TestProfile::of(&lines);
        let libraries = Libraries::of(&symbolized);
        let mut hues: Vec<u8> = names.iter().flat_map(|name| libraries.hue(name)).collect();
        hues.sort_unstable();
        assert_eq!(hues, [1, 2, 3, 4, 5, 6]);
        assert_eq!(libraries.hue("libc.so.6"), Some(0));
        assert_eq!(libraries.hue("demo"), None);
    }
}
