//! Linker names to names for people, each once.

mod dotnet;
mod javascript;
mod ocaml;
pub(crate) mod readable;
pub(crate) mod shorten;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::{self, Write};
use std::sync::Arc;

use gimli::{EndianSlice, RunTimeEndian};

use crate::demangling::dotnet::demangle_dotnet;
use crate::demangling::javascript::demangle_javascript;
use crate::demangling::ocaml::demangle_ocaml;
use crate::demangling::readable::readable;
use crate::options::Demangle;

/// Gives out one shared string for each name and each file.
pub(crate) struct SharedNames {
    demangle: Demangle,
    functions: HashMap<Vec<u8>, Arc<str>>,
    files: HashMap<String, Arc<str>>,
}

impl SharedNames {
    pub(crate) fn new(demangle: Demangle) -> Self {
        Self {
            demangle,
            functions: HashMap::new(),
            files: HashMap::new(),
        }
    }

    /// The name for people of the function that the linker calls `raw`.
    pub(crate) fn function(&mut self, raw: &[u8]) -> Arc<str> {
        if let Some(name) = self.functions.get(raw) {
            return Arc::clone(name);
        }
        let plain = String::from_utf8_lossy(raw);
        let name: Arc<str> = match self.demangle {
            Demangle::None => plain.into(),
            // Shortened at the end, wherever the name is from.
            Demangle::Full | Demangle::Short => demangle(&plain).into(),
        };
        self.functions.insert(raw.to_vec(), Arc::clone(&name));
        name
    }

    /// As [`function`](Self::function), for one whose own name in the debug info is known: where
    /// the linker's only says that it is some closure, that one says which kind.
    pub(crate) fn function_of_kind<'a>(
        &mut self,
        raw: &[u8],
        own: impl FnOnce() -> Option<EndianSlice<'a, RunTimeEndian>>,
    ) -> Arc<str> {
        if let Some(name) = self.functions.get(raw) {
            return Arc::clone(name);
        }
        let name = self.function(raw);
        let path = match name.rsplit_once("::") {
            Some((path, last)) if last.starts_with("{closure") => path,
            _ => return name,
        };
        let Some(own) = own().filter(|own| own.starts_with(b"{async")) else {
            return name;
        };
        let kind = String::from_utf8_lossy(own.slice());
        let name: Arc<str> = format!("{path}::{}", readable(&kind)).into();
        self.functions.insert(raw.to_vec(), Arc::clone(&name));
        name
    }

    /// The shared form of a file's path.
    pub(crate) fn file(&mut self, path: &str) -> Arc<str> {
        if let Some(file) = self.files.get(path) {
            return Arc::clone(file);
        }
        let file: Arc<str> = path.into();
        self.files.insert(path.to_owned(), Arc::clone(&file));
        file
    }
}

/// The name of the function that a compiler or linker made this part or variant of: GCC's `f.cold`
/// and `f.constprop.0`, LLVM's `f.llvm.1234` are all `f` to people.
fn without_clone(raw: &str) -> &str {
    const KINDS: [&str; 17] = [
        // GCC; LLVM has some of them, too.
        "cold",
        "part",
        "isra",
        "constprop",
        "lto_priv",
        "local",
        "localalias",
        // LLVM: ThinLTO, -funique-internal-linkage-names, basic block sections (Propeller), and
        // passes that change arguments.
        "llvm",
        "__uniq",
        "__part",
        "warm",
        "specialized",
        "argelim",
        "argprom",
        "retelim",
        // BOLT, and linkers that fold identical code.
        "org",
        "icf",
    ];
    let mut name = raw;
    while let Some((before, last)) = name.rsplit_once('.') {
        let is_number = !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit());
        let kind = match is_number {
            true => before.rsplit_once('.'),
            false => Some((before, last)),
        };
        match kind {
            Some((function, kind)) if KINDS.contains(&kind) && !function.is_empty() => {
                name = function;
            }
            _ => break,
        }
    }
    name
}

/// The public name of a function of glibc that debug info calls by its internal alias:
/// `__GI___libc_read` is `read`.
fn without_alias(raw: &str) -> &str {
    let Some(name) = raw.strip_prefix("__GI_") else {
        return raw;
    };
    let public = name
        .strip_prefix("__libc_")
        .or_else(|| name.strip_prefix("__"));
    public.filter(|public| !public.is_empty()).unwrap_or(name)
}

/// The name for people of the function that the linker calls `raw`: Rust (v0, and legacy without
/// its hash) and Itanium C++ names demangled and made [`readable`], methods of .NET without return
/// type and assemblies, functions of OCaml with their modules, others as they are; without the
/// suffixes and marks by which compilers distinguish parts and variants of a function.
///
/// ```
/// # use prof_symbols::demangle;
/// assert_eq!(demangle("_RNvCs1234_3app4main"), "app::main");
/// assert_eq!(demangle("_Z4sortPii.part.0"), "sort(int*, int)");
/// assert_eq!(demangle("main"), "main");
/// ```
pub fn demangle(raw: &str) -> Cow<'_, str> {
    let raw = without_alias(without_clone(raw));
    match demangle_rust(raw).or_else(|| demangle_cpp(raw)) {
        Some(name) => Cow::Owned(readable(&name).into_owned()),
        None => demangle_javascript(raw)
            .or_else(|| demangle_ocaml(raw))
            .or_else(|| demangle_dotnet(raw))
            .map_or(Cow::Borrowed(raw), Cow::Owned),
    }
}

fn demangle_rust(raw: &str) -> Option<String> {
    let name = rustc_demangle::try_demangle(raw).ok()?;
    let mut text = Bounded::default();
    write!(text, "{name:#}").ok()?;
    Some(text.0)
}

fn demangle_cpp(raw: &str) -> Option<String> {
    if !raw.starts_with("_Z") && !raw.starts_with("___Z") {
        return None;
    }
    let symbol = cpp_demangle::Symbol::new(raw).ok()?;
    let options = cpp_demangle::DemangleOptions::new();
    let mut text = Bounded::default();
    symbol.structured_demangle(&mut text, &options).ok()?;
    Some(text.0)
}

/// Text of a bounded length: a short mangled name can stand for gigabytes.
#[derive(Default)]
struct Bounded(String);

impl Bounded {
    /// In bytes; real names, even of template libraries, stay well below.
    const MOST: usize = 64 << 10;
}

impl fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > Self::MOST {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_variants_are_the_function() {
        let check = |raw: &str, expected: &str| assert_eq!(without_clone(raw), expected);
        check("f", "f");
        check("f.cold", "f");
        check("f.isra.0", "f");
        check("f.constprop.0.isra.12.cold", "f");
        check("_ZN1a1bE.llvm.123456", "_ZN1a1bE");
        check("_ZL1fv.__uniq.123456789.llvm.12.__part.4", "_ZL1fv");
        check("f.specialized.2.warm", "f");
        check("f.argelim.icf.0", "f");
        check("f.org.0", "f");
        check("__part.4", "__part.4");
        check("f.rs.0", "f.rs.0");
        check("main.main", "main.main");
        check(".cold", ".cold");
        check("f.0", "f.0");
        check("", "");
    }

    #[test]
    fn internal_aliases_of_glibc_are_the_function() {
        let check = |raw: &str, expected: &str| assert_eq!(demangle(raw), expected);
        check("__GI___libc_read", "read");
        check("__GI___poll", "poll");
        check("__GI__IO_fwrite", "_IO_fwrite");
        check("__GI_strlen", "strlen");
        check("__libc_read", "__libc_read");
    }

    #[test]
    fn every_mangling_has_its_plain_form() {
        let check = |raw: &str, expected: &str| assert_eq!(demangle(raw), expected);
        check("main", "main");
        check("", "");
        check(
            "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE",
            "core::fmt::Write::write_fmt",
        );
        check("_RNvCs1234_7mycrate3foo", "mycrate::foo");
        check(
            "_ZNSt6vectorIiSaIiEE9push_backERKi",
            "std::vector<int, std::allocator<int> >::push_back(int const&)",
        );
        check("_Z3foov.cold", "foo()");
        check(
            "_ZZ4mainENKUlvE_clEv",
            "main::{lambda()#1}::operator()() const",
        );
        check("_Znot_a_name", "_Znot_a_name");
    }
}
