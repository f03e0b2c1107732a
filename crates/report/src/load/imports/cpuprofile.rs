//! The CPU profiles of V8: `node --cpu-prof`, and what DevTools of Chromium save.
//!
//! A tree of calls, and for each sample the node that it was taken in and the time until it, in
//! microseconds. Source: chromedevtools.github.io/devtools-protocol/v8/Profiler/#type-Profile

use std::collections::HashMap;
use std::sync::Arc;

use prof_model::short_file_name;
use prof_symbols::SymbolFrame;
use serde::Deserialize;

use super::imported::{Imported, ImportedThread};
use crate::error::InputError;
use crate::profile::{Event, Frame, FrameId, NamedFrame, Profile, StackId, Unit, Weight};
use crate::symbolize::FunctionKind;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CpuProfile {
    nodes: Vec<Node>,
    #[serde(default)]
    samples: Vec<u64>,
    #[serde(default)]
    time_deltas: Vec<i64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Node {
    id: u64,
    call_frame: CallFrame,
    #[serde(default)]
    children: Vec<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallFrame {
    function_name: String,
    #[serde(default)]
    url: String,
    /// From 0; -1 for code without a script.
    #[serde(default)]
    line_number: i64,
}

/// Whether it looks like one: an object whose first members are those of a profile.
pub(in crate::load) fn is_cpuprofile(bytes: &[u8]) -> bool {
    const LOOKED_AT: usize = 4096;
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(LOOKED_AT)]);
    start.trim_start().starts_with('{')
        && ["\"nodes\"", "\"callFrame\""]
            .iter()
            .all(|it| start.contains(it))
}

/// Reads it.
///
/// # Errors
/// It is damaged or cut off.
pub(in crate::load) fn read(bytes: &[u8]) -> Result<Profile, InputError> {
    let read: CpuProfile = serde_json::from_slice(bytes).map_err(InputError::CpuProfile)?;
    let mut imported = Imported::new(vec![Event {
        name: "cpu-time".into(),
        unit: Unit::Nanoseconds,
    }]);
    let stacks = stacks(&read.nodes, &mut imported);
    for (at, node) in read.samples.iter().enumerate() {
        // A node lasts until the next sample; the last one as long as the one before.
        let length = read.time_deltas.get(at + 1).or(read.time_deltas.get(at));
        let length = length.copied().unwrap_or(0);
        let Some(stack) = stacks.get(node) else {
            imported.malformed();
            continue;
        };
        // Clocks of several CPUs may step back.
        if let (Some(stack), Ok(length @ 1..)) = (stack, u64::try_from(length)) {
            let weight = Weight {
                value: length.saturating_mul(1000),
                samples: 1,
            };
            imported.push(0, *stack, weight, &ImportedThread::default());
        }
    }
    Ok(imported.finish())
}

/// By node: its stack; `None` while nothing runs.
fn stacks(nodes: &[Node], imported: &mut Imported) -> HashMap<u64, Option<StackId>> {
    const ROOT: &str = "(root)";
    const IDLE: &str = "(idle)";
    let by_id: HashMap<u64, &Node> = nodes.iter().map(|node| (node.id, node)).collect();
    let mut stacks = HashMap::new();
    let mut pending: Vec<(u64, Option<StackId>)> = Vec::new();
    pending.extend(nodes.first().map(|root| (root.id, None)));
    while let Some((id, caller)) = pending.pop() {
        let Some(node) = by_id.get(&id).filter(|_| !stacks.contains_key(&id)) else {
            continue;
        };
        let stack = match &*node.call_frame.function_name {
            ROOT | IDLE if caller.is_none() => None,
            _ => {
                let frame = frame(&node.call_frame, imported.profile());
                Some(imported.profile().stacks.intern(caller, frame))
            }
        };
        stacks.insert(id, stack);
        pending.extend(node.children.iter().map(|&child| (child, stack)));
    }
    stacks
}

fn frame(call: &CallFrame, profile: &mut Profile) -> FrameId {
    let is_script = !call.url.is_empty();
    let function = match &*call.function_name {
        "" if is_script => "(anonymous)",
        "" => "[no name]",
        name => name,
    };
    let named = NamedFrame {
        module: short_file_name(&call.url).into(),
        kind: FunctionKind::Jit,
        functions: vec![SymbolFrame {
            function: Arc::from(function),
            file: is_script.then(|| Arc::from(call.url.as_str())),
            line: u32::try_from(call.line_number.saturating_add(1))
                .ok()
                .filter(|_| is_script),
            inlined: false,
        }],
    };
    let named = profile.named.intern(named);
    profile.frames.intern(Frame::Named(named))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_have_the_calls_of_their_nodes() {
        let node = |id, name: &str, children: &str| {
            format!(
                r#"{{"id":{id},"callFrame":{{"functionName":"{name}","scriptId":"0","url":"file:///a.js","lineNumber":3,"columnNumber":1}},"hitCount":1,"children":[{children}]}}"#
            )
        };
        let nodes = [
            node(1, "(root)", "2,4"),
            node(2, "main", "3,2"),
            node(3, "work", ""),
            node(4, "(idle)", ""),
        ];
        let text = format!(
            r#"{{"nodes":[{}],"startTime":0,"endTime":9,"samples":[3,4,2,3,9],"timeDeltas":[0,5,6,7,8]}}"#,
            nodes.join(",")
        );
        assert!(is_cpuprofile(text.as_bytes()));
        let profile = read(text.as_bytes()).unwrap();
        let samples = profile.samples.iter().map(|sample| {
            let frames = profile.stacks.frames(sample.stack);
            (sample.period, frames.count())
        });
        assert_eq!(
            samples.collect::<Vec<_>>(),
            [(5_000, 2), (7_000, 1), (8_000, 2)]
        );
        assert_eq!(profile.quality.losses.malformed, 1);
        let cut = &text.as_bytes()[..text.len() / 2];
        assert!(is_cpuprofile(cut) && read(cut).is_err());
    }
}
