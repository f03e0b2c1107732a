//! Unwinds the samples of a `perf record --call-graph dwarf` file. `unwind FILE
//! [NUMBER|all|partial]` prints the share of whole stacks and the ends of the others, or the frames
//! of one sample, or those of all samples, or the indices of the partial stacks.

#[path = "../tests/support/mod.rs"]
mod support;

use prof_unwinder::{LocalFiles, Unwinder};
use support::Samples;

#[expect(clippy::print_stdout, reason = "a tool for the terminal")]
fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let file = arguments.get(1).expect("a file to read");
    let samples = Samples::load(file.as_ref()).expect("a whole recording");
    let mut unwinder = Unwinder::new(LocalFiles);
    match arguments.get(2).map(String::as_str) {
        Some("all") => {
            for (sample, answer) in samples.samples.iter().zip(samples.unwind(&mut unwinder)) {
                println!(
                    "{} {:?} {:x?}",
                    sample.tid, answer.unwound.end, answer.frames
                );
            }
            return;
        }
        Some("partial") => {
            for (number, answer) in samples.unwind(&mut unwinder).iter().enumerate() {
                if !answer.unwound.end.is_whole() {
                    println!("{number}: {:?}", answer.unwound);
                }
            }
            return;
        }
        Some(number) => {
            let sample = &samples.samples[number.parse::<usize>().expect("a number")];
            let answer = samples.unwind_one(&mut unwinder, sample);
            println!("{:?}", answer.unwound);
            for frame in answer.frames {
                println!("{frame:#18x} {}", samples.place(sample, frame));
            }
            return;
        }
        None => {}
    }
    let (share, partial) = samples.summary();
    let count = samples.samples.len();
    print!("{file}: {:.2} % of {count} whole\n{partial}", share * 100.0);
}
