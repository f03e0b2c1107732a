//! Records a command and draws its flamegraph: `flamegraph OUT.svg COMMAND...`
use std::error::Error;
use std::fs::File;
use std::path::Path;

use prof_recorder::{Options, Program, Signals, Target};
use prof_report::format::flamegraph::{self, FlameOptions};
use prof_report::{CallTree, Filter, LoadOptions, Split, SymbolizedProfile};
use prof_symbols::{SymbolOptions, Symbolizer};

fn main() -> Result<(), Box<dyn Error>> {
    // Ctrl-C ends the recording; then it is drawn.
    let signals = Signals::block()?;
    let mut arguments = std::env::args_os().skip(1);
    let picture = arguments.next().ok_or("which picture?")?;
    let recording = Path::new(&picture).with_extension("data");

    let target = Target::Command(Program::new(arguments));
    prof_recorder::record(&Options::new(target, &recording), &signals)?;

    let profile = prof_report::read(&recording, &LoadOptions::default())?;
    let symbolizer = Symbolizer::new(SymbolOptions::default());
    let profile = SymbolizedProfile::new(profile, &symbolizer);
    let tree = CallTree::new(&profile, &Filter::default(), Split::default())?;
    flamegraph::write(&tree, &FlameOptions::default(), File::create(picture)?)?;
    Ok(())
}
