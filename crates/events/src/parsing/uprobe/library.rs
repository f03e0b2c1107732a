//! The file for a name: a path, a library or a program.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::symbol;
use crate::parsing::catalog::Catalog;
use crate::parsing::error::Problem;

impl Catalog {
    /// Those of these functions, by linker names, that the file has; none if there is no such file.
    /// The file is given as in `uprobe:FILE:FUNCTION`.
    pub(crate) fn functions_in(&self, file: &str, wanted: &HashSet<&str>) -> HashSet<String> {
        match find(self, file) {
            Ok(path) => symbol::functions_in(&path, wanted),
            Err(_) => HashSet::new(),
        }
    }
}

/// The file of that name. With a slash it is a path; without one it is searched as the dynamic
/// linker searches libraries, then as a shell searches programs.
pub(super) fn find(catalog: &Catalog, name: &str) -> Result<PathBuf, Problem> {
    let missing = |searched: &str| Problem::NoFile {
        name: name.to_owned(),
        searched: searched.to_owned(),
    };
    let path = if name.contains('/') {
        absolute(Path::new(name)).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => missing(""),
            _ => Problem::BadFile {
                path: name.to_owned(),
                reason: error.to_string(),
            },
        })?
    } else {
        library(catalog, name)
            .or_else(|| program(catalog, name))
            // Last, because a bare name rarely means a file in this folder.
            .or_else(|| absolute(Path::new(name)).ok())
            .ok_or_else(|| missing("the libraries of ld.so, $PATH and this folder"))?
    };
    let bad = |reason: &str| Problem::BadFile {
        path: path.display().to_string(),
        reason: reason.to_owned(),
    };
    match fs::metadata(&path) {
        Ok(metadata) if metadata.is_file() => Ok(path),
        Ok(metadata) if metadata.is_dir() => Err(bad("it is a directory")),
        Ok(_) => Err(bad("it is not a regular file")),
        Err(error) => Err(bad(&error.to_string())),
    }
}

/// The path that the file has everywhere: the kernel and we need not be in the same folder.
fn absolute(path: &Path) -> std::io::Result<PathBuf> {
    fs::canonicalize(path)
}

fn library(catalog: &Catalog, name: &str) -> Option<PathBuf> {
    let cache = fs::read(&catalog.library_cache).unwrap_or_default();
    let fits = |known: &str| fits(known, name);
    let cached = cached_libraries(&cache)
        .filter(|(known, _)| fits(known))
        .find_map(|(_, path)| absolute(Path::new(path)).ok());
    cached.or_else(|| {
        catalog.libraries.iter().find_map(|folder| {
            let mut names: Vec<String> = fs::read_dir(folder)
                .into_iter()
                .flatten()
                .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
                .filter(|known| fits(known))
                .collect();
            names.sort();
            absolute(&folder.join(names.first()?)).ok()
        })
    })
}

/// `libc`, `libc.so` and `libc.so.6` all mean libc.so.6.
fn fits(known: &str, name: &str) -> bool {
    let Some(rest) = known.strip_prefix(name) else {
        return false;
    };
    let is_version = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    match rest.strip_prefix(".so") {
        _ if rest.is_empty() => name.contains(".so"),
        Some(rest) => rest.is_empty() || rest.strip_prefix('.').is_some_and(is_version),
        None => name.contains(".so") && rest.strip_prefix('.').is_some_and(is_version),
    }
}

fn program(catalog: &Catalog, name: &str) -> Option<PathBuf> {
    let found = catalog.programs.iter().map(|folder| folder.join(name));
    found
        .filter(|path| path.is_file())
        .find_map(|path| absolute(&path).ok())
}

/// The ABI of our own kind of programs in the cache: `FLAG_X8664_LIB64`, `FLAG_AARCH64_LIB64`.
const OWN_ABI: usize = if cfg!(target_arch = "aarch64") {
    0x0a00
} else {
    0x0300
};

/// The names and paths of libraries of our own ABI in /etc/ld.so.cache, as glibc writes it since
/// 2.32 (elf/cache.c, sysdeps/generic/dl-cache.h); nothing if it is anything else.
///
/// ```text
///   0   "glibc-ld.so.cache1.1"
///   20  number of entries     24  bytes of strings     28..48  flags, extensions
///   48  entries of 24 bytes: flags, name, path (both from the start of the file), ...
/// ```
fn cached_libraries(cache: &[u8]) -> impl Iterator<Item = (&str, &str)> {
    const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
    const HEADER: usize = 48;
    const ENTRY: usize = 24;
    let count = match cache.starts_with(MAGIC) {
        true => word(cache, MAGIC.len()).unwrap_or(0),
        false => 0,
    };
    let entries = cache.get(HEADER..).unwrap_or_default().chunks_exact(ENTRY);
    entries.take(count).filter_map(move |entry| {
        const ABI: usize = 0xff00;
        let string = |at| string(cache, word(entry, at)?);
        let is_own = word(entry, 0)? & ABI == OWN_ABI;
        Some((string(4)?, string(8)?)).filter(|_| is_own)
    })
}

fn word(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
    Some(u32::from_ne_bytes(bytes) as usize)
}

fn string(bytes: &[u8], at: usize) -> Option<&str> {
    const LONGEST: usize = 4096;
    let rest = bytes.get(at..)?;
    let end = rest.iter().take(LONGEST).position(|&byte| byte == 0)?;
    std::str::from_utf8(rest.get(..end)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_by_short_names() {
        let check = |known: &str, name: &str, expected: bool| {
            assert_eq!(fits(known, name), expected, "{known} {name}");
        };
        check("libc.so.6", "libc", true);
        check("libc.so.6", "libc.so", true);
        check("libc.so.6", "libc.so.6", true);
        check("libc.so", "libc", true);
        check("libc.so.6", "lib", false);
        check("libc.so.6", "libc.so.", false);
        check("libcrypt.so.1", "libc", false);
        check("libc.a", "libc", false);
        check("libc.sorry", "libc", false);
        check("libstdc++.so.6.0.30", "libstdc++.so.6", true);
    }

    #[test]
    fn the_c_library_is_found_as_the_linker_finds_it() {
        let catalog = Catalog::system();
        let path = find(&catalog, "libc.so.6").unwrap();
        assert!(path.is_absolute());
        assert_eq!(find(&catalog, "libc"), Ok(path.clone()));
        let without_cache = Catalog {
            library_cache: "/nowhere".into(),
            ..catalog
        };
        assert_eq!(find(&without_cache, "libc.so.6"), Ok(path));
        assert!(find(&without_cache, "sh").is_ok());
    }

    #[test]
    fn libraries_of_other_abis_are_passed_over() {
        let mut cache = b"glibc-ld.so.cache1.1".to_vec();
        cache.resize(48, 0);
        cache[20] = 3;
        // i386 has no ABI flag; x32 has 0x0800.
        for (flags, name, path) in [(3, 120, 132), (0x0803, 120, 132), (OWN_ABI + 3, 120, 144)] {
            let fields = [flags, name, path, 0, 0, 0_usize];
            cache.extend(
                fields
                    .iter()
                    .flat_map(|&field| (field as u32).to_ne_bytes()),
            );
        }
        for text in ["libc.so.6", "/lib32/libc", "/lib64/libc"] {
            cache.extend(text.bytes().chain([0; 12]).take(12));
        }
        let found: Vec<_> = cached_libraries(&cache).collect();
        assert_eq!(found, [("libc.so.6", "/lib64/libc")]);
    }

    #[test]
    fn a_damaged_cache_holds_nothing() {
        let cache = fs::read("/etc/ld.so.cache").unwrap_or_default();
        let whole = cached_libraries(&cache).count();
        for end in (0..cache.len()).step_by(97) {
            assert!(cached_libraries(&cache[..end]).count() <= whole);
        }
        let mut wild = cache.clone();
        for byte in wild.iter_mut().skip(20) {
            *byte = 0xff;
        }
        assert_eq!(cached_libraries(&wild).count(), 0);
    }
}
