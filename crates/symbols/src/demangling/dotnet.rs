//! Names of .NET's methods.

/// The type, the method and its parameters, from a line of a perf map of .NET: without the return
/// type, the assemblies of types and how well the method was compiled, of which a method has
/// several in turn. `None` for other names.
///
/// ```text
/// instance bool [app] App.List`1[System.Int32]::Has(class [lib]System.Object)[Optimized]
///                     App.List`1[System.Int32]::Has(System.Object)
/// ```
pub(super) fn demangle_dotnet(raw: &str) -> Option<String> {
    let name = without_tier(raw);
    if !name.ends_with(')') {
        return None;
    }
    let method = after_assembly(name)?;
    method.contains("::").then(|| without_kinds(method))
}

/// `name` without a tier:
/// <https://learn.microsoft.com/en-us/dotnet/core/runtime-config/compilation>
fn without_tier(name: &str) -> &str {
    let Some((method, tier)) = name
        .strip_suffix(']')
        .and_then(|name| name.rsplit_once(")["))
    else {
        return name;
    };
    let is_tier = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    match tier.bytes().all(is_tier) {
        true => &name[..=method.len()],
        false => name,
    }
}

/// What follows ` [assembly] `.
fn after_assembly(name: &str) -> Option<&str> {
    let mut rest = name;
    loop {
        rest = &rest[rest.find(" [")? + 2..];
        let (assembly, method) = rest.split_once(']')?;
        let is_word = !assembly.is_empty() && !assembly.contains([' ', '[']);
        if let Some(method) = method.strip_prefix(' ').filter(|_| is_word) {
            return Some(method);
        }
    }
}

/// `method` without `class` and `valuetype` before types, and their assemblies.
fn without_kinds(method: &str) -> String {
    let mut out = String::with_capacity(method.len());
    let mut rest = method;
    while let Some(next) = rest.chars().next() {
        let starts_word = !out.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '.');
        let kinds = ["class ", "valuetype "];
        let kind = kinds.iter().find_map(|kind| rest.strip_prefix(kind));
        rest = match kind.filter(|_| starts_word) {
            Some(of_type) => match of_type.strip_prefix('[').and_then(|it| it.split_once(']')) {
                Some((_, without)) => without,
                None => of_type,
            },
            None => {
                out.push(next);
                &rest[next.len_utf8()..]
            }
        };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(raw: &str, expected: Option<&str>) {
        assert_eq!(demangle_dotnet(raw).as_deref(), expected);
    }

    /// Lines of .NET Core 3.1.
    #[test]
    fn the_method_and_its_parameters_remain() {
        check(
            "float64 [app] Program::Leaf(int32)[OptimizedTier1]",
            Some("Program::Leaf(int32)"),
        );
        check(
            "instance valuetype System.Collections.Immutable.ImmutableArray`1/Enumerator<!0> \
             [System.Collections.Immutable] \
             System.Collections.Immutable.ImmutableArray`1[System.__Canon]::GetEnumerator()\
             [OptimizedTier1]",
            Some("System.Collections.Immutable.ImmutableArray`1[System.__Canon]::GetEnumerator()"),
        );
        check(
            "instance bool [Code] Code.Symbol::Equals(class Code.TypeSymbol,valuetype \
             [Other]Code.Kind,class [netstandard]System.IList`1<class Code.Type,bool>,int32[])\
             [PreJIT]",
            Some(
                "Code.Symbol::Equals(Code.TypeSymbol,Code.Kind,System.IList`1<Code.Type,bool>,int32[])",
            ),
        );
        check(
            "int32[0...,0...] [app] Subclass ::M(class A)",
            Some("Subclass ::M(A)"),
        );
    }

    #[test]
    fn other_names_stay() {
        for name in [
            "stub<1> AllocateTemporaryEntryPoints<PRECODE_FIXUP>",
            "-[NSString [a] length]",
            "f() [clone .cold]",
            "JS:*f [eval] a.js:1:1",
            "a [b] c()",
            "a [",
            "",
        ] {
            check(name, None);
        }
    }
}
