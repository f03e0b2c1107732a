//! Records its own work for half a second and prints its hottest functions: `record-itself
//! OUT.data`
#![expect(clippy::print_stdout, reason = "that is what it is for")]

use std::error::Error;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use prof_recorder::{Options, Signals, Target};
use prof_report::view::flat::Flat;
use prof_report::{CallTree, Filter, LoadOptions, Split, SymbolizedProfile};
use prof_symbols::{SymbolOptions, Symbolizer};

#[inline(never)]
fn work(done: &AtomicBool) -> u64 {
    let mut sum = 1;
    while !done.load(Ordering::Relaxed) {
        // Checks the flag so seldom that nearly all time is spent here, even if an atomic load is a
        // call.
        let mut turn = 0;
        while turn < 1_000 {
            sum = black_box(sum * 31 + 7) % 1_000_003;
            turn += 1;
        }
    }
    sum
}

fn main() -> Result<(), Box<dyn Error>> {
    let signals = Signals::block()?;
    let path = std::env::args_os().nth(1).ok_or("which file?")?;
    let own = std::process::id().try_into()?;
    let mut options = Options::new(Target::Processes(vec![own]), &path);
    options.schedule.duration = Some(Duration::from_millis(500));
    let done = AtomicBool::new(false);
    let recorded = thread::scope(|scope| {
        scope.spawn(|| work(&done));
        let recorded = prof_recorder::record(&options, &signals);
        done.store(true, Ordering::Relaxed);
        recorded
    });
    println!("{} samples", recorded?.samples);

    let profile = prof_report::read(path.as_ref(), &LoadOptions::default())?;
    let symbolizer = Symbolizer::new(SymbolOptions::default());
    let profile = SymbolizedProfile::new(profile, &symbolizer);
    let tree = CallTree::new(&profile, &Filter::default(), Split::Nothing)?;
    for row in Flat::new(&tree).rows.iter().take(5) {
        println!("{:>6} {}", row.own.samples, profile[row.function].name);
    }
    Ok(())
}
