//! Folded stacks: `root;caller;callee weight`, one line for each distinct stack.
//!
//! What stackcollapse-perf.pl, inferno, async-profiler and many others write. Frames may be marked
//! as stackcollapse marks them: `_[k]` for the kernel's, `_[i]` for inlined, `_[j]` for run-time
//! code. Lines that begin with `#` are comments, unless they are stacks: a thread may be `#1`.

use std::sync::Arc;

use prof_symbols::SymbolFrame;

use super::imported::{Imported, ImportedThread, KERNEL, is_missing};
use crate::error::InputError;
use crate::folded_name::decoded;
use crate::profile::{Event, Frame, FrameId, NamedFrame, Profile, Unit, Weight};
use crate::symbolize::FunctionKind;

/// Whether the first line that says anything is one of folded stacks, and so are at least half of
/// the first lines: other text may have some that end in a number.
pub(in crate::load) fn is_folded(bytes: &[u8]) -> bool {
    const LOOKED_AT: usize = 1000;
    let first = lines(bytes).take(LOOKED_AT);
    let first: Vec<bool> = first.map(|(_, line)| is_stack(line)).collect();
    let stacks = first.iter().filter(|&&is_stack| is_stack).count();
    first.first() == Some(&true) && stacks * 2 >= first.len()
}

fn is_stack(line: &[u8]) -> bool {
    let line = std::str::from_utf8(line);
    line.is_ok_and(|line| !line.contains(char::is_control) && parse(line).is_some())
}

/// Reads folded stacks. Lines that are none are counted as malformed samples.
///
/// # Errors
/// No line is one; a weight has a fraction; or all lines have two weights.
pub(in crate::load) fn read(bytes: &[u8]) -> Result<Profile, InputError> {
    check_weights(bytes)?;
    let weights = Weights::of(bytes);
    let mut imported = Imported::new(vec![Event {
        name: "folded stacks".into(),
        unit: Unit::Unstated,
    }]);
    let mut bad = None;
    for (number, line) in lines(bytes) {
        let line = String::from_utf8_lossy(line);
        match parse(&line) {
            Some((_, 0)) => {}
            Some((stack, weight)) => {
                let frames: Vec<FrameId> = stack
                    .split(';')
                    .map(|name| frame(name, imported.profile()))
                    .collect();
                let stack = imported.stack(frames.into_iter());
                let weight = Weight {
                    value: weight,
                    samples: weights.samples(weight),
                };
                imported.push(0, stack, weight, &ImportedThread::default());
            }
            None => {
                bad = bad.or(Some(number));
                imported.malformed();
            }
        }
    }
    match bad {
        Some(line) if imported.profile().samples.is_empty() => Err(InputError::Folded { line }),
        _ => Ok(imported.finish()),
    }
}

/// Lines that say something, with their numbers from 1.
fn lines(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    // Editors of Windows mark UTF-8.
    let lines = (bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes))
        .split(|&byte| byte == b'\n')
        .map(<[u8]>::trim_ascii_end);
    (1..)
        .zip(lines)
        .filter(|(_, line)| !line.is_empty() && !is_comment(line))
}

fn is_comment(line: &[u8]) -> bool {
    match line {
        [b'#', b' ' | b'#', ..] => true,
        [b'#', ..] => !line.contains(&b';'),
        _ => false,
    }
}

/// Refuses files of which a part would silently be read as something else.
fn check_weights(bytes: &[u8]) -> Result<(), InputError> {
    // What difffolded.pl writes: the weights before and after.
    let mut differences = false;
    let mut others = false;
    for (line, text) in lines(bytes) {
        let text = String::from_utf8_lossy(text);
        let Some((stack, weight)) = split(&text) else {
            continue;
        };
        if fraction(weight).is_some_and(|fraction| fraction.fract() != 0.0) {
            let weight = weight.to_owned();
            return Err(InputError::FoldedFraction { line, weight });
        }
        let has_two = split(stack).is_some_and(|(_, before)| fraction(before).is_some());
        differences |= has_two;
        others |= !has_two;
    }
    match differences && !others {
        true => Err(InputError::FoldedDifference),
        false => Ok(()),
    }
}

/// The stack and its weight.
fn parse(line: &str) -> Option<(&str, u64)> {
    let (stack, weight) = split(line)?;
    let whole = weight.parse().ok();
    let weight = whole.or_else(|| fraction(weight).map(|fraction| fraction.round() as u64))?;
    Some((stack, weight))
}

/// The stack, and what may be its weight.
fn split(line: &str) -> Option<(&str, &str)> {
    let (stack, weight) = line.rsplit_once(' ')?;
    let stack = stack.trim_ascii();
    (!stack.is_empty()).then_some((stack, weight))
}

/// The number that a text of digits is, which may have a fraction.
fn fraction(text: &str) -> Option<f64> {
    let digits = |c: char| c.is_ascii_digit() || c == '.';
    text.parse().ok().filter(|_| text.chars().all(digits))
}

fn frame(text: &str, profile: &mut Profile) -> FrameId {
    let (name, mark) = match text
        .strip_suffix(']')
        .and_then(|text| text.rsplit_once("_["))
    {
        Some((name, mark @ ("k" | "i" | "j"))) => (name, mark),
        _ => (text, ""),
    };
    let kind = match mark {
        "k" => FunctionKind::Kernel,
        "j" => FunctionKind::Jit,
        _ if is_missing(name) => FunctionKind::Missing,
        _ => FunctionKind::User,
    };
    let named = NamedFrame {
        module: Arc::from(match kind {
            FunctionKind::Kernel => KERNEL,
            _ => "",
        }),
        kind,
        functions: vec![SymbolFrame {
            function: decoded(name).into(),
            file: None,
            line: None,
            inlined: mark == "i",
        }],
    };
    let id = profile.named.intern(named);
    profile.frames.intern(Frame::Named(id))
}

/// The kind of a file's weights.
struct Weights {
    /// The weight of one sample: 1, or if they are no counts the largest number that divides them
    /// all, which is the period if all samples had the same.
    divisor: u64,
    /// Whether quotients are believable as numbers of samples.
    counts: bool,
}

impl Weights {
    /// No recording has more samples than this: larger weights count something else, of which
    /// samples had various amounts.
    const MOST: u64 = 100_000_000;
    /// Numbers of samples are not all divisible by as much: such weights are nanoseconds, at a rate
    /// of 10,000 a second or less.
    const LEAST_PERIOD: u64 = 100_000;

    fn of(bytes: &[u8]) -> Self {
        let (mut divisor, mut sum) = (0, 0_u64);
        for (_, line) in lines(bytes) {
            if let Some((_, weight)) = parse(&String::from_utf8_lossy(line)) {
                divisor = greatest_common_divisor(divisor, weight);
                sum = sum.saturating_add(weight);
            }
        }
        let are_counts = sum <= Self::MOST && divisor < Self::LEAST_PERIOD;
        let divisor = if are_counts { 1 } else { divisor };
        Self {
            divisor,
            counts: sum / divisor <= Self::MOST,
        }
    }

    /// The number of samples of a weight; 1 if unknown.
    fn samples(&self, weight: u64) -> u64 {
        match self.counts {
            true => weight / self.divisor,
            false => 1,
        }
    }
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use prof_symbols::{SymbolOptions, Symbolizer};

    use super::*;
    use crate::calltree::{CallTree, Split};
    use crate::folded_name::encoded;
    use crate::format::folded::write;
    use crate::symbolize::SymbolizedProfile;
    use crate::testing::everything;

    fn named(profile: Profile) -> SymbolizedProfile {
        SymbolizedProfile::new(profile, &Symbolizer::new(SymbolOptions::default()))
    }

    fn check(text: &str, expected: &[(&str, u64, u64)]) {
        let profile = read(text.as_bytes()).unwrap();
        let samples: Vec<_> = profile
            .samples
            .iter()
            .map(|sample| {
                let mut names: Vec<_> = profile
                    .stacks
                    .frames(sample.stack)
                    .map(|frame| match profile.frames[frame] {
                        Frame::Named(id) => profile.named[id].functions[0].function.to_string(),
                        other => format!("{other:?}"),
                    })
                    .collect();
                names.reverse();
                (names.join(">"), sample.period, sample.count)
            })
            .collect();
        let samples: Vec<_> = samples
            .iter()
            .map(|(stack, weight, count)| (stack.as_str(), *weight, *count))
            .collect();
        assert_eq!(samples, expected, "{text}");
    }

    #[test]
    fn lines_are_stacks() {
        check("main;f 3\nmain 4\n", &[("main>f", 3, 3), ("main", 4, 4)]);
        check(
            "# made by x\r\n\r\nmain;f(int, char) 3\r\n",
            &[("main>f(int, char)", 3, 3)],
        );
        check("a;b 3.0\na 1e3\n;; 4", &[("a>b", 3, 3), (">>", 4, 4)]);
        // A name that ends in a number.
        check("a;worker 7 3\na 4", &[("a>worker 7", 3, 3), ("a", 4, 4)]);
        check("a;sys_[k];inl_[i] 1", &[("a>sys>inl", 1, 1)]);
        check("a 0\nb 1", &[("b", 1, 1)]);
    }

    #[test]
    fn a_mark_of_utf_8_is_no_name_and_names_may_begin_with_a_number_sign() {
        check(
            "\u{feff}main;f 3\nmain 4\n",
            &[("main>f", 3, 3), ("main", 4, 4)],
        );
        check(
            "# made by x 3\n#1 pool;main 3\n#x 4\n## a;b 5\n",
            &[("#1 pool>main", 3, 3)],
        );
    }

    /// Whatever programs call their threads and functions.
    #[test]
    fn every_name_is_read_as_it_was_written() {
        let parts = [
            ";", " ", "#", "7", ".", "_[k]", "_[i]", "\u{37e}", "\u{a0}", "\u{ff03}", "\\",
            "\\u{20}", "\\u{5c}", "u{37e}", "a", "\u{e9}", ":", "[", "]", "0x10", "1e3",
        ];
        let mut seed = 1_u64;
        let mut random = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as usize % below
        };
        for _ in 0..20_000 {
            let names: Vec<String> = (0..=random(2))
                .map(|_| {
                    (0..=random(4))
                        .map(|_| parts[random(parts.len())])
                        .collect()
                })
                .collect();
            let line: Vec<_> = names.iter().map(|name| encoded(name, true)).collect();
            let text = format!("a;b 1\n{} 4\n", line.join(";"));
            check(&text, &[("a>b", 1, 1), (&names.join(">"), 4, 4)]);
            let symbolized = named(read(text.as_bytes()).unwrap());
            let tree = CallTree::new(&symbolized, &everything(), Split::Nothing).unwrap();
            let mut again = Vec::new();
            write(&tree, &mut again).unwrap();
            let again = String::from_utf8(again).unwrap();
            let mut lines: Vec<_> = text.lines().collect();
            lines.sort_unstable();
            assert!(again.lines().eq(lines), "{names:?}: {again}");
        }
    }

    #[test]
    fn numbers_of_samples_come_from_the_weights() {
        check(
            "a 300300300\nb 100100100\n",
            &[("a", 300_300_300, 3), ("b", 100_100_100, 1)],
        );
        // A short recording of prof: less than are possible as numbers of samples.
        check(
            "a 3003003\nb 1001001\n",
            &[("a", 3_003_003, 3), ("b", 1_001_001, 1)],
        );
        check("a 50000\n", &[("a", 50_000, 50_000)]);
        check(
            "a 3003003001\nb 1001001002\n",
            &[("a", 3_003_003_001, 1), ("b", 1_001_001_002, 1)],
        );
    }

    #[test]
    fn what_is_no_line_is_counted() {
        let profile = read(b"main;f 3\nwhat is this\nmain \xff 4\n").unwrap();
        assert_eq!(profile.quality.losses.malformed, 1);
        assert_eq!(profile.samples.len(), 2);
        let error = read(b"\n# x\nwhat is this\n").unwrap_err();
        assert!(error.to_string().contains("line 3"), "{error}");
    }

    #[test]
    fn weights_that_would_change_are_refused() {
        let check = |text: &str, expected: &str| {
            let error = read(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        };
        check("a;b 3\n\na;c 4.5\n", "4.5 in line 3");
        check("# x\nq;r;s 10 20\nq;r 0 5\n", "`prof diff`");
        check("q;r;s 10.0 20\n", "`prof diff`");
    }

    #[test]
    fn folded_stacks_are_distinguished_from_other_texts() {
        for (text, expected) in [
            (&b"main;f 3\n"[..], true),
            (b"# comment\nmain 3", true),
            (b"this is a text", false),
            (b"main;f 3\nwhat is this\n", true),
            (b"main;f 3\nwhat is this\nand this\n", false),
            (b"", false),
            (b"\x08\x01 3\n", false),
            (b"PERFILE2", false),
        ] {
            assert_eq!(is_folded(text), expected, "{text:?}");
        }
    }
}
