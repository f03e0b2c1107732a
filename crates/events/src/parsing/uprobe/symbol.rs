//! The place of a function in a file.

use std::collections::{BTreeMap, HashSet};
use std::fmt::{self, Write};
use std::path::Path;

use object::{
    Object, ObjectSegment, ObjectSymbol, ReadCache, SegmentFlags, SymbolFlags, SymbolKind,
};
use prof_filemap::foreign;
use prof_model::similar;

use super::window::Window;
use crate::parsing::error::Problem;
use crate::parsing::terms::parse_number;

/// The offset in the file of a function, or of an address as the file's symbol table counts it
/// (`0x...`), plus an offset.
pub(super) fn file_offset(path: &Path, symbol: &str, offset: u64) -> Result<u64, Problem> {
    let shown = path.display().to_string();
    let bad = |reason: String| Problem::BadFile {
        path: shown.clone(),
        reason,
    };
    let file = foreign::open(path).map_err(|error| match error {
        prof_filemap::Error::Io { source, .. } => bad(source.to_string()),
        _ => bad("it is not a regular file".into()),
    })?;
    let cache = ReadCache::new(Window::new(file));
    let elf = object::File::parse(&cache)
        .map_err(|_| bad("it is not an ELF file and has no functions to probe".into()))?;
    let address = match parse_number(symbol).filter(|_| symbol.starts_with("0x")) {
        Some(address) => address,
        None => Functions {
            elf: &elf,
            path: &shown,
        }
        .find(symbol, offset)?,
    };
    let address = address.saturating_add(offset);
    to_file(&elf, address).ok_or(Problem::OutsideCode {
        path: shown,
        address,
    })
}

/// Those of these functions, by linker names, that the file has; none if it cannot be read.
pub(super) fn functions_in(path: &Path, wanted: &HashSet<&str>) -> HashSet<String> {
    let mut found = HashSet::new();
    let Ok(file) = foreign::open(path) else {
        return found;
    };
    let cache = ReadCache::new(Window::new(file));
    let Ok(elf) = object::File::parse(&cache) else {
        return found;
    };
    for symbol in elf.symbols().chain(elf.dynamic_symbols()) {
        if let Ok(name) = symbol.name()
            && wanted.contains(bare(name))
            && why_not(&symbol).is_none()
        {
            found.insert(bare(name).to_owned());
        }
    }
    found
}

type Elf<'data> = object::File<'data, &'data ReadCache<Window>>;

/// The file offset of an address in the code.
fn to_file(elf: &Elf<'_>, address: u64) -> Option<u64> {
    elf.segments().find_map(|segment| {
        let SegmentFlags::Elf { p_flags, .. } = segment.flags() else {
            return None;
        };
        let (start, length) = segment.file_range();
        let within = address.checked_sub(segment.address())?;
        let is_code = p_flags.contains(object::elf::PF_X);
        (is_code && within < length).then(|| start.saturating_add(within))
    })
}

struct Functions<'a, 'data> {
    elf: &'a Elf<'data>,
    path: &'a str,
}

/// A function in a symbol table.
#[derive(Clone, Debug)]
struct Function {
    name: String,
    size: u64,
}

impl Functions<'_, '_> {
    /// The address of the function of that name: as the linker knows it, else as people write it,
    /// else by the end of its path, such as `work` for `program::work`.
    fn find(&self, symbol: &str, offset: u64) -> Result<u64, Problem> {
        let mut found = self.named(|name| bare(name) == symbol || name == symbol)?;
        if found.is_empty() {
            found = self.named(|name| demangled(name).iter().any(|name| name == symbol))?;
        }
        if found.is_empty() {
            let end = format!("::{symbol}");
            found = self.named(|name| demangled(name).iter().any(|name| name.ends_with(&end)))?;
        }
        let mut functions = found.iter();
        match (functions.next(), functions.next()) {
            (Some((address, function)), None) => {
                if function.size > 0 && offset >= function.size {
                    return Err(Problem::OffsetBeyondFunction {
                        symbol: symbol.to_owned(),
                        size: function.size,
                        offset,
                    });
                }
                Ok(*address)
            }
            (Some(_), Some(_)) => Err(self.ambiguous(symbol, &found)),
            (None, _) => Err(self.unknown(symbol)),
        }
    }

    /// The functions that fit, by address.
    ///
    /// # Errors
    ///
    /// A symbol matches, but is not a function.
    fn named(&self, fits: impl Fn(&str) -> bool) -> Result<BTreeMap<u64, Function>, Problem> {
        let mut functions = BTreeMap::new();
        let mut refused = None;
        for symbol in self.elf.symbols().chain(self.elf.dynamic_symbols()) {
            let Ok(name) = symbol.name() else { continue };
            if !fits(name) {
                continue;
            }
            match why_not(&symbol) {
                None => {
                    let function = Function {
                        name: name.to_owned(),
                        size: symbol.size(),
                    };
                    functions.entry(symbol.address()).or_insert(function);
                }
                Some(why) => {
                    refused = Some(Problem::NotProbeable {
                        symbol: bare(name).to_owned(),
                        why: why.into(),
                    })
                }
            }
        }
        match refused {
            Some(problem) if functions.is_empty() => Err(problem),
            _ => Ok(functions),
        }
    }

    fn ambiguous(&self, symbol: &str, found: &BTreeMap<u64, Function>) -> Problem {
        const SHOWN: usize = 3;
        let readable = |name: &str| {
            demangled(name)
                .into_iter()
                .next()
                .unwrap_or_else(|| name.to_owned())
        };
        let mut names: Vec<String> = found
            .values()
            .map(|function| readable(&function.name))
            .collect();
        names.sort();
        names.dedup();
        // Functions of one name can only be distinguished by their addresses.
        let examples = match names.len() == found.len() {
            true => names.into_iter().take(SHOWN).collect(),
            false => found
                .keys()
                .take(SHOWN)
                .map(|address| format!("{address:#x}"))
                .collect(),
        };
        let (path, symbol) = (self.path.to_owned(), symbol.to_owned());
        Problem::AmbiguousSymbol {
            path,
            symbol,
            count: found.len(),
            examples,
        }
    }

    fn unknown(&self, symbol: &str) -> Problem {
        let mut names = Vec::new();
        for known in self.elf.symbols().chain(self.elf.dynamic_symbols()) {
            if why_not(&known).is_none()
                && let Ok(name) = known.name()
            {
                match demangled(name) {
                    none if none.is_empty() => names.push(bare(name).to_owned()),
                    readable => names.extend(readable),
                }
            }
        }
        Problem::UnknownSymbol {
            path: self.path.to_owned(),
            symbol: symbol.to_owned(),
            nearest: similar(symbol, names.iter().map(String::as_str)),
            stripped: self.elf.symbols().next().is_none(),
        }
    }
}

/// Why a symbol cannot be probed; `None` if it can.
fn why_not<'data>(symbol: &impl ObjectSymbol<'data>) -> Option<&'static str> {
    let SymbolFlags::Elf { st_info, .. } = symbol.flags() else {
        return Some("is not an ELF symbol");
    };
    match st_info.st_type() {
        _ if symbol.is_undefined() => {
            Some("is not in this file, but in a library that it uses: probe it there")
        }
        object::elf::STT_GNU_IFUNC => Some(
            "is an IFUNC, which stands for several functions: probe the one that this CPU uses, \
             such as its _avx2 variant, or a function that calls it",
        ),
        _ if symbol.kind() == SymbolKind::Text => None,
        // Hand-written assembly often says no more than that there is a label.
        object::elf::STT_NOTYPE => None,
        _ => Some("is data, not a function"),
    }
}

/// Without the version: `memcpy@@GLIBC_2.14`.
fn bare(name: &str) -> &str {
    name.split('@').next().unwrap_or(name)
}

/// The demangled names of the function; empty if the linker's name is the only one. C++ functions
/// go with and without their parameters.
fn demangled(name: &str) -> Vec<String> {
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return bounded(|text| write!(text, "{rust:#}"))
            .into_iter()
            .collect();
    }
    if !name.starts_with("_Z") {
        return Vec::new();
    }
    let Ok(symbol) = cpp_demangle::Symbol::new(bare(name)) else {
        return Vec::new();
    };
    let options = cpp_demangle::DemangleOptions::new;
    let forms = [options(), options().no_params().no_return_type()];
    let mut names: Vec<String> = forms
        .iter()
        .filter_map(|form| bounded(|text| symbol.structured_demangle(text, form)))
        .collect();
    names.dedup();
    names
}

/// Text of a bounded length: a short mangled name can expand to gigabytes.
#[derive(Default)]
struct Bounded(String);

impl fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        const LONGEST: usize = 16 << 10;
        if self.0.len() + text.len() > LONGEST {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

fn bounded(write: impl FnOnce(&mut Bounded) -> fmt::Result) -> Option<String> {
    let mut text = Bounded::default();
    write(&mut text).ok()?;
    Some(text.0)
}
