//! Names that V8 gives to JavaScript functions in perf maps and jitdumps.

/// The name without the mark of the compiler that has made this code of the function:
/// `JS:*run app.js:3:5` is `JS:run app.js:3:5`. V8 writes `~` for the interpreter, `^` for
/// Sparkplug, `+` and `*` for Maglev and TurboFan (`CodeKindToMarker` in
/// src/objects/code-kind.cc), after `LazyCompile:` instead of `JS:` in versions before 10. `None`
/// for other names.
pub(super) fn demangle_javascript(name: &str) -> Option<String> {
    let marked = ["JS:", "LazyCompile:"];
    let rest = marked.iter().find_map(|kind| name.strip_prefix(kind))?;
    let plain = rest.strip_prefix(['~', '^', '+', '*']);
    Some(format!("JS:{}", plain.unwrap_or(rest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_function_has_one_name() {
        let check = |name: &str, expected: Option<&str>| {
            assert_eq!(demangle_javascript(name).as_deref(), expected, "{name}");
        };
        for name in [
            "JS:~run",
            "JS:^run",
            "JS:+run",
            "JS:*run",
            "LazyCompile:*run",
        ] {
            check(&format!("{name} a.js:1:1"), Some("JS:run a.js:1:1"));
        }
        check("JS:run", Some("JS:run"));
        check("JS:*", Some("JS:"));
        check("JS:**", Some("JS:*"));
        check("RegExp:a*b", None);
        check("run", None);
    }
}
