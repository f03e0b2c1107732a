//! The profiles of gperftools and jemalloc: addresses, and the mappings of their process.
//!
//! ```text
//! CPU profile (binary)   0 3 0 PERIOD 0 | COUNT DEPTH ADDRESS… | … | 0 1 0 | mappings
//! heap of tcmalloc       heap profile: 1: 2 [3: 4] @ heapprofile
//!                          1: 2 [3: 4] @ 0x10 0x20
//! heap of jemalloc       heap_v2/524288
//!                        @ 0x10 0x20
//!                          t*: 1: 2 [0: 0]
//! ```
//!
//! Sources: gperftools, docs/cpuprofile-fileformat.html, docs/heapprofile.html; jemalloc,
//! src/prof_data.c; github.com/google/pprof, profile/legacy_profile.go.

use prof_model::StackEnd;
use rustc_hash::FxHashMap;

use super::imported::{Imported, ImportedThread};
use super::mapped::MappedCode;
use crate::profile::{Event, Frame, FrameId, Profile, Unit, Weight};

/// How many words a CPU profile begins with.
const HEADER: usize = 5;

/// Reads a CPU profile, if the bytes begin as one.
pub(in crate::load) fn read_cpu(bytes: &[u8]) -> Option<Profile> {
    let (words, _) = bytes.as_chunks::<8>();
    let word = |at: usize| words.get(at).map(|&word| u64::from_le_bytes(word));
    let header: Vec<u64> = (0..HEADER).map_while(word).collect();
    let [0, 3, 0, period, 0] = header[..] else {
        return None;
    };
    let mut samples: Vec<(u64, &[[u8; 8]])> = Vec::new();
    let mut at = HEADER;
    let end = loop {
        // A file that is cut off ends anywhere.
        let (Some(count), Some(depth)) = (word(at), word(at + 1)) else {
            break words.len();
        };
        let depth = usize::try_from(depth).unwrap_or(usize::MAX);
        let stack = words.get(at + 2..(at + 2).saturating_add(depth));
        let Some(stack) = stack.filter(|stack| !stack.is_empty()) else {
            break words.len();
        };
        at += 2 + depth;
        // The end.
        if count == 0 && stack == [[0; 8]] {
            break at;
        }
        samples.push((count, stack));
    };
    let maps = bytes.get(end * 8..).unwrap_or_default();
    let mut stacks = Stacks::new("cpu-time", Unit::Nanoseconds, maps);
    for (count, stack) in samples {
        let addresses = stack.iter().map(|&word| u64::from_le_bytes(word));
        let weight = Weight {
            value: count.saturating_mul(period).saturating_mul(1000),
            samples: count,
        };
        // The innermost address is that of an instruction, the others are returned to.
        stacks.push(
            addresses.enumerate().map(|(depth, it)| (it, depth > 0)),
            weight,
        );
    }
    Some(stacks.imported.finish())
}

/// Reads the text of a heap profile, if the bytes begin as one.
pub(in crate::load) fn read_heap(bytes: &[u8]) -> Option<Profile> {
    const MAPPINGS: &str = "MAPPED_LIBRARIES:";
    let first = &bytes[..bytes.len().min(200)];
    let first = String::from_utf8_lossy(first);
    let first = first.lines().next()?;
    let is_tcmalloc = first.starts_with("heap profile:") && !first.contains("@ heap/");
    let rate = first
        .strip_prefix("heap_v2/")
        .or_else(|| first.split_once("@ heap_v2/").map(|(_, rate)| rate));
    if !is_tcmalloc && rate.is_none() {
        return None;
    }
    let rate: Option<f64> = rate.and_then(|rate| rate.trim().parse().ok());
    let text = String::from_utf8_lossy(bytes);
    let (stacks, maps) = text.split_once(MAPPINGS).unwrap_or((&text, ""));
    let mut read = Stacks::new("heap-bytes", Unit::Count("bytes".into()), maps.as_bytes());
    let mut addresses: Vec<u64> = Vec::new();
    for line in stacks.lines().skip(1) {
        let (counts, of_line) = line.split_once('@').unwrap_or((line, ""));
        if line.contains('@') {
            addresses = of_line.split_ascii_whitespace().filter_map(hex).collect();
        }
        // Of jemalloc, all threads together; others repeat it.
        let counts = counts.trim();
        let counts = match counts.strip_prefix('t') {
            Some(counts) => counts.strip_prefix("*:").unwrap_or_default(),
            None => counts,
        };
        let Some((objects, size)) = in_use(counts).filter(|_| !addresses.is_empty()) else {
            continue;
        };
        let weight = Weight {
            value: unsampled(objects, size, rate),
            samples: objects,
        };
        if size > 0 {
            read.push(addresses.iter().map(|&it| (it, true)), weight);
        }
    }
    Some(read.imported.finish())
}

/// `1: 2 [3: 4]`: objects and bytes that are in use, and in brackets all that were allocated.
fn in_use(counts: &str) -> Option<(u64, u64)> {
    let (used, _) = counts.split_once('[')?;
    let (objects, size) = used.split_once(':')?;
    Some((objects.trim().parse().ok()?, size.trim().parse().ok()?))
}

fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
}

/// The bytes that these samples stand for, if one was taken each `rate` bytes.
fn unsampled(objects: u64, size: u64, rate: Option<f64>) -> u64 {
    let Some(rate) = rate.filter(|&rate| rate > 1.0 && objects > 0) else {
        return size;
    };
    let mean = size as f64 / objects as f64;
    (size as f64 / (1.0 - (-mean / rate).exp())) as u64
}

/// A profile of one event, as it grows.
struct Stacks {
    imported: Imported,
    code: MappedCode,
    frames: FxHashMap<u64, FrameId>,
}

impl Stacks {
    fn new(event: &str, unit: Unit, maps: &[u8]) -> Self {
        let name = event.to_owned();
        Self {
            imported: Imported::new(vec![Event { name, unit }]),
            code: MappedCode::parse(maps),
            frames: FxHashMap::default(),
        }
    }

    /// Adds samples of a stack, innermost address first, each with whether it is returned to.
    fn push(&mut self, stack: impl Iterator<Item = (u64, bool)>, weight: Weight) {
        let mut frames: Vec<FrameId> = stack
            .map(|(address, is_return)| self.frame(address.saturating_sub(is_return.into())))
            .collect();
        if frames.is_empty() {
            let nothing = Frame::Cut(StackEnd::NotRecorded);
            frames.push(self.imported.profile().frames.intern(nothing));
        }
        let stack = self.imported.stack(frames.into_iter().rev());
        self.imported
            .push(0, stack, weight, &ImportedThread::default());
    }

    fn frame(&mut self, address: u64) -> FrameId {
        if let Some(&known) = self.frames.get(&address) {
            return known;
        }
        let profile = self.imported.profile();
        let frame = self.code.frame(address, profile);
        let frame = profile.frames.intern(frame);
        self.frames.insert(address, frame);
        frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "00400000-00500000 r-xp 00001000 fe:01 1234   /bin/app\n";

    /// Expects these samples: weight, number, and of each frame, outermost first, its offset.
    fn check(profile: Option<Profile>, expected: &[(u64, u64, &[u64])]) {
        let profile = profile.expect("a profile");
        let samples = profile.samples.iter().map(|sample| {
            let frames = profile.stacks.frames(sample.stack);
            let mut offsets: Vec<u64> = frames
                .map(|frame| match profile.frames[frame] {
                    Frame::Module { offset, .. } => offset.0,
                    Frame::Unknown(address) => address,
                    other => panic!("{other:?}"),
                })
                .collect();
            offsets.reverse();
            (sample.period, sample.count, offsets)
        });
        let samples: Vec<_> = samples.collect();
        let expected = expected
            .iter()
            .map(|&(weight, count, frames)| (weight, count, frames.to_vec()));
        assert_eq!(samples, expected.collect::<Vec<_>>());
    }

    #[test]
    fn cpu_profiles() {
        let words = [
            0, 3, 0, 10_000, 0, 2, 2, 0x40_0010, 0x40_0101, 1, 1, 0x99, 0, 1, 0,
        ];
        let mut bytes: Vec<u8> = words
            .iter()
            .flat_map(|word: &u64| word.to_le_bytes())
            .collect();
        bytes.extend(MAPS.as_bytes());
        let two: &[(u64, u64, &[u64])] =
            &[(20_000_000, 2, &[0x1100, 0x1010]), (10_000_000, 1, &[0x99])];
        check(read_cpu(&bytes), two);
        // Without its end, there are no mappings.
        check(
            read_cpu(&bytes[..9 * 8]),
            &[(20_000_000, 2, &[0x40_0100, 0x40_0010])],
        );
        assert!(read_cpu(&bytes[8..]).is_none());
    }

    #[test]
    fn heaps() {
        let tcmalloc = format!(
            "heap profile:   3:  300 [  9: 900] @ heapprofile\n   1:  100 [ 4: 400] @ 0x00400011 0x400101\n   0: 0 [5: 500] @ 0x400031\n\nMAPPED_LIBRARIES:\n{MAPS}"
        );
        check(
            read_heap(tcmalloc.as_bytes()),
            &[(100, 1, &[0x1100, 0x1010])],
        );
        let jemalloc = format!(
            "heap_v2/1\n  t*: 3: 300 [0: 0]\n  t0: 3: 300 [0: 0]\n@ 0x400011 0x400101\n  t*: 2: 200 [0: 0]\n  t0: 2: 200 [0: 0]\n\nMAPPED_LIBRARIES:\n{MAPS}"
        );
        check(
            read_heap(jemalloc.as_bytes()),
            &[(200, 2, &[0x1100, 0x1010])],
        );
        assert_eq!(unsampled(1, 100, Some(1000.0)), 1050);
        assert!(read_heap(b"heap profile: 1: 2 [3: 4] @ heap/1048576\n").is_none());
    }
}
