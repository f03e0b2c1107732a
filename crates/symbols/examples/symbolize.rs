//! Symbolizes addresses of an ELF file as `llvm-symbolizer --inlines --obj=FILE` does: addresses of
//! the file's tables on stdin, one per line, in hex; frames on stdout. The time taken and the
//! memory held at the end, without mapped files, go to stderr.
use std::error::Error;
use std::io::{self, BufRead, Write};
use std::time::Instant;

use object::{Object, ObjectSegment};
use prof_model::Module;
use prof_symbols::{Demangle, Query, Source, SymbolOptions, Symbolizer};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: symbolize FILE")?;
    let offsets = read_offsets(&std::fs::read(&path)?)?;
    let mut distinct = offsets.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let module = Module::from_path(&path);
    let symbolizer = Symbolizer::new(SymbolOptions {
        demangle: match std::env::var_os("RAW") {
            Some(_) => Demangle::None,
            None => Demangle::Full,
        },
        ..SymbolOptions::default()
    });
    let start = Instant::now();
    let answers = symbolizer.resolve(&[Query {
        source: Source::File(&module),
        addresses: &distinct,
    }]);
    let took = start.elapsed();
    let status = std::fs::read_to_string("/proc/self/status")?;
    let memory = status.lines().find(|line| line.starts_with("RssAnon"));
    let answer = answers.first().ok_or("no answer")?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    for offset in offsets {
        let frames = answer.frames(distinct.binary_search(&offset).unwrap_or(usize::MAX));
        if frames.is_empty() {
            writeln!(out, "??\n??:0")?;
        }
        for frame in frames {
            let file = frame.file.as_deref().unwrap_or("??");
            writeln!(
                out,
                "{}\n{file}:{}",
                frame.function,
                frame.line.unwrap_or(0)
            )?;
        }
        writeln!(out)?;
    }
    writeln!(
        io::stderr(),
        "{} addresses, {} named, {took:?}, {}: {}",
        distinct.len(),
        answer.named(),
        memory.unwrap_or_default(),
        answer.status()
    )?;
    Ok(())
}

fn read_offsets(bytes: &[u8]) -> Result<Vec<u64>, Box<dyn Error>> {
    let file = object::File::parse(bytes)?;
    let mut offsets = Vec::new();
    for line in io::stdin().lock().lines() {
        let line = line?;
        let address = u64::from_str_radix(line.trim().trim_start_matches("0x"), 16)?;
        let segment = file.segments().find(|segment| {
            address
                .checked_sub(segment.address())
                .is_some_and(|d| d < segment.size())
        });
        offsets.push(segment.map_or(u64::MAX, |s| address - s.address() + s.file_range().0));
    }
    Ok(offsets)
}
