//! Pairs of modules that are builds of the same program: `parser-old` and `parser-new`,
//! `libz.so.1.2` and `libz.so.1.3`. Their functions are compared with each other.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Key, Side};

type Functions<'a> = BTreeMap<&'a Arc<str>, BTreeSet<&'a str>>;

/// The functions of `before`, those of modules that only it has under the name of the module of
/// `after` that is another build of theirs.
pub(super) fn renamed(
    before: BTreeMap<Key, Side>,
    after: &BTreeMap<Key, Side>,
) -> BTreeMap<Key, Side> {
    let builds: BTreeMap<Arc<str>, Arc<str>> = pairs(&before, after).into_iter().collect();
    let rename = |((function, module), side): (Key, Side)| {
        let module = builds.get(&module).cloned().unwrap_or(module);
        ((function, module), side)
    };
    before.into_iter().map(rename).collect()
}

/// Modules of either side alone that are builds of one; each module at most once, those that have
/// most functions in common first.
fn pairs(before: &BTreeMap<Key, Side>, after: &BTreeMap<Key, Side>) -> Vec<(Arc<str>, Arc<str>)> {
    let (old, new) = (functions(before), functions(after));
    let mut candidates = Vec::new();
    for (&gone, old_names) in old.iter().filter(|(module, _)| !new.contains_key(*module)) {
        for (&came, new_names) in new.iter().filter(|(module, _)| !old.contains_key(*module)) {
            let common = old_names.intersection(new_names).count();
            // A common `main` does not make two builds of one program.
            let enough = 2 * common >= old_names.len().min(new_names.len()) && common > 0;
            if role(gone) == role(came) && enough {
                candidates.push((Reverse(common), gone, came));
            }
        }
    }
    candidates.sort();
    let mut builds: Vec<(Arc<str>, Arc<str>)> = Vec::new();
    for (_, gone, came) in candidates {
        let is_free = |(old, new): &(Arc<str>, Arc<str>)| old != gone && new != came;
        if builds.iter().all(is_free) {
            builds.push((gone.clone(), came.clone()));
        }
    }
    builds
}

/// The names of each module's functions, those without a name aside.
fn functions(sides: &BTreeMap<Key, Side>) -> Functions<'_> {
    let mut modules = Functions::new();
    for (function, module) in sides.keys() {
        // Functions without a module do not count, and `[kernel]` has one name.
        let is_named = !function.contains("+0x");
        if !module.is_empty() && !module.starts_with('[') && is_named {
            modules.entry(module).or_default().insert(function);
        }
    }
    modules
}

/// The role of a module, independent of its build: the name of a library without version and hash;
/// all programs have the same role.
fn role(module: &str) -> Option<&str> {
    let (stem, _) = module.split_once(".so")?;
    // `libc-2.31`, `librustc_driver-0f3a9c`
    let is_build = |build: &str| build.starts_with(|c: char| c.is_ascii_hexdigit());
    match stem.rsplit_once('-') {
        Some((name, build)) if is_build(build) => Some(name),
        _ => Some(stem),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sides of `module!function`.
    fn sides(functions: &[&str]) -> BTreeMap<Key, Side> {
        let key = |text: &&str| {
            let (module, function) = text.split_once('!').unwrap();
            (Arc::from(function), Arc::from(module))
        };
        let keys = functions.iter().map(key);
        keys.map(|key| (key, Side::default())).collect()
    }

    fn check(before: &[&str], after: &[&str], expected: &[(&str, &str)]) {
        let found = pairs(&sides(before), &sides(after));
        let found: Vec<_> = found.iter().map(|(old, new)| (&**old, &**new)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn two_builds_of_a_program() {
        let old = ["app-1!main", "app-1!work", "app-1!gone", "libc.so.6!free"];
        let new = ["app-2!main", "app-2!work", "libc.so.6!free"];
        check(&old, &new, &[("app-1", "app-2")]);
        // Any other module with a `main` is another program.
        let other = ["sh!main", "sh!parse", "sh!expand", "libc.so.6!free"];
        check(&old, &other, &[]);
        check(&old, &[&new[..], &other].concat(), &[("app-1", "app-2")]);
        check(&old, &old, &[]);
    }

    #[test]
    fn two_builds_of_a_library() {
        check(
            &["libz.so.1.2!inflate"],
            &["libz.so.1.3!inflate"],
            &[("libz.so.1.2", "libz.so.1.3")],
        );
        check(
            &["libc-2.31.so!free"],
            &["libc-2.36.so!free"],
            &[("libc-2.31.so", "libc-2.36.so")],
        );
        check(&["liba.so!free"], &["libb.so!free"], &[]);
        // Addresses are no names.
        check(
            &["liba.so.1!liba.so.1+0x10"],
            &["liba.so.2!liba.so.1+0x10"],
            &[],
        );
    }
}
