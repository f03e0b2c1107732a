//! The text of `perf script` and `prof script`.
//!
//! ```text
//! comm pid/tid [cpu] seconds: period event:
//!         address function+0x1f (module)
//!         address function (inlined)
//! ```

use std::sync::LazyLock;

use prof_model::{Module, Pid, Tid};
use prof_symbols::SymbolFrame;
use regex::Regex;
use rustc_hash::FxHashMap;

use super::imported::{Imported, ImportedThread, KERNEL, is_missing};
use crate::profile::{Event, Frame, FrameId, NamedFrame, Profile, Unit, Weight};
use crate::symbolize::FunctionKind;

/// A sample's first line.
#[derive(Debug, PartialEq)]
struct Headline<'a> {
    thread: &'a str,
    pid: Pid,
    tid: Tid,
    period: Option<u64>,
    event: &'a str,
    /// The frame, if it stands in the same line: then it is the only one.
    frame: &'a str,
}

/// A frame of a stack.
#[derive(Debug, PartialEq)]
struct FrameLine<'a> {
    address: u64,
    function: &'a str,
    module: &'a str,
}

/// Whether a sample begins the text, after comments.
pub(in crate::load) fn is_perf_script(bytes: &[u8]) -> bool {
    const LOOKED_AT: usize = 64 << 10;
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(LOOKED_AT)]);
    let mut lines = start.lines().filter(|line| is_said(line));
    let headline = lines.next().and_then(headline);
    let next = lines.next();
    headline.is_some_and(|it| frame_line(it.frame).is_some() || next.and_then(frame_line).is_some())
}

/// Reads such text. Lines that are neither are counted as malformed samples.
pub(in crate::load) fn read(bytes: &[u8]) -> Profile {
    let mut reader = Reader {
        imported: Imported::new(Vec::new()),
        frames: FxHashMap::default(),
    };
    let mut stack = Vec::new();
    let mut sample: Option<String> = None;
    for line in bytes.split(|&byte| byte == b'\n') {
        let line = String::from_utf8_lossy(line);
        if !is_said(&line) {
            continue;
        }
        if let Some(found) = headline(&line) {
            reader.push(sample.as_deref(), &mut stack);
            stack.extend(frame_line(found.frame).map(|it| reader.frame(&it)));
            sample = Some(line.into_owned());
        } else if let Some(found) = frame_line(&line) {
            stack.push(reader.frame(&found));
        } else {
            reader.imported.malformed();
        }
    }
    reader.push(sample.as_deref(), &mut stack);
    reader.imported.finish()
}

fn is_said(line: &str) -> bool {
    !line.trim().is_empty() && !line.starts_with('#')
}

fn headline(line: &str) -> Option<Headline<'_>> {
    static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let pattern = r"^\s*(\S.*?)\s+(\d+)(?:/(\d+))?\s+(?:\[\d+\]\s+)?\d+\.\d+:\s+(?:(\d+)\s+)?(\S+):(?:\s|$)";
        Regex::new(pattern).ok()
    });
    let found = PATTERN.as_ref()?.captures(line)?;
    let text = |group| found.get(group).map(|it| it.as_str());
    let pid = text(2)?.parse().ok()?;
    Some(Headline {
        thread: text(1)?,
        pid,
        tid: text(3).map_or(Some(pid), |tid| tid.parse().ok())?,
        period: text(4).and_then(|period| period.parse().ok()),
        event: text(5)?,
        frame: line.get(found.get(0)?.end()..).unwrap_or_default(),
    })
}

fn frame_line(line: &str) -> Option<FrameLine<'_>> {
    let line = line.trim();
    let (address, rest) = line.split_once(' ')?;
    let address = u64::from_str_radix(address, 16).ok()?;
    let rest = rest.trim_start().strip_suffix(')')?;
    let rest = rest.strip_suffix(" (deleted)").unwrap_or(rest);
    let (symbol, module) = rest.rsplit_once(" (")?;
    let offset = symbol.rsplit_once("+0x");
    let is_hex = |text: &str| text.bytes().all(|it| it.is_ascii_hexdigit());
    // Code without a name is called after its file, and its offset is not one in a function.
    let is_file = |name: &str| name.starts_with('[') || module.rsplit('/').next() == Some(name);
    Some(FrameLine {
        address,
        function: match offset {
            Some((function, offset)) if is_hex(offset) && !is_file(function) => function,
            _ => symbol,
        },
        module,
    })
}

struct Reader {
    imported: Imported,
    frames: FxHashMap<(String, String), FrameId>,
}

impl Reader {
    /// Adds the sample of this first line with its frames, the innermost first, which are used up.
    fn push(&mut self, line: Option<&str>, stack: &mut Vec<FrameId>) {
        let Some(sample) = line.and_then(headline) else {
            stack.clear();
            return;
        };
        let event = self.event(&sample);
        let stack = self.imported.stack(stack.drain(..).rev());
        let thread = ImportedThread {
            pid: sample.pid,
            tid: sample.tid,
            name: sample.thread,
        };
        let weight = Weight {
            value: sample.period.unwrap_or(1),
            samples: 1,
        };
        self.imported.push(event, stack, weight, &thread);
    }

    fn event(&mut self, sample: &Headline<'_>) -> usize {
        let events = &mut self.imported.profile().events;
        let known = events.iter().position(|event| event.name == sample.event);
        known.unwrap_or_else(|| {
            let unit = match sample.period {
                Some(_) => Unit::of_event(sample.event),
                None => Unit::Count("samples".into()),
            };
            // The numbers of events have 16 bits.
            if events.len() <= usize::from(u16::MAX) {
                let name = sample.event.to_owned();
                events.push(Event { name, unit });
            }
            events.len() - 1
        })
    }

    fn frame(&mut self, line: &FrameLine<'_>) -> FrameId {
        let key = (line.function.to_owned(), line.module.to_owned());
        if let Some(&known) = self.frames.get(&key) {
            return known;
        }
        let profile = self.imported.profile();
        let named = profile.named.intern(named(line));
        let frame = profile.frames.intern(Frame::Named(named));
        self.frames.insert(key, frame);
        frame
    }
}

fn named(line: &FrameLine<'_>) -> NamedFrame {
    /// The kernel's half of the address space begins here.
    const KERNEL_HALF: u64 = 1 << 63;
    let inlined = line.module == "inlined";
    let module = match line.module {
        "inlined" | "[unknown]" => String::new(),
        path => Module::from_path(path).short_name(),
    };
    let kind = if is_missing(line.function) {
        FunctionKind::Missing
    } else if line.address >= KERNEL_HALF || module.starts_with("[kernel") {
        FunctionKind::Kernel
    } else {
        FunctionKind::User
    };
    let function = match line.function {
        "[unknown]" => "[no name]",
        name => name,
    };
    NamedFrame {
        module: match kind {
            FunctionKind::Kernel => KERNEL.into(),
            _ => module.into(),
        },
        kind,
        functions: vec![SymbolFrame {
            function: function.into(),
            file: None,
            line: None,
            inlined,
        }],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let head = |line| headline(line).map(|it| (it.thread, it.pid, it.tid, it.period, it.event));
        assert_eq!(
            head("my app 12/13 [001]  5.000001:     250000 cpu-clock:u: "),
            Some(("my app", 12, 13, Some(250_000), "cpu-clock:u"))
        );
        assert_eq!(
            head("swapper     0 [000] 176.1:  cycles: "),
            Some(("swapper", 0, 0, None, "cycles"))
        );
        assert_eq!(head("main;work 12"), None);
        let frame = |line| frame_line(line).map(|it| (it.address, it.function, it.module));
        assert_eq!(
            frame("\t    55d0 std::vector<int (*)(int)>::f(int)+0x1f (/bin/a (deleted))"),
            Some((0x55d0, "std::vector<int (*)(int)>::f(int)", "/bin/a"))
        );
        assert_eq!(
            frame("\t 10 work (inlined)"),
            Some((0x10, "work", "inlined"))
        );
        assert_eq!(
            frame("\t 10 libz.so.1+0x10 (/usr/lib/libz.so.1)"),
            Some((0x10, "libz.so.1+0x10", "/usr/lib/libz.so.1"))
        );
        assert_eq!(frame("\t work (inlined)"), None);
    }

    #[test]
    fn samples_have_their_frames() {
        let text = "# comment\n\n\
            app 1/2 [000] 0.5: 4 cycles: \n\t 10 f+0x1 (/bin/app)\n\t 20 main+0x9 (/bin/app)\n\n\
            app 1/2 [000] 0.6: 5 cycles:  ffffffff81000000 poll+0x1 ([kernel.kallsyms])\nodd\n";
        assert!(is_perf_script(text.as_bytes()));
        let profile = read(text.as_bytes());
        assert_eq!(profile.samples.len(), 2);
        assert_eq!(profile.quality.losses.malformed, 1);
        let depths = profile.samples.iter();
        let depths = depths.map(|it| (it.period, profile.stacks.frames(it.stack).count()));
        assert_eq!(depths.collect::<Vec<_>>(), [(4, 2), (5, 1)]);
        assert!(!is_perf_script(b"main;work 12\n"));
    }
}
