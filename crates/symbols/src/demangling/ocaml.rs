//! Names of OCaml's native code.

/// `Stdlib.Map.add` for `camlStdlib__Map__add_200`: "caml", the modules, the function and its
/// number. Other characters than letters, digits and `_` are `$` and two hexadecimal digits
/// (`Compilenv.make_symbol` and `Asm_targets`); from OCaml 5.1 on, `.` or `$` ends the unit's name.
/// `None` for other names.
pub(super) fn demangle_ocaml(raw: &str) -> Option<String> {
    let rest = raw.strip_prefix("caml")?;
    // Functions of the runtime, which is in C, are lower case.
    rest.starts_with(|first: char| first.is_ascii_uppercase())
        .then_some(())?;
    let (path, number) = rest.rsplit_once('_')?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then_some(())?;
    let name = unescaped(path).replace("__", ".");
    name.contains('.').then_some(name)
}

fn unescaped(path: &str) -> String {
    let mut name = String::with_capacity(path.len());
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('$') {
        name.push_str(before);
        let code = after
            .get(..2)
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match code.filter(u8::is_ascii_graphic) {
            Some(byte) => {
                name.push(byte.into());
                rest = &after[2..];
            }
            None => {
                name.push('.');
                rest = after;
            }
        }
    }
    name + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_and_functions_are_named() {
        let check = |raw: &str, expected: Option<&str>| {
            assert_eq!(demangle_ocaml(raw).as_deref(), expected, "{raw}");
        };
        check("camlStdlib__Map__add_200", Some("Stdlib.Map.add"));
        check("camlStdlib__List__map_481", Some("Stdlib.List.map"));
        check("camlDune__exe__Main__fib_7", Some("Dune.exe.Main.fib"));
        check("camlMain__$3e$3e$3d_12", Some("Main.>>="));
        check("camlMain__fun_1234", Some("Main.fun"));
        check("camlStdlib.map_5", Some("Stdlib.map"));
        check("camlStdlib$map_5", Some("Stdlib.map"));
        check("camlMain__a_b_3", Some("Main.a_b"));
        for other in [
            "caml_alloc_string",
            "camlMain",
            "camlMain_1",
            "camlMain__entry",
            "caml_startup_code_begin",
            "camlMain__x_",
            "camlMain__$é_1",
            "camera_1",
            "",
        ] {
            let named = demangle_ocaml(other);
            assert!(named.is_none() || other.contains('$'), "{other} {named:?}");
        }
    }
}
