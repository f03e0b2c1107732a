//! Functions by address, from ELF symbol tables, and from those of .NET's libraries and of Go.
//!
//! ```text
//!   sized      ├── outer ──────────────┤     ├─ f ─┤      a sized function covers its bytes;
//!                    ├─ inner ─┤                           the one that starts last wins
//!   unsized                               g ───▶|          an unsized one (assembly) goes on to
//!                                                          the end of its code, at most to the
//!                                                          next symbol or its section's end
//! ```
//! Of several names for one address the same is always chosen: a sized one over one without a
//! size, global over local over weak, fewer leading underscores, the shorter, the alphabetically
//! first.

mod dynamic;
mod ends;
pub(crate) mod fde;
mod go;
mod neighbours;
mod plt;
mod ready_to_run;
mod symbol;

use std::cmp::Reverse;
use std::ops::Range;

use object::{Object, ObjectSection, ObjectSymbol, SectionFlags, SymbolKind, elf};

use crate::image::Image;
use crate::table::ends::CodeEnds;
use crate::table::neighbours::Neighbours;
use crate::table::symbol::Symbol;

/// Functions by address.
#[derive(Default)]
pub(crate) struct SymbolTable<'data> {
    /// By address; one for each address.
    symbols: Vec<Symbol<'data>>,
    /// For each symbol, the highest end of it and all before it.
    reach: Vec<u64>,
}

impl<'data> SymbolTable<'data> {
    /// The functions of all symbol tables of these files that tell where the `addresses`, which are
    /// in order, lie. The first file is the one that ran.
    pub(crate) fn of_images<'a>(
        images: impl Iterator<Item = &'a Image<'data>> + Clone,
        addresses: &[u64],
    ) -> Self
    where
        'data: 'a,
    {
        let code = images.clone().next().map(CodeEnds::of);
        let mut near = Neighbours::new(addresses);
        for image in images.clone() {
            let sections = CodeSections::of(image);
            for symbol in symbols(image) {
                if sections.end_for(&symbol).is_some() {
                    near.note(range(&symbol), || name(&symbol).is_some());
                }
            }
        }
        near.spread();
        let of_image = |image| {
            functions(image, &near, code.as_ref())
                .chain(dynamic::functions(image))
                .chain(plt::stubs(image, addresses))
                .chain(ready_to_run::methods(image, addresses))
                .chain(go::functions(image, addresses))
        };
        Self::new(images.flat_map(of_image).collect())
    }

    /// A table of these symbols, in any order.
    pub(crate) fn new(mut symbols: Vec<Symbol<'data>>) -> Self {
        symbols.sort_unstable_by(|a, b| (a.start, preference(a)).cmp(&(b.start, preference(b))));
        symbols.dedup_by_key(|symbol| symbol.start);
        let reach = symbols
            .iter()
            .scan(0, |reach, symbol| {
                *reach = symbol.end.max(*reach);
                Some(*reach)
            })
            .collect();
        Self { symbols, reach }
    }

    /// The function that `address` lies in.
    pub(crate) fn find(&self, address: u64) -> Option<&Symbol<'data>> {
        let after = self.symbols.partition_point(|s| s.start <= address);
        let before = self.symbols.get(..after)?;
        self.sized(before, address).or_else(|| {
            let last = before.last()?;
            let next = self.symbols.get(after).map_or(u64::MAX, |s| s.start);
            (last.end == last.start && address < last.limit.min(next)).then_some(last)
        })
    }

    /// The bounds of the function that `address` lies in.
    pub(crate) fn range(&self, address: u64) -> Option<Range<u64>> {
        let symbol = self.find(address)?;
        let end = if symbol.end > symbol.start {
            symbol.end
        } else {
            let after = self.symbols.partition_point(|s| s.start <= address);
            let next = self.symbols.get(after).map_or(u64::MAX, |s| s.start);
            symbol.limit.min(next)
        };
        Some(symbol.start..end)
    }

    /// The addresses around this one that are surely in the same function. `None` if there is none,
    /// or another function lies within it.
    pub(crate) fn extent(&self, address: u64) -> Option<Range<u64>> {
        let Range { start, end } = self.range(address)?;
        let after = self.symbols.partition_point(|s| s.start <= address);
        let last = self.symbols.get(after.checked_sub(1)?)?;
        let next = self.symbols.get(after).map_or(u64::MAX, |s| s.start);
        // A sized function may cover where one without a size begins.
        let first = if last.end > start { start } else { address };
        (last.start == start).then_some(first..end.min(next))
    }

    fn sized(&self, before: &'_ [Symbol<'data>], address: u64) -> Option<&Symbol<'data>> {
        // Functions hardly ever nest deeper; a damaged file must not make this quadratic.
        const DEEPEST: usize = 256;
        let first = before.len().saturating_sub(DEEPEST);
        for index in (first..before.len()).rev() {
            if *self.reach.get(index)? <= address {
                return None;
            }
            let symbol = self.symbols.get(index)?;
            if address < symbol.end {
                return Some(symbol);
            }
        }
        None
    }
}

/// The functions of one file's symbol tables that matter.
fn functions<'a, 'data: 'a>(
    image: &'a Image<'data>,
    near: &'a Neighbours<'_>,
    code: Option<&'a CodeEnds<'a, 'data>>,
) -> impl Iterator<Item = Symbol<'data>> + 'a {
    let sections = CodeSections::of(image);
    symbols(image).filter_map(move |symbol| {
        let Range { start, end } = range(&symbol);
        near.matters(start).then_some(())?;
        let (name, limit) = (name(&symbol)?, sections.end_for(&symbol)?);
        Some(Symbol {
            start,
            end,
            limit: match code {
                Some(code) if end == start => code.end(start, limit),
                _ => limit,
            },
            rank: rank(&symbol),
            name: name.into(),
        })
    })
}

/// Symbols that may be functions.
fn symbols<'a, 'data: 'a>(
    image: &'a Image<'data>,
) -> impl Iterator<Item = object::Symbol<'data, 'a>> {
    let object = image.object();
    let symbols = object.symbols().chain(object.dynamic_symbols());
    symbols.filter(|symbol| matches!(symbol.kind(), SymbolKind::Text | SymbolKind::Unknown))
}

fn range(symbol: &object::Symbol<'_, '_>) -> Range<u64> {
    let start = symbol.address();
    start..start.saturating_add(symbol.size())
}

fn name<'data>(symbol: &object::Symbol<'data, '_>) -> Option<&'data [u8]> {
    symbol.name_bytes().ok().filter(|name| is_name(name))
}

/// The ends of sections of code, by section number.
struct CodeSections(Vec<(usize, u64)>);

impl CodeSections {
    fn of(image: &Image<'_>) -> Self {
        let code = image.object().sections().filter(is_code);
        let ends = code.map(|section| {
            let end = section.address().saturating_add(section.size());
            (section.index().0, end)
        });
        Self(ends.collect())
    }

    /// The end of a symbol's section.
    fn end_for(&self, symbol: &object::Symbol<'_, '_>) -> Option<u64> {
        let index = symbol.section_index()?.0;
        let place = self.0.binary_search_by_key(&index, |&(index, _)| index);
        self.0.get(place.ok()?).map(|&(_, end)| end)
    }
}

fn is_code(section: &object::Section<'_, '_>) -> bool {
    matches!(section.flags(), SectionFlags::Elf { sh_flags, .. } if sh_flags.0 & elf::SHF_EXECINSTR.0 != 0)
}

/// Leaves out what the assembler made: ARM's mapping symbols and local labels.
fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && !is_mapping_symbol(name) && !name.starts_with(b".L")
}

/// `$x`, or `$x.1`: where code (`a`, `t`, `x`) or data (`d`) begins on ARM. Names of Swift begin
/// with `$`, too: `$s3app4mainyyF`.
fn is_mapping_symbol(name: &[u8]) -> bool {
    matches!(
        name,
        [b'$', b'a' | b'd' | b't' | b'x'] | [b'$', b'a' | b'd' | b't' | b'x', b'.', ..]
    )
}

fn rank(symbol: &object::Symbol<'_, '_>) -> u8 {
    if symbol.is_weak() {
        2
    } else if symbol.is_global() {
        0
    } else {
        1
    }
}

fn preference<'a>(symbol: &'a Symbol<'_>) -> (bool, u8, usize, usize, &'a [u8], Reverse<u64>) {
    let name = symbol.name.as_ref();
    let underscores = name.iter().take_while(|&&byte| byte == b'_').count();
    (
        symbol.end == symbol.start,
        symbol.rank,
        underscores,
        name.len(),
        name,
        Reverse(symbol.end),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbol(name: &'static str, start: u64, size: u64, rank: u8) -> Symbol<'static> {
        Symbol {
            start,
            end: start + size,
            limit: 1000,
            rank,
            name: name.as_bytes().into(),
        }
    }

    #[track_caller]
    fn check(symbols: &[Symbol<'static>], address: u64, expected: Option<&str>) {
        let mut symbols = symbols.to_vec();
        for _ in 0..symbols.len().max(1) {
            let step = symbols.len().min(1);
            symbols.rotate_left(step);
            let table = SymbolTable::new(symbols.clone());
            let found = table.find(address).map(|symbol| symbol.name.as_ref());
            assert_eq!(found, expected.map(str::as_bytes), "{symbols:?}");
        }
    }

    #[test]
    fn the_function_that_covers_the_address_is_found() {
        let symbols = [
            symbol("outer", 100, 100, 0),
            symbol("inner", 120, 10, 0),
            symbol("after", 300, 10, 0),
            symbol("assembly", 400, 0, 0),
            symbol("next", 500, 10, 0),
            symbol("last", 600, 0, 0),
        ];
        check(&[], 1, None);
        check(&symbols, 99, None);
        check(&symbols, 100, Some("outer"));
        check(&symbols, 125, Some("inner"));
        check(&symbols, 130, Some("outer"));
        check(&symbols, 200, None);
        check(&symbols, 309, Some("after"));
        check(&symbols, 310, None);
        check(&symbols, 499, Some("assembly"));
        check(&symbols, 510, None);
        check(&symbols, 999, Some("last"));
        check(&symbols, 1000, None);
    }

    #[test]
    fn functions_end_where_their_symbols_or_the_next_ones_say() {
        let table = SymbolTable::new(vec![
            symbol("sized", 100, 50, 0),
            symbol("assembly", 200, 0, 0),
            symbol("next", 260, 10, 0),
            symbol("last", 900, 0, 0),
        ]);
        let check = |address, expected| assert_eq!(table.range(address), expected);
        check(120, Some(100..150));
        check(160, None);
        check(259, Some(200..260));
        check(999, Some(900..1000));
        check(1000, None);
    }

    #[test]
    fn what_lies_in_the_same_function_is_known_up_to_the_next_one() {
        let table = SymbolTable::new(vec![
            symbol("outer", 100, 100, 0),
            symbol("inner", 120, 10, 0),
            symbol("assembly", 400, 0, 0),
            symbol("next", 500, 10, 0),
        ]);
        let check = |address, expected| assert_eq!(table.extent(address), expected);
        check(99, None);
        check(110, Some(100..120));
        check(125, Some(120..130));
        check(130, None);
        check(450, Some(450..500));
        check(505, Some(500..510));
    }

    #[test]
    fn of_several_names_the_same_is_always_chosen() {
        let both = |a, b| [a, b];
        let check = |symbols: [Symbol<'static>; 2], expected| check(&symbols, 10, Some(expected));
        check(
            both(symbol("label", 10, 0, 0), symbol("sized", 10, 5, 1)),
            "sized",
        );
        check(
            both(symbol("local", 10, 5, 1), symbol("zz_global", 10, 5, 0)),
            "zz_global",
        );
        check(
            both(symbol("weak", 10, 5, 2), symbol("zz_local", 10, 5, 1)),
            "zz_local",
        );
        check(
            both(symbol("__malloc", 10, 5, 0), symbol("malloc", 10, 5, 0)),
            "malloc",
        );
        check(
            both(symbol("longer", 10, 5, 0), symbol("short", 10, 5, 0)),
            "short",
        );
        check(both(symbol("bb", 10, 5, 0), symbol("aa", 10, 5, 0)), "aa");
    }

    #[test]
    fn what_assemblers_make_is_no_name() {
        let check = |name: &[u8], expected| assert_eq!(is_name(name), expected, "{name:?}");
        for name in ["$s3app3hotyyF", "$sSS", "$a_function", "$", "$$x", "f"] {
            check(name.as_bytes(), true);
        }
        for name in ["", "$x", "$d", "$a.0", "$t.thumb", ".L12", ".LC0"] {
            check(name.as_bytes(), false);
        }
    }

    /// Whatever the symbols are, those near an address give it the name that all of them give.
    #[test]
    fn what_is_not_near_an_address_does_not_name_it() {
        let mut seed = 1_u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        for round in 0..2_000 {
            let names = ["f", "g", "_h", "i", "$x"];
            let symbols = (0..random(30)).map(|_| {
                let name = names[random(5) as usize];
                symbol(name, random(60), random(4) * random(8), random(3) as u8)
            });
            let symbols: Vec<_> = symbols.collect();
            let mut addresses: Vec<u64> = (0..random(6)).map(|_| random(100)).collect();
            addresses.sort_unstable();
            let is_function = |symbol: &Symbol<'_>| is_name(&symbol.name);
            let mut near = Neighbours::new(&addresses);
            for symbol in &symbols {
                near.note(symbol.start..symbol.end, || is_function(symbol));
            }
            near.spread();
            let functions = symbols.iter().filter(|symbol| is_function(symbol)).cloned();
            let all = SymbolTable::new(functions.clone().collect());
            let some = functions.filter(|symbol| near.matters(symbol.start));
            let some = SymbolTable::new(some.collect());
            for &address in &addresses {
                assert_eq!(some.find(address), all.find(address), "{round}: {address}");
                assert_eq!(
                    some.range(address),
                    all.range(address),
                    "{round}: {address}"
                );
                for near in some.extent(address).into_iter().flatten() {
                    assert_eq!(all.find(near), all.find(address), "{round}: {near}");
                }
            }
        }
    }
}
