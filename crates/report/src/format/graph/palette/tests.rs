use super::*;
use crate::testing::TestProfile;

const C: Hue = Hue::Language(Language::C);

fn find(symbolized: &SymbolizedProfile, name: &str) -> FunctionId {
    let mut ids = symbolized.function_ids();
    ids.find(|&id| &*symbolized[id].name == name).unwrap()
}

#[test]
fn kinds_of_code_have_their_hues() {
    let symbolized = TestProfile::of(&[
        "t main;libc.so.6!write;k:vfs_write 1",
        "t main;jit:py::f;libz.so.1!deflate;jit:made;cut 1",
    ]);
    let palette = Palette::new(&symbolized, PaletteBy::Kind);
    let hue = |name| palette.hue(find(&symbolized, name));
    let found = ["main", "py::f", "write", "vfs_write", "made"].map(hue);
    let library = Hue::Library(0);
    let expected = [
        C,
        Hue::Language(Language::Python),
        library,
        Hue::Kernel,
        Hue::Jit,
    ];
    assert_eq!(found, expected);
    assert!(matches!(hue("deflate"), Hue::Library(1..)));
    let by_language = Palette::new(&symbolized, PaletteBy::Language);
    assert_eq!(by_language.hue(find(&symbolized, "write")), C);
}

#[test]
fn a_legend_lists_what_is_there() {
    let symbolized = TestProfile::of(&[
        "t main;libc.so.6!write;k:vfs_write 1",
        "t cc1!ns::parse;libz.so.1!deflate+inlined 9",
    ]);
    let check = |by, expected: &[&str]| {
        let palette = Palette::new(&symbolized, by);
        let mut legend = Legend::new(&palette);
        for id in symbolized.function_ids() {
            let name = &*symbolized[id].name;
            let style = CallStyle {
                inlined: name == "inlined",
                remote_read: name == "main",
            };
            legend.add(id, style, u64::from(name == "deflate"));
        }
        let entries = legend.entries();
        let texts: Vec<&str> = entries.iter().map(|entry| &*entry.text).collect();
        assert_eq!(texts, expected);
        let mut colors: Vec<[u8; 3]> = entries.iter().map(|e| e.color.into()).collect();
        colors.sort_unstable();
        colors.dedup();
        assert_eq!(colors.len(), entries.len(), "{entries:?}");
    };
    let marks = ["pale: inlined", "dull italics: read later"];
    let kinds = ["demo", "cc1 (C++)", "libz.so.1", "libc.so.6", "kernel"];
    check(PaletteBy::Kind, &[&kinds[..], &marks].concat());
    let languages = ["C and others", "C++", "kernel"];
    check(PaletteBy::Language, &[&languages[..], &marks].concat());
    let modules = ["libz.so.1", "cc1", "demo", "libc.so.6", "kernel"];
    check(PaletteBy::Module, &[&modules[..], &marks].concat());
}

#[test]
fn a_function_has_one_colour_and_a_module_one_hue() {
    let symbolized = TestProfile::of(&["t main;libz!deflate+inlined;libz!inflate 1"]);
    for by in [PaletteBy::Kind, PaletteBy::Language, PaletteBy::Module] {
        let palette = Palette::new(&symbolized, by);
        let color = |name, inlined, remote_read| -> [u8; 3] {
            let style = CallStyle {
                inlined,
                remote_read,
            };
            palette.function(find(&symbolized, name), style).into()
        };
        let plain = color("deflate", false, false);
        assert_eq!(plain, color("deflate", false, false));
        assert_ne!(plain, color("inflate", false, false));
        assert_ne!(plain, color("deflate", true, false));
        assert_ne!(plain, color("deflate", false, true));
    }
    // The strongest channel depends on the module only.
    let strongest = |function| {
        let channels: [u8; 3] = of_module("libz", function).into();
        let numbered = channels.iter().enumerate();
        numbered.max_by_key(|(_, value)| **value).map(|(i, _)| i)
    };
    assert_eq!(strongest("deflate"), strongest("inflate"));
}
