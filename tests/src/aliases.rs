//! Aliases: names of the same function, any of which may be shown.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use object::{Object as _, ObjectSymbol as _, SymbolKind};

/// The aliases in the C library and its loader.
#[derive(Debug, Default)]
pub struct Aliases {
    representatives: BTreeMap<String, String>,
}

impl Aliases {
    /// The aliases in the C library and the loader of this test, which programs built by tests use
    /// as well, and in their debug files.
    ///
    /// # Panics
    /// If this process' mappings or those files cannot be read.
    pub fn of_the_c_library() -> Self {
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let paths = maps
            .lines()
            .filter_map(|line| line.split_whitespace().nth(5));
        let libraries: BTreeSet<_> = paths
            .filter(|path| path.contains("libc.so") || path.contains("/ld-linux"))
            .collect();
        let mut aliases = Self::default();
        for library in libraries {
            aliases.add_file(Path::new(library));
        }
        aliases
    }

    /// The one name that represents all aliases of `name`, without leading underscores and `__GI_`.
    pub fn representative(&self, name: impl AsRef<str>) -> String {
        let name = plain(name.as_ref());
        let representative = self.representatives.get(name);
        representative.map_or(name, String::as_str).to_owned()
    }

    fn add_file(&mut self, path: &Path) {
        let bytes = fs::read(path).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let mut by_address: BTreeMap<u64, BTreeSet<String>> = BTreeMap::new();
        collect(&file, &mut by_address);
        if let Some(bytes) = debug_file(&file).and_then(|path| fs::read(path).ok()) {
            collect(&object::File::parse(&*bytes).unwrap(), &mut by_address);
        }
        for names in by_address.into_values().filter(|names| names.len() > 1) {
            self.join(names);
        }
    }

    /// Joins `names` with their known aliases.
    fn join(&mut self, mut names: BTreeSet<String>) {
        let known = names
            .iter()
            .filter_map(|name| self.representatives.get(name));
        let known: BTreeSet<String> = known.cloned().collect();
        let same = self.representatives.iter();
        let same = same.filter(|(_, representative)| known.contains(*representative));
        names.extend(same.map(|(name, _)| name.clone()).collect::<Vec<_>>());
        let Some(representative) = names.first().cloned() else {
            return;
        };
        for name in names {
            self.representatives.insert(name, representative.clone());
        }
    }
}

fn collect(file: &object::File<'_>, by_address: &mut BTreeMap<u64, BTreeSet<String>>) {
    for symbol in file.dynamic_symbols().chain(file.symbols()) {
        let is_code = matches!(symbol.kind(), SymbolKind::Text) || is_indirect(&symbol);
        if let (true, true, Ok(name)) = (is_code, symbol.is_definition(), symbol.name()) {
            let names = by_address.entry(symbol.address()).or_default();
            names.insert(plain(name).to_owned());
        }
    }
}

/// Whether the loader calls the function to select an implementation (STT_GNU_IFUNC).
fn is_indirect(symbol: &object::Symbol<'_, '_>) -> bool {
    matches!(symbol.flags(), object::SymbolFlags::Elf { st_info, .. } if st_info.0 & 0xf == 10)
}

fn plain(name: &str) -> &str {
    let name = name.split('@').next().unwrap_or(name);
    name.trim_start_matches("__GI_").trim_start_matches('_')
}

/// The path of a file's debug information in Debian's packages.
fn debug_file(file: &object::File<'_>) -> Option<PathBuf> {
    let id = file.build_id().ok()??;
    let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let (folder, rest) = hex.split_at_checked(2)?;
    Some(format!("/usr/lib/debug/.build-id/{folder}/{rest}.debug").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_function_have_one_representative() {
        let aliases = Aliases::of_the_c_library();
        let fork = aliases.representative("fork");
        assert_eq!(aliases.representative("__libc_fork"), fork);
        assert_eq!(aliases.representative("__fork@@GLIBC_2.2.5"), fork);
        assert_ne!(aliases.representative("malloc"), fork);
        assert_eq!(aliases.representative("main"), "main");
    }

    #[test]
    fn different_functions_are_not_joined() {
        let aliases = Aliases::of_the_c_library();
        let groups: BTreeSet<_> = aliases.representatives.values().collect();
        // Some hundred without the debug symbols of the C library, thousands with them.
        assert!(groups.len() > 100, "only {} functions", groups.len());
    }
}
