//! The functions that allocate memory, and which argument says how much.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::parsing::{Catalog, EventSpec, ParseError};
use crate::rate::Rate;
use crate::request::event::SizeArguments::{self, Again, Mapping, One, Product};
use crate::request::event::{AllocationWeight, CallGraph, EventRequest, Weight};

/// The allocator of the C library, or its replacement.
const MALLOC: [(&str, SizeArguments); 9] = [
    ("malloc", One(0)),
    ("calloc", Product),
    ("realloc", Again),
    ("posix_memalign", One(2)),
    ("aligned_alloc", One(1)),
    ("memalign", One(1)),
    ("valloc", One(0)),
    ("pvalloc", One(0)),
    ("mmap", Mapping),
];

/// jemalloc, whose functions have a prefix where it does not replace `malloc`.
const JEMALLOC: [(&str, SizeArguments); 7] = [
    ("malloc", One(0)),
    ("calloc", Product),
    ("realloc", One(1)),
    ("posix_memalign", One(2)),
    ("aligned_alloc", One(1)),
    ("mallocx", One(0)),
    ("rallocx", One(1)),
];
const JEMALLOC_PREFIXES: [&str; 3] = ["_rjem_", "_rjem_je_", "je_"];

/// mimalloc, as programs call it that know of it.
const MIMALLOC: [(&str, SizeArguments); 8] = [
    ("mi_malloc", One(0)),
    ("mi_zalloc", One(0)),
    ("mi_calloc", Product),
    ("mi_realloc", One(1)),
    ("mi_malloc_aligned", One(0)),
    ("mi_zalloc_aligned", One(0)),
    ("mi_realloc_aligned", One(1)),
    ("mi_aligned_alloc", One(1)),
];

/// Rust's global allocator. It calls one of the others, so it counts only if there is none.
const RUST: [(&str, SizeArguments); 3] = [
    ("__rust_alloc", One(0)),
    ("__rust_alloc_zeroed", One(0)),
    ("__rust_realloc", One(3)),
];

/// Libraries that may be mapped in place of the C library's allocator, or beside it.
const LIBRARIES: [&str; 6] = [
    "libc.so.6",
    "libjemalloc.so.2",
    "libtcmalloc.so.4",
    "libtcmalloc_minimal.so.4",
    "libmimalloc.so.2",
    "libmimalloc.so",
];

/// A probe on each function that allocates memory, in these programs and in the libraries of this
/// machine; each `every`th call is sampled.
///
/// # Errors
///
/// When there is nothing to probe: the problem with the C library's `malloc`.
pub fn allocations(
    catalog: &Catalog,
    programs: &[PathBuf],
    weight: AllocationWeight,
    every: u64,
    call_graph: CallGraph,
) -> Result<Vec<EventRequest>, ParseError> {
    let mut probes = Probes {
        catalog,
        weight,
        found: Vec::new(),
        places: HashSet::new(),
    };
    for library in LIBRARIES {
        probes.allocator(library, library);
    }
    for program in programs {
        if let (Some(path), Some(program)) = (program.to_str(), quoted(program)) {
            probes.allocator(path, &program);
            // A program that is linked to no allocator that we know.
            if probes.found.is_empty() {
                RUST.iter()
                    .for_each(|(name, size)| probes.function(&program, name, *size));
            }
        }
    }
    if probes.found.is_empty() {
        catalog.parse("uprobe:libc.so.6:malloc")?;
    }
    let request = |(spec, size)| EventRequest {
        weight: Weight::Allocation { size, by: weight },
        ..EventRequest::named(spec, Some(Rate::Period(every)), call_graph)
    };
    Ok(probes.found.into_iter().map(request).collect())
}

struct Probes<'a> {
    catalog: &'a Catalog,
    weight: AllocationWeight,
    found: Vec<(EventSpec, SizeArguments)>,
    /// File and offset of each: some functions have several names.
    places: HashSet<(Option<std::ffi::CString>, u64)>,
}

impl Probes<'_> {
    /// Adds the functions of the file that allocate; `typed` is its path as event names hold it.
    fn allocator(&mut self, path: &str, typed: &str) {
        let plain = MALLOC.iter().chain(&MIMALLOC);
        let plain = plain.map(|&(name, size)| (name.to_owned(), size));
        let prefixed = JEMALLOC_PREFIXES.iter().flat_map(|prefix| {
            let names = JEMALLOC.iter();
            names.map(move |&(name, size)| (format!("{prefix}{name}"), size))
        });
        let functions: Vec<_> = plain.chain(prefixed).collect();
        // Once through the symbols for all, because programs have many.
        let wanted = functions.iter().map(|(name, _)| name.as_str()).collect();
        let present = self.catalog.functions_in(path, &wanted);
        for (name, size) in functions.iter().filter(|(name, _)| present.contains(name)) {
            self.function(typed, name, *size);
        }
    }

    /// Adds a function if the file has it.
    fn function(&mut self, file: &str, name: &str, size: SizeArguments) {
        let event = self.weight.event_name();
        let text = format!("uprobe:{file}:{name}/name={event}/u");
        let parsed = self.catalog.parse(&text).into_iter().flatten();
        for spec in parsed.flat_map(|group| group.events) {
            let place = (spec.encoding.path.clone(), spec.encoding.config2);
            if self.places.insert(place) {
                self.found.push((spec, size));
            }
        }
    }
}

/// The path as event names hold it; `None` if they cannot.
fn quoted(path: &Path) -> Option<String> {
    let path = path.to_str()?;
    ['\'', '"']
        .iter()
        .find(|&&quote| !path.contains(quote))
        .map(|quote| format!("{quote}{path}{quote}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_function_is_probed_once() {
        let catalog = Catalog::system();
        let weight = AllocationWeight::Bytes { every: 1 };
        let Ok(found) = allocations(&catalog, &[], weight, 1, CallGraph::None) else {
            // Without uprobes in the kernel.
            return;
        };
        let at = |name: &str| {
            let groups = catalog.parse(&format!("uprobe:libc.so.6:{name}"));
            groups
                .expect("a function")
                .remove(0)
                .events
                .remove(0)
                .encoding
                .config2
        };
        let sizes = |name: &str| {
            let events = found
                .iter()
                .filter(|event| event.spec.encoding.config2 == at(name));
            events.map(|event| event.weight).collect::<Vec<_>>()
        };
        let bytes = |size| vec![Weight::Allocation { size, by: weight }];
        assert_eq!(sizes("malloc"), bytes(One(0)));
        assert_eq!(sizes("calloc"), bytes(Product));
        assert_eq!(sizes("realloc"), bytes(Again));
        assert_eq!(sizes("posix_memalign"), bytes(One(2)));
        assert_eq!(sizes("aligned_alloc"), bytes(One(1)));
        assert_eq!(sizes("mmap"), bytes(Mapping));
        assert!(found.iter().all(|event| event.spec.name == "alloc-bytes"));
    }

    #[test]
    fn paths_are_quoted() {
        let check = |path: &str, expected: Option<&str>| {
            assert_eq!(quoted(Path::new(path)).as_deref(), expected);
        };
        check("/a:b,c", Some("'/a:b,c'"));
        check("/it's", Some("\"/it's\""));
        check("/it's \"", None);
    }
}
