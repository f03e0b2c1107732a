//! Recordings of CPUs with LBR, constructed from those of any machine.
#![allow(clippy::unwrap_used, reason = "a test, helpers included")]

use std::ops::Range;

/// `PERF_SAMPLE_IP | TID | TIME | CALLCHAIN | PERIOD`: the sample type of `perf record --call-graph
/// fp`.
const SAMPLE_TYPE: u64 = 0x127;
/// `PERF_SAMPLE_BRANCH_STACK`
const BRANCH_STACK: u64 = 1 << 11;
/// `PERF_SAMPLE_BRANCH_USER | CALL_STACK | NO_FLAGS | NO_CYCLES | HW_INDEX`: the branch type of
/// `--call-graph lbr`.
const BRANCH_TYPE: u64 = 1 | 1 << 11 | 1 << 14 | 1 << 15 | 1 << 17;
/// `PERF_SAMPLE_BRANCH_ANY | HW_INDEX`: the branch type of `-b` (`--branch-stack`).
const ANY_BRANCH: u64 = 1 << 3 | 1 << 17;
/// `PERF_CONTEXT_USER`
const CONTEXT_USER: u64 = -512_i64 as u64;

/// Rewrites a recording of `perf record --call-graph fp` into one of `--call-graph lbr`: callers
/// move from the call chain to the branch stack, most recent call first, where each has the address
/// of the call instead of the return address. Layouts: `struct perf_file_header` of perf, `struct
/// perf_event_attr` and PERF_RECORD_SAMPLE of linux/perf_event.h.
pub(crate) fn from_frame_pointers(file: &[u8]) -> Vec<u8> {
    rewrite(file, BRANCH_TYPE, sample)
}

/// Rewrites one of `perf record --call-graph fp` into one of `perf record -b --call-graph fp`: each
/// sample also has the last branches of any kind.
pub(crate) fn with_branches(file: &[u8]) -> Vec<u8> {
    rewrite(file, ANY_BRANCH, |record| {
        let ip = number(record, 8);
        let mut out = record.to_vec();
        // A jump within the function, over and over: from, to, flags.
        let words = [2, u64::MAX, ip, ip - 2, 0, ip, ip - 2, 0];
        out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        let size = u16::try_from(out.len()).unwrap();
        out[6..8].copy_from_slice(&size.to_le_bytes());
        out
    })
}

fn rewrite(file: &[u8], branch_type: u64, sample: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let (attrs, data) = (section(file, 24), section(file, 40));
    let mut out = file[..data.start].to_vec();
    let attr = attrs.start;
    assert_eq!(number(file, attr + 24), SAMPLE_TYPE, "what perf asks for");
    put(&mut out, attr + 24, SAMPLE_TYPE | BRANCH_STACK);
    put(&mut out, attr + 72, branch_type);
    let mut rest = &file[data.clone()];
    while !rest.is_empty() {
        let size = usize::from(u16::from_le_bytes([rest[6], rest[7]]));
        let (record, behind) = rest.split_at(size);
        rest = behind;
        match record[0] {
            9 => out.extend(sample(record)),
            _ => out.extend(record),
        }
    }
    let size = out.len() - data.start;
    put(&mut out, 48, size as u64);
    // Features come after the records, and are elsewhere now: none.
    out[72..104].fill(0);
    out
}

fn sample(record: &[u8]) -> Vec<u8> {
    /// Behind the header, ip, pid and tid, time and period.
    const CHAIN: usize = 40;
    let count = number(record, CHAIN) as usize;
    let chain: Vec<u64> = (1..=count)
        .map(|index| number(record, CHAIN + 8 * index))
        .collect();
    let user = chain.iter().position(|&ip| ip == CONTEXT_USER);
    let kept = user.map_or(count, |user| count.min(user + 2));
    let callers = chain[kept..].iter().filter(|&&address| address != 0);
    let mut calls: Vec<u64> = callers.map(|address| address - 1).collect();
    if calls.is_empty() {
        // perf 6.1 reads a first one even if there are none.
        calls.push(0);
    }
    let mut out = record[..CHAIN].to_vec();
    let mut words = vec![kept as u64];
    words.extend(&chain[..kept]);
    words.push(calls.len() as u64);
    words.push(u64::MAX);
    for (index, &call) in calls.iter().enumerate() {
        // The target of the last call matters only for the innermost function.
        let to = if index == 0 {
            chain[kept - 1]
        } else {
            calls[index - 1]
        };
        words.extend([call, to, 0]);
    }
    out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    let size = u16::try_from(out.len()).unwrap();
    out[6..8].copy_from_slice(&size.to_le_bytes());
    out
}

fn section(file: &[u8], at: usize) -> Range<usize> {
    let start = number(file, at) as usize;
    start..start + number(file, at + 8) as usize
}

fn number(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn put(bytes: &mut [u8], at: usize, number: u64) {
    bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
}
