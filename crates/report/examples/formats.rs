//! Writes a recording in the format of another tool:
//! `formats FILE pprof|firefox|speedscope|script|csv|json`.

use std::error::Error;
use std::io::{self, BufWriter, Write};

use prof_perfdata::Recording;
use prof_report::format::{csv, firefox, json, pprof, script, speedscope};
use prof_report::view::flat::Flat;
use prof_report::{CallTree, Filter, LoadOptions, Split, SymbolizedProfile, load};
use prof_symbols::{SymbolOptions, Symbolizer};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("which recording?")?;
    let format = arguments.next().ok_or("which format?")?;
    let mut out = BufWriter::new(io::stdout().lock());
    let profile = load(Recording::open(file)?, &LoadOptions::default())?;
    let symbolized = SymbolizedProfile::new(profile, &Symbolizer::new(SymbolOptions::default()));
    let filter = Filter::default();
    let tree = CallTree::new(&symbolized, &filter, Split::Nothing)?;
    match format.as_str() {
        "pprof" => pprof::write(&symbolized, &filter, &mut out)?,
        "firefox" => firefox::write(&symbolized, &filter, &mut out)?,
        "speedscope" => speedscope::write(&symbolized, &filter, &mut out)?,
        "script" => script::write(&symbolized, &filter, &mut out)?,
        "csv" => csv::write(&tree, &Flat::new(&tree), &mut out)?,
        "json" => json::calls(&tree, json::CallView::Calls, &mut out)?,
        _ => return Err(format!("no format {format}").into()),
    }
    Ok(out.flush()?)
}
