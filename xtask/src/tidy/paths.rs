//! The modules of a crate, and which of them the names in their code come from.

use std::collections::HashMap;

use super::source::Source;

/// The modules of one crate, by their paths below its root.
pub(super) struct Modules(HashMap<Vec<String>, Module>);

/// One file with code.
pub(super) struct Module {
    /// Its path in the crate: `["a", "b"]` is `a/b.rs` or `a/b/mod.rs`.
    pub(super) path: Vec<String>,
    /// Relative to the top of the checkout.
    pub(super) file: String,
    imports: Vec<Import>,
    /// All paths in its code outside of `use`, names alone among them.
    mentioned: Vec<(Vec<String>, usize)>,
}

/// One name that a `use` brings in.
struct Import {
    name: String,
    path: Vec<String>,
    /// Whether it is a `pub use`, which only re-exports the name.
    handed_on: bool,
    line: usize,
}

/// A use of something that another module defines.
pub(super) struct Use {
    pub(super) module: Vec<String>,
    pub(super) line: usize,
}

impl Modules {
    /// Parses the sources of a crate, whose root is in this folder.
    pub(super) fn new(root: &str, sources: &[&Source]) -> Self {
        let modules = sources.iter().filter_map(|source| {
            let inner = source.path.strip_prefix(root)?.strip_suffix(".rs")?;
            let mut path: Vec<String> = inner.split('/').skip(1).map(String::from).collect();
            let is = |names: &[&str]| {
                path.last()
                    .is_some_and(|last| names.contains(&last.as_str()))
            };
            if is(&["tests", "testing"]) || path.first().is_some_and(|first| first == "bin") {
                return None;
            }
            if is(&["lib", "main", "mod"]) {
                path.pop();
            }
            Some((path.clone(), Module::new(path, source)))
        });
        Self(modules.collect())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Module> {
        let mut modules: Vec<&Module> = self.0.values().collect();
        modules.sort_by_key(|module| &module.path);
        modules.into_iter()
    }

    /// The module that defines the item of this path, as seen from a module.
    fn find(&self, module: &Module, path: &[String], depth: usize) -> Option<Vec<String>> {
        /// Longer chains of re-exports are circles.
        const DEEPEST: usize = 16;
        let (first, mut rest) = path.split_first()?;
        let mut at = match first.as_str() {
            "crate" => Vec::new(),
            "self" | "super" => module.path.clone(),
            child => [&module.path[..], &[child.to_string()]].concat(),
        };
        if first == "super" {
            at.pop();
        }
        while let Some((next, behind)) = rest.split_first() {
            if next == "super" {
                at.pop();
            } else if self
                .0
                .contains_key(&[&at[..], std::slice::from_ref(next)].concat())
            {
                at.push(next.clone());
            } else {
                break;
            }
            rest = behind;
        }
        let Some(defining) = self.0.get(&at) else {
            // No module: a name that is imported, or not ours.
            let import = module.import(first)?;
            return (depth < DEEPEST && import.path != path)
                .then(|| self.find(module, &[&import.path[..], rest].concat(), depth + 1))?;
        };
        let handed_on = rest.first().and_then(|name| defining.import(name));
        if let (Some(import), true) = (handed_on, depth < DEEPEST) {
            let on = [&import.path[..], &rest[1..]].concat();
            return self.find(defining, &on, depth + 1);
        }
        Some(at)
    }
}

impl Module {
    fn new(path: Vec<String>, source: &Source) -> Self {
        let tokens = without_tests(tokens(source));
        let mut module = Self {
            path,
            file: source.path.clone(),
            imports: Vec::new(),
            mentioned: Vec::new(),
        };
        let mut at = 0;
        while let Some((token, line)) = tokens.get(at) {
            if token == "use" {
                let handed_on = at > 0 && matches!(tokens[at - 1].0.as_str(), "pub" | ")");
                at += 1;
                at = module.add_imports(&tokens, at, &mut Vec::new(), handed_on);
            } else if is_name(token) {
                let mut mentioned = vec![token.clone()];
                let follows = at > 0 && matches!(tokens[at - 1].0.as_str(), "." | "::");
                at += 1;
                while let (Some((colons, _)), Some((name, _))) =
                    (tokens.get(at), tokens.get(at + 1))
                    && colons == "::"
                    && is_name(name)
                {
                    mentioned.push(name.clone());
                    at += 2;
                }
                if !follows {
                    module.mentioned.push((mentioned, *line));
                }
            } else {
                at += 1;
            }
        }
        module
    }

    /// Adds the names of a `use` from this token on, and returns where it ends.
    fn add_imports(
        &mut self,
        tokens: &[(String, usize)],
        mut at: usize,
        before: &mut Vec<String>,
        handed_on: bool,
    ) -> usize {
        let outer = before.len();
        while let Some((token, line)) = tokens.get(at) {
            match token.as_str() {
                "::" => {}
                "{" => at = self.add_imports(tokens, at + 1, &mut before.clone(), handed_on),
                "," | "}" | ";" => {
                    if before.len() > outer {
                        self.add_import(before.clone(), handed_on, *line);
                    }
                    before.truncate(outer);
                    if token != "," {
                        return at;
                    }
                }
                "as" => {
                    let renamed = tokens.get(at + 1).map(|(name, _)| name.clone());
                    self.add_import(before.clone(), handed_on, *line);
                    if let (Some(import), Some(name)) = (self.imports.last_mut(), renamed) {
                        import.name = name;
                    }
                    before.truncate(outer);
                    at += 1;
                }
                name => before.push(name.to_string()),
            }
            at += 1;
        }
        at
    }

    fn add_import(&mut self, mut path: Vec<String>, handed_on: bool, line: usize) {
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let name = path.last().cloned().unwrap_or_default();
        self.imports.push(Import {
            name,
            path,
            handed_on,
            line,
        });
    }

    fn import(&self, name: &str) -> Option<&Import> {
        self.imports.iter().find(|import| import.name == name)
    }

    /// The items of other modules that this one uses.
    pub(super) fn uses(&self, modules: &Modules) -> Vec<Use> {
        let imported = self.imports.iter().filter(|import| !import.handed_on);
        let imported = imported.map(|import| (&import.path, import.line));
        let mentioned = self.mentioned.iter().filter(|(path, _)| {
            path.len() > 1 || self.import(&path[0]).is_some_and(|import| import.handed_on)
        });
        let mentioned = mentioned.map(|(path, line)| (path, *line));
        let found = imported.chain(mentioned).filter_map(|(path, line)| {
            let module = modules.find(self, path, 0)?;
            Some(Use { module, line })
        });
        found.filter(|used| used.module != self.path).collect()
    }
}

/// Words and punctuation, each with its line.
fn tokens(source: &Source) -> Vec<(String, usize)> {
    let mut tokens: Vec<(String, usize)> = Vec::new();
    for (index, line) in source.code.iter().enumerate() {
        let mut rest = line.trim_start();
        while let Some(first) = rest.chars().next() {
            let is_word = |c: char| c.is_alphanumeric() || c == '_';
            let length = match first {
                c if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
                _ if rest.starts_with("::") => 2,
                c => c.len_utf8(),
            };
            tokens.push((rest[..length].to_string(), index + 1));
            rest = rest[length..].trim_start();
        }
    }
    tokens
}

/// Removes each item behind `#[cfg(test)]`.
fn without_tests(tokens: Vec<(String, usize)>) -> Vec<(String, usize)> {
    const MARK: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut left = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        let here = tokens[at..].iter().map(|(token, _)| token.as_str());
        if !here.take(MARK.len()).eq(MARK) {
            left.push(tokens[at].clone());
            at += 1;
            continue;
        }
        let mut depth = 0_usize;
        at += MARK.len();
        while let Some((token, _)) = tokens.get(at) {
            at += 1;
            match token.as_str() {
                "{" => depth += 1,
                "}" => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 && matches!(token.as_str(), ";" | "}") {
                break;
            }
        }
    }
    left
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}
