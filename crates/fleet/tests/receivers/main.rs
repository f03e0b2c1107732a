//! The requests to Pyroscope and to receivers of OTLP's profiles, decoded by other tools, and the
//! reaction when they are refused.

#![allow(clippy::unwrap_used)]

mod bucket;
mod clocks;
mod collecting;
mod data_set;
mod pushing;
mod server;
mod waiting;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use prof_report::view::flat::Flat;
use prof_report::{CallTree, Filter, LoadOptions, Split, SymbolizedProfile};
use prof_symbols::{SymbolOptions, Symbolizer};

/// Two functions of one caller, for a fixed amount of work.
const PROGRAM: &str = "
    static volatile unsigned sink;
    __attribute__((noinline)) static void burn(unsigned n) { while (n--) sink += n; }
    __attribute__((noinline)) static void parse(void) { burn(60000000); sink++; }
    __attribute__((noinline)) static void render(void) { burn(30000000); sink++; }
    int main(void) { parse(); render(); return 0; }
";

/// Weight by function: with it on the stack.
type Weights = BTreeMap<String, u64>;

/// A program to be recorded, built in `folder`.
fn build(folder: &Path) -> PathBuf {
    let (source, program) = (folder.join("work.c"), folder.join("work"));
    fs::write(&source, PROGRAM).unwrap();
    let built = Command::new("gcc")
        .args(["-g", "-O1", "-fno-inline", "-o"])
        .args([&program, &source])
        .status();
    assert!(built.unwrap().success());
    program
}

/// prof's own report of a recording whose program has symbols.
fn weights(recording: &Path) -> Weights {
    let weights = all_weights(recording);
    for function in ["main", "parse", "render", "burn"] {
        assert!(weights.contains_key(function), "{weights:?}");
    }
    weights
}

/// prof's own report of a recording.
fn all_weights(recording: &Path) -> Weights {
    let profile = prof_report::read(recording, &LoadOptions::default()).unwrap();
    let symbolizer = Symbolizer::new(SymbolOptions::default());
    let profile = SymbolizedProfile::new(profile, &symbolizer);
    let tree = CallTree::new(&profile, &Filter::default(), Split::Nothing).unwrap();
    let mut weights = Weights::new();
    for row in &Flat::new(&tree).rows {
        let name = profile[row.function].name.to_string();
        *weights.entry(name).or_default() += row.total.value;
    }
    weights
}

fn fleet() -> Command {
    Command::new(env!("CARGO_BIN_EXE_prof-fleet"))
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
