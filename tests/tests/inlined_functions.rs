//! Inlined functions have frames and names.

use prof_tests::{Need, Program, Session, USER_CODE, Variant, needs};

const INLINING: Program = Program::cpp(&["inlining.cpp"]);

#[test]
fn inlined_functions_of_cpp() {
    if !needs(&[Need::Tool("g++")]) {
        return;
    }
    let session = Session::new();
    let binary = INLINING.build();
    let recorded = session.record(USER_CODE, &[binary]);
    recorded.physical_stacks().assert_whole(0.999);
    let stacks = recorded.stacks();
    let hottest = stacks.hottest();
    for part in [
        "main",
        "total(",
        "for_all<",
        "accumulate<",
        "shapes::Polygon<9>::area(",
        "shapes::innermost(",
    ] {
        assert!(
            hottest.iter().any(|frame| frame.contains(part)),
            "no {part} in {hottest:#?}"
        );
    }
}

#[test]
fn inlined_functions_of_rust() {
    let session = Session::new();
    for flags in [
        &["-Csymbol-mangling-version=v0"][..],
        &["-Cforce-frame-pointers=no"],
    ] {
        let variant = Variant::new("mangling", Vec::leak(flags.to_vec()));
        let binary = Program::rust(&["generics.rs"]).build_as(variant);
        let recorded = session.record(USER_CODE, &[binary]);
        recorded.physical_stacks().assert_whole(0.999);
        let stacks = recorded.stacks();
        let inside = |part: &str| stacks.share(|frames| frames.iter().any(|f| f.contains(part)));
        for part in [
            "generics::main",
            "generics::apply",
            "generics::numbers::innermost",
            "::fold",
        ] {
            assert!(inside(part) > 0.1, "{} in {part}:\n{stacks}", inside(part));
        }
        // `elf_dynamic_do_Rela` has _R in the middle.
        let is_mangled = |frame: &String| frame.starts_with("_ZN") || frame.starts_with("_R");
        let mangled = stacks.share(|frames| frames.iter().any(is_mangled));
        assert!(mangled == 0.0, "mangled names:\n{stacks}");
    }
}
