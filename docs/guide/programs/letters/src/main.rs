//! Counts the letters of a text that it makes up, so many times.

use std::collections::BTreeMap;

/// The same words each time.
fn text(words: u32) -> String {
    const WORDS: [&str; 5] = ["stack", "frame", "sample", "kernel", "verdict"];
    let mut text = String::new();
    let mut random = 1_u32;
    for _ in 0..words {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        text.push_str(WORDS[(random >> 16) as usize % WORDS.len()]);
        text.push(' ');
    }
    text
}

#[inline(never)]
fn count(text: &str) -> BTreeMap<char, u64> {
    let mut counts = BTreeMap::new();
    for letter in text.chars().filter(|letter| letter.is_alphabetic()) {
        *counts.entry(letter).or_default() += 1;
    }
    counts
}

fn main() {
    let rounds = std::env::args()
        .nth(1)
        .map_or(1, |rounds| rounds.parse().unwrap());
    let text = text(50_000);
    let sum: u64 = (0..rounds).map(|_| count(&text)[&'e']).sum();
    println!("{sum} times the letter e");
}

#[cfg(test)]
mod tests {
    #[test]
    fn letters_are_counted() {
        let text = super::text(50_000);
        let counts: Vec<_> = (0..100).map(|_| super::count(&text)).collect();
        assert!(counts.iter().all(|count| count[&'k'] > 0));
    }
}
