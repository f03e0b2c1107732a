//! Profiles of other tools that are not read, by how they begin.

use crate::error::InputError;

/// What a file is, and how to get something that is read.
struct Foreign {
    /// Where in the file the sign is: in so many bytes from the start.
    within: usize,
    sign: &'static [u8],
    what: &'static str,
    remedy: &'static str,
}

/// How archives and profiles begin. The first match counts.
const KNOWN: [Foreign; 14] = [
    starting(b"BZh", "packed by bzip2", "unpack it first (bunzip2)"),
    starting(b"PK\x03\x04", "a zip archive", "unpack it first (unzip)"),
    starting(
        b"7z\xbc\xaf\x27\x1c",
        "a 7z archive",
        "unpack it first (7z x)",
    ),
    Foreign {
        within: 262,
        sign: b"ustar",
        what: "a tar archive",
        remedy: "unpack it first (tar xf)",
    },
    containing(
        b"speedscope.app/file-format-schema",
        "a profile for speedscope",
        "take the folded stacks that most of its writers can write (py-spy `-f raw`, rbspy `-f \
         collapsed`), or a pprof profile",
    ),
    containing(
        b"\"traceEvents\"",
        "a trace of Chromium",
        "save a CPU profile instead (.cpuprofile)",
    ),
    containing(
        b"\"preprocessedProfileVersion\"",
        "a profile of the Firefox Profiler",
        "it has no way back: take the recording that it was made from",
    ),
    containing(
        b"# callgrind format",
        "a profile of callgrind",
        "it has counts of a simulation and no stacks; callgrind_annotate and KCachegrind show it",
    ),
    starting(
        b"version: 1\ncreator: callgrind",
        "a profile of callgrind",
        "it has counts of a simulation and no stacks; callgrind_annotate and KCachegrind show it",
    ),
    starting(b"desc: ", "a profile of massif", "ms_print shows it"),
    starting(
        b"FLR\0",
        "a recording of the Java Flight Recorder",
        "jfrconv of async-profiler makes folded stacks of it (jfrconv -o collapsed)",
    ),
    starting(
        b"Nettrace",
        "a trace of .NET",
        "record the process with prof, or convert it (dotnet-trace convert) for speedscope",
    ),
    starting(b"gmon", "a profile of gprof", "gprof shows it"),
    starting(
        b"heaptrack version",
        "a recording of heaptrack",
        "heaptrack_print makes folded stacks of it (heaptrack_print --print-flamegraph)",
    ),
];

const fn starting(sign: &'static [u8], what: &'static str, remedy: &'static str) -> Foreign {
    Foreign {
        within: sign.len(),
        sign,
        what,
        remedy,
    }
}

const fn containing(sign: &'static [u8], what: &'static str, remedy: &'static str) -> Foreign {
    Foreign {
        within: 4096,
        sign,
        what,
        remedy,
    }
}

/// What the file is, if it is known.
pub(super) fn check(bytes: &[u8]) -> Result<(), InputError> {
    let is = |known: &&Foreign| {
        let start = &bytes[..bytes.len().min(known.within)];
        let mut windows = start.windows(known.sign.len());
        windows.any(|window| window == known.sign)
    };
    match KNOWN.iter().find(is) {
        Some(&Foreign { what, remedy, .. }) => Err(InputError::Foreign { what, remedy }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_profiles_are_named() {
        let check_is = |bytes: &[u8], expected: &str| {
            let error = check(bytes).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        check_is(b"BZh91AY", "bunzip2");
        check_is(b"# callgrind format\nevents: Ir\n", "callgrind_annotate");
        check_is(
            b"{\"$schema\": \"https://www.speedscope.app/file-format-schema.json\"}",
            "-f raw",
        );
        check_is(&[&[0; 257][..], b"ustar\0"].concat(), "tar xf");
        assert!(check(b"main;work 3\n").is_ok());
        assert!(check(b"").is_ok());
    }
}
