//! The short form of demangled names.

use std::borrow::Cow;

/// A short form for graphs: without template and generic arguments, parameters and return type;
/// of a Rust impl, the type.
///
/// ```
/// # use prof_symbols::shorten;
/// assert_eq!(shorten("void app::run<int>(std::vector<int> const&)"), "app::run");
/// assert_eq!(shorten("<app::Set<u32> as core::fmt::Debug>::fmt"), "app::Set::fmt");
/// ```
pub fn shorten(name: &str) -> Cow<'_, str> {
    // Names of JavaScript have no arguments.
    if !name.contains(['<', '(']) || name.starts_with("JS:") {
        return Cow::Borrowed(name);
    }
    let mut shortener = Shortener {
        rest: name,
        out: String::with_capacity(name.len()),
        depth: 0,
    };
    shortener.run();
    let out = shortener.out;
    if out.is_empty() {
        return Cow::Borrowed(name);
    }
    Cow::Owned(out)
}

struct Shortener<'a> {
    rest: &'a str,
    out: String,
    /// How many impls deep.
    depth: usize,
}

/// Deeper nested impls are copied as they are.
const DEEPEST: usize = 16;
const ANONYMOUS: &str = "(anonymous namespace)";

impl Shortener<'_> {
    fn run(&mut self) {
        while let Some(next) = self.rest.chars().next() {
            if self.is_after_operator() && self.operator() {
                continue;
            }
            match next {
                '<' if self.is_java_initializer() => self.copy(bracketed(self.rest)),
                '<' => self.angle(),
                '(' if self.rest.starts_with(ANONYMOUS) => self.copy(ANONYMOUS.len()),
                '(' => {
                    self.skip(bracketed(self.rest));
                    if !self.rest.starts_with("::") {
                        return;
                    }
                }
                '{' => self.braces(),
                // What came before was the return type, if parameters follow.
                ' ' if self.rest.contains('(') => {
                    self.out.clear();
                    self.skip(1);
                }
                _ => self.copy(next.len_utf8()),
            }
        }
    }

    /// After the word `operator`: its symbol, whose brackets are none.
    fn operator(&mut self) -> bool {
        const SYMBOLS: [&str; 9] = ["<<=", ">>=", "<=>", "<<", ">>", "<=", ">=", "->", "()"];
        let symbol = SYMBOLS
            .into_iter()
            .chain(["<", ">"])
            .find(|symbol| self.rest.starts_with(symbol));
        let length = match symbol {
            Some(symbol) => symbol.len(),
            // `operator new(...)`, `operator bool() const`
            None if self.rest.starts_with(' ') => {
                self.rest.find(['(', '<']).unwrap_or(self.rest.len())
            }
            None => return false,
        };
        self.copy(length);
        if self.rest.starts_with(" <") {
            self.skip(1);
        }
        true
    }

    fn is_after_operator(&self) -> bool {
        let before = self.out.strip_suffix("operator");
        before.is_some_and(|before| !before.ends_with(|c: char| c.is_alphanumeric() || c == '_'))
    }

    /// A constructor of a Java class, or the code that initializes the class.
    fn is_java_initializer(&self) -> bool {
        let is_named = ["<init>", "<clinit>"]
            .iter()
            .any(|name| self.rest.starts_with(name));
        is_named && self.out.ends_with(['.', ':'])
    }

    fn angle(&mut self) {
        let length = bracketed(self.rest);
        let inner = self
            .rest
            .get(1..length.saturating_sub(1))
            .unwrap_or_default();
        let is_impl = inner.starts_with("impl ");
        let at_start = self.out.is_empty() || self.out.ends_with([' ', '&', '*', '(']);
        if self.depth < DEEPEST && (is_impl || at_start) {
            // The type says more than the module that the impl is in.
            self.out.clear();
            let own = self_type(inner);
            let mut nested = Shortener {
                rest: own,
                out: String::new(),
                depth: self.depth + 1,
            };
            nested.run();
            let short = if nested.out.is_empty() {
                own
            } else {
                &nested.out
            };
            self.out.push_str(short);
        } else if self.out.ends_with("::") {
            // Rust's `function::<arguments>`.
            self.out.truncate(self.out.len() - 2);
        }
        self.skip(length);
    }

    /// `{lambda(int)#1}` loses its parameters, others stay.
    fn braces(&mut self) {
        let length = bracketed(self.rest);
        let (inner, rest) = self.rest.split_at(length);
        match (inner.find('('), inner.rfind(')')) {
            (Some(open), Some(close)) if open < close => {
                self.out.push_str(inner.get(..open).unwrap_or_default());
                self.out
                    .push_str(inner.get(close + 1..).unwrap_or_default());
            }
            _ => self.out.push_str(inner),
        }
        self.rest = rest;
    }

    fn copy(&mut self, length: usize) {
        self.out
            .push_str(self.rest.get(..length).unwrap_or_default());
        self.skip(length);
    }

    fn skip(&mut self, length: usize) {
        self.rest = self.rest.get(length..).unwrap_or_default();
    }
}

/// The type that an impl is for: `T` of `T as Trait` and of `impl Trait for T`.
fn self_type(inner: &str) -> &str {
    if let Some(inner) = inner.strip_prefix("impl ") {
        return match inner.rfind(" for ") {
            Some(at) => inner.get(at + " for ".len()..).unwrap_or(inner),
            None => inner,
        };
    }
    let mut depth = 0_usize;
    for (at, byte) in inner.bytes().enumerate() {
        match byte {
            b'<' | b'(' | b'[' => depth += 1,
            b'>' if inner.get(..at).is_some_and(|before| before.ends_with('-')) => {}
            b'>' | b')' | b']' => depth = depth.saturating_sub(1),
            b' ' if depth == 0 && inner.get(at..).is_some_and(|s| s.starts_with(" as ")) => {
                return inner.get(..at).unwrap_or(inner);
            }
            _ => {}
        }
    }
    inner
}

/// How many bytes the bracket that `text` starts with and all within take, with the closing one.
fn bracketed(text: &str) -> usize {
    let mut open = Vec::new();
    let mut before = 0;
    for (at, byte) in text.bytes().enumerate() {
        let closes = match byte {
            b'<' | b'(' | b'{' | b'[' => {
                open.push(byte);
                false
            }
            // `->` and a comparison within parentheses are no brackets.
            b'>' => before != b'-' && open.last() == Some(&b'<'),
            b')' | b'}' | b']' => {
                // A stray `<` (an operator's) ends with the bracket around it.
                while open.last() == Some(&b'<') && open.len() > 1 {
                    open.pop();
                }
                true
            }
            _ => false,
        };
        if closes {
            open.pop();
            if open.is_empty() {
                return at + 1;
            }
        }
        before = byte;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_arguments_and_keep_their_path() {
        let check = |name: &str, expected: &str| assert_eq!(shorten(name), expected);
        check("main", "main");
        check("do_idle [virtio]", "do_idle [virtio]");
        check(
            "LazyCompile:*work /srv/app.js:3:5",
            "LazyCompile:*work /srv/app.js:3:5",
        );
        check(
            "JS:(anonymous) /a (b).js:3:5",
            "JS:(anonymous) /a (b).js:3:5",
        );
        // C++
        check("foo(int, char)", "foo");
        check(
            "std::vector<int, std::allocator<int> >::push_back(int const&)",
            "std::vector::push_back",
        );
        check("void app::run<int>(int)", "app::run");
        check(
            "std::map<int, int>::operator[](int const&)",
            "std::map::operator[]",
        );
        check("operator<<(std::ostream&, A<1> const&)", "operator<<");
        check("bool operator< <int>(A<int> const&)", "operator<");
        check("A<int>::operator->() const", "A::operator->");
        check(
            "std::function<void (int)>::operator()(int) const",
            "std::function::operator()",
        );
        check("my_operator()", "my_operator");
        check("operator new(unsigned long)", "operator new");
        check("A::operator bool() const", "A::operator bool");
        check(
            "app::(anonymous namespace)::helper(int)",
            "app::(anonymous namespace)::helper",
        );
        check(
            "main::{lambda(int, char)#1}::operator()(int, char) const",
            "main::{lambda#1}::operator()",
        );
        check("foo(int) [clone .cold]", "foo");
        check(
            "foo(int)::{lambda()#1}::operator()() const",
            "foo::{lambda#1}::operator()",
        );
        // Rust
        check("alloc::vec::Vec<T,A>::push", "alloc::vec::Vec::push");
        check("<alloc::vec::Vec<u8>>::push", "alloc::vec::Vec::push");
        check("<T as core::convert::Into<U>>::into", "T::into");
        check(
            "core::ptr::drop_in_place::<alloc::string::String>",
            "core::ptr::drop_in_place",
        );
        check(
            "core::fmt::num::<impl core::fmt::Display for u32>::fmt",
            "u32::fmt",
        );
        check("<app::Set<u32> as core::fmt::Debug>::fmt", "app::Set::fmt");
        check(
            "<&mut F as core::ops::function::FnOnce<A>>::call_once",
            "&mut F::call_once",
        );
        check(
            "<F as core::ops::function::Fn<(u8,), Output = fn() -> u8>>::call",
            "F::call",
        );
        check("<(A, B) as app::Pair>::first", "(A, B)::first");
        check("<[u8]>::sort::<fn(u8) -> bool>", "[u8]::sort");
        check("app::run::<u8>::{async fn}", "app::run::{async fn}");
        check("app::main::{closure}", "app::main::{closure}");
    }

    #[test]
    fn initializers_of_java_keep_their_names() {
        let check = |name: &str, expected: &str| assert_eq!(shorten(name), expected);
        check(
            "java.lang.Throwable.<init>(java.lang.String)",
            "java.lang.Throwable.<init>",
        );
        check(
            "void java.lang.Throwable.<init>()",
            "java.lang.Throwable.<init>",
        );
        check("java.lang.Enum.<clinit>()", "java.lang.Enum.<clinit>");
        check(
            "Ljava/lang/Throwable;::<init>",
            "Ljava/lang/Throwable;::<init>",
        );
    }

    #[test]
    fn nonsense_does_no_harm() {
        for name in [
            "<",
            "(",
            "<<<>",
            "{(",
            "a<b",
            "operator",
            "operator<",
            ")>)<(",
            "é(ß<",
        ] {
            let _ = shorten(name);
        }
        let deep = "<".repeat(100_000);
        let _ = shorten(&deep);
    }
}
