//! Unwinds the samples of a `perf record --call-graph dwarf` file: `unwind FILE [SAMPLE]` prints
//! the share of whole stacks and what became of the others, or one sample's frames.

#[path = "../tests/support/mod.rs"]
mod support;

use prof_unwinder::{LocalFiles, Unwinder};
use support::Samples;

#[expect(clippy::print_stdout, reason = "a tool for the terminal")]
fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let file = arguments.get(1).expect("a file to read");
    let samples = Samples::load(file.as_ref());
    if let Some(number) = arguments.get(2) {
        let sample = &samples.samples[number.parse::<usize>().expect("a number")];
        let answer = samples.unwind_one(&mut Unwinder::new(LocalFiles), sample);
        println!("{:?}", answer.unwound);
        for frame in answer.frames {
            println!("{frame:#18x} {}", samples.place(sample, frame));
        }
        return;
    }
    if std::env::var_os("LIST").is_some() {
        let answers = samples.unwind(&mut Unwinder::new(LocalFiles));
        for (number, answer) in answers.iter().enumerate() {
            if !answer.unwound.end.is_whole() {
                println!("{number}: {:?} {}", answer.unwound.end, answer.frames.len());
            }
        }
        return;
    }
    let (share, partial) = samples.summary();
    let count = samples.samples.len();
    print!("{file}: {:.2} % of {count} whole\n{partial}", share * 100.0);
}
