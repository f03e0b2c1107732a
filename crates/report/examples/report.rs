//! Loads a recording, names its frames and writes a view: `report FILE [flat|folded|flamegraph]`.
//! Prints the time of each step to stderr.

use std::error::Error;
use std::io::{self, BufWriter, Write};
use std::time::Instant;

use prof_model::Verdict;
use prof_perfdata::Recording;
use prof_report::format::{flamegraph, folded, table};
use prof_report::view::flat::Flat;
use prof_report::{CallTree, Filter, LoadOptions, Split, SymbolizedProfile, load};
use prof_symbols::{SymbolOptions, Symbolizer, Watch};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("which recording?")?;
    let view = arguments.next().unwrap_or_else(|| "flat".into());
    let mut out = BufWriter::new(io::stdout().lock());
    let clock = Clock::start();
    let profile = load(Recording::open(file)?, &LoadOptions::default())?;
    clock.print("loaded")?;
    let symbolizer = Symbolizer::new(SymbolOptions::default());
    let symbolized = SymbolizedProfile::watched(profile, &symbolizer, Watch::default());
    clock.print("symbolized")?;
    let split = if view == "flat" {
        Split::Nothing
    } else {
        Split::Name
    };
    let tree = CallTree::new(&symbolized, &Filter::default(), split)?;
    clock.print("merged")?;
    match view.as_str() {
        "folded" => folded::write(&tree, &mut out)?,
        "flamegraph" => flamegraph::write(&tree, &flamegraph::FlameOptions::default(), &mut out)?,
        _ => {
            table::write(
                &tree,
                &Flat::new(&tree),
                &table::TableOptions::default(),
                &mut out,
            )?;
            writeln!(out, "\n{}", Verdict::new(symbolized.quality()))?;
            for module in symbolized.naming().iter().filter(|n| !n.status.is_named()) {
                writeln!(out, "  - {}: {}", module.module, module.status)?;
            }
        }
    }
    clock.print("written")?;
    Ok(())
}

struct Clock(Instant);

impl Clock {
    fn start() -> Self {
        Self(Instant::now())
    }

    fn print(&self, what: &str) -> io::Result<()> {
        writeln!(
            io::stderr(),
            "{:>8.3} s  {what}",
            self.0.elapsed().as_secs_f64()
        )
    }
}
