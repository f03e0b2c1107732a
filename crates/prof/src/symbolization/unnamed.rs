//! Which modules have no symbols, and why.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use prof_model::counted;
use prof_report::Language;
use prof_report::symbolize::{Doubt, ModuleNaming};
use prof_symbols::ModuleStatus;

use super::packages;

/// The most lines, and the most modules in a line.
const MOST: usize = 5;

/// Why names may be those of another program.
const NEWER: &str = "the file is newer than the recording, and without a build id nothing tells \
                     whether it is the program that ran; record again";
const ELSEWHERE: &str = "nothing in the recording tells whether it is of this machine; report where \
                         it was recorded, or run `prof archive` there";

/// A line for each reason why important modules have no symbols, with the remedy; and for modules
/// whose symbols could be more detailed.
pub(crate) fn unnamed(all: &[ModuleNaming]) -> Vec<String> {
    let stripped = all.iter().filter(|naming| naming.unnamed_samples > 0);
    let stripped = stripped.filter_map(|naming| stripped_file(&naming.status));
    let files: Vec<PathBuf> = stripped.map(Path::to_owned).collect();
    in_words(all, &packages::remedies(&files))
}

fn stripped_file(status: &ModuleStatus) -> Option<&Path> {
    match status {
        ModuleStatus::Stripped { path, .. } => Some(path),
        _ => None,
    }
}

/// `remedies`: how to get the symbols of stripped files, as far as it is known.
fn in_words(all: &[ModuleNaming], remedies: &HashMap<PathBuf, String>) -> Vec<String> {
    let samples: u64 = all.iter().map(|naming| naming.samples).sum();
    let lacking = || all.iter().filter(|naming| naming.unnamed_samples > 0);
    let matters = |naming: &&ModuleNaming| naming.unnamed_samples.saturating_mul(100) >= samples;
    let with_reason = lacking().filter(matters).map(|naming| {
        let name = format!(
            "{} ({})",
            naming.module,
            counted(naming.unnamed_samples, "sample")
        );
        let reason = match naming.status.is_named() {
            true => "no symbol covers this code".to_owned(),
            false => match naming.runtime.and_then(to_name_code) {
                Some(remedy) => format!("{}; {remedy}", naming.status.reason()),
                None => {
                    let file = stripped_file(&naming.status);
                    let status = naming.status.to_string();
                    match file.and_then(|file| remedies.get(file)) {
                        Some(remedy) => status.replace(ModuleStatus::INSTALL, remedy),
                        None => status,
                    }
                }
            },
        };
        (reason, name)
    });
    let mut lines: Vec<String> = grouped(with_reason)
        .map(|(reason, modules)| format!("symbols are missing in {modules}: {reason}"))
        .collect();
    let others = lacking().filter(|naming| !matters(naming)).count();
    if others > 0 {
        let others = counted(others as u64, "other module");
        lines.push(format!("some symbols are missing in {others}"));
    }
    let missed = all.iter().filter_map(|naming| {
        // If there are no symbols at all, this is part of the reason.
        let problem = naming
            .downloads
            .clone()
            .filter(|_| naming.status.is_named())?;
        Some((problem, naming.module.clone()))
    });
    lines.extend(
        grouped(missed)
            .map(|(problem, modules)| format!("no inlined functions in {modules}: {problem}")),
    );
    let cut = all.iter().filter(|naming| naming.unnamed_samples == 0);
    let cut = cut.filter(|naming| matches!(naming.status, ModuleStatus::JitMapTooLarge { .. }));
    lines.extend(cut.map(|naming| {
        let (module, reason) = (&naming.module, naming.status.reason());
        format!("symbols of {module} may be outdated: {reason}")
    }));
    let doubted = all
        .iter()
        .filter(|naming| naming.samples.saturating_mul(100) >= samples);
    let doubted = doubted.filter_map(|naming| {
        let why = match naming.doubt? {
            Doubt::Newer => NEWER,
            Doubt::Elsewhere => ELSEWHERE,
        };
        Some((why.to_owned(), naming.module.clone()))
    });
    lines.extend(
        grouped(doubted)
            .map(|(reason, modules)| format!("symbols of {modules} may be wrong: {reason}")),
    );
    lines
}

/// How a program of this language, when it is started, is made to name the code that it compiles.
fn to_name_code(language: Language) -> Option<&'static str> {
    Some(match language {
        Language::JavaScript => {
            "start it as `node --perf-basic-prof --no-logfile-per-isolate --logfile=+`"
        }
        Language::Java => {
            "start it as `java -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit` (JDK 17 \
             and later)"
        }
        Language::CSharp => {
            "start it with `COMPlus_PerfMapEnabled=3` in its environment (Mono: \
             `MONO_ENV_OPTIONS=--jitmap`)"
        }
        Language::Ruby => "start it as `ruby --yjit --yjit-perf` (Ruby 3.3 and later)",
        Language::Erlang => "start it with `ERL_FLAGS='+JPperf map'` in its environment",
        Language::Php => "start it as `php -d opcache.jit_debug=16 -d pcre.jit=0`",
        _ => return None,
    })
}

/// Each reason once, in the order of their first modules, with its modules.
fn grouped(
    with_reason: impl Iterator<Item = (String, String)>,
) -> impl Iterator<Item = (String, String)> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for (reason, module) in with_reason {
        match groups.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, modules)) => modules.push(module),
            None => groups.push((reason, vec![module])),
        }
    }
    groups.into_iter().take(MOST).map(|(reason, mut modules)| {
        let others = modules.split_off(modules.len().min(MOST)).len();
        if others > 0 {
            modules.push(counted(others as u64, "other module"));
        }
        (reason, modules.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use prof_model::BuildId;

    use super::*;

    fn naming(module: &str, status: ModuleStatus, unnamed_samples: u64) -> ModuleNaming {
        ModuleNaming {
            module: module.to_owned(),
            status,
            runtime: None,
            downloads: None,
            doubt: None,
            samples: 100,
            unnamed_samples,
            unnamed_innermost: 0,
            addresses: 10,
            named: 5,
        }
    }

    fn stripped(module: &str, downloads: Option<&str>) -> ModuleStatus {
        ModuleStatus::Stripped {
            path: PathBuf::from("/usr/lib").join(module),
            build_id: BuildId::new(module.as_bytes()),
            downloads: downloads.map(str::to_owned),
        }
    }

    fn check(all: &[ModuleNaming], expected: &[&str]) {
        assert_eq!(in_words(all, &HashMap::new()), expected);
    }

    #[test]
    fn the_remedy_for_run_time_code_is_that_of_its_runtime() {
        let status = ModuleStatus::NoJitMap {
            pid: 7,
            path: "/tmp/perf-7.map".into(),
        };
        let jit = ModuleNaming {
            runtime: Some(Language::CSharp),
            ..naming("[jit] (process 7)", status, 90)
        };
        let line = "symbols are missing in [jit] (process 7) (90 samples): process 7 wrote no map \
                    of its run-time code (/tmp/perf-7.map); start it with \
                    `COMPlus_PerfMapEnabled=3` in its environment (Mono: \
                    `MONO_ENV_OPTIONS=--jitmap`)";
        check(&[jit], &[line]);
    }

    #[test]
    fn run_time_code_of_an_unknown_runtime_has_no_remedy() {
        for runtime in [None, Some(Language::Lua)] {
            let status = ModuleStatus::NoJitMap {
                pid: 7,
                path: "/tmp/perf-7.map".into(),
            };
            let jit = ModuleNaming {
                runtime,
                ..naming("[jit] (process 7)", status, 90)
            };
            let line = "symbols are missing in [jit] (process 7) (90 samples): process 7 wrote no \
                        map of its run-time code (/tmp/perf-7.map)";
            check(&[jit], &[line]);
        }
    }

    #[test]
    fn equal_reasons_are_reported_once() {
        let all = [
            naming("libc.so.6", stripped("libc.so.6", None), 90),
            naming("[kernel]", ModuleStatus::KernelHidden, 50),
            naming("bash", stripped("bash", None), 7),
            naming("tiny", stripped("tiny", None), 1),
        ];
        let stripped = "symbols are missing in libc.so.6 (90 samples), bash (7 samples): \
                        stripped; install debug packages, set DEBUGINFOD_URLS to download debug \
                        info, or build without stripping";
        let kernel = "symbols are missing in [kernel] (50 samples): the kernel hides its symbols \
                      from this user; report as root, or run `sudo sysctl kernel.kptr_restrict=0 \
                      kernel.perf_event_paranoid=1`";
        let other = "some symbols are missing in 1 other module";
        check(&all, &[stripped, kernel, other]);
    }

    #[test]
    fn servers_without_the_file_are_no_remedy() {
        let requested = stripped("bash", Some("no debuginfod server has the debug info"));
        let line = "symbols are missing in bash (9 samples): stripped, and no debuginfod server has \
                    the debug info; install debug packages, or build without stripping";
        check(&[naming("bash", requested, 9)], &[line]);
        let inlined = |module| ModuleNaming {
            downloads: Some("the download of the debug info was skipped".into()),
            ..naming(module, ModuleStatus::Named, 0)
        };
        let line = "no inlined functions in a, b: the download of the debug info was skipped";
        check(&[inlined("a"), inlined("b")], &[line]);
    }

    #[test]
    fn packages_are_named() {
        let path = PathBuf::from("/usr/lib/libc.so.6");
        let remedies = HashMap::from([(path, "install libc6-dbg".to_owned())]);
        let line = "symbols are missing in libc.so.6 (9 samples): stripped; install libc6-dbg, set \
                    DEBUGINFOD_URLS to download debug info, or build without stripping";
        let all = [naming("libc.so.6", stripped("libc.so.6", None), 9)];
        assert_eq!(in_words(&all, &remedies), [line]);
    }

    #[test]
    fn newer_files_are_named() {
        let newer = |module, samples| ModuleNaming {
            doubt: Some(Doubt::Newer),
            samples,
            ..naming(module, ModuleStatus::Named, 0)
        };
        let line = "symbols of a, b may be wrong: the file is newer than the recording, and without \
                    a build id nothing tells whether it is the program that ran; record again";
        check(&[newer("a", 90), newer("b", 9), newer("tiny", 0)], &[line]);
    }

    #[test]
    fn names_of_another_machine_are_doubted_once() {
        let elsewhere = |module| ModuleNaming {
            doubt: Some(Doubt::Elsewhere),
            ..naming(module, ModuleStatus::Named, 0)
        };
        let line = "symbols of a, b may be wrong: nothing in the recording tells whether it is of \
                    this machine; report where it was recorded, or run `prof archive` there";
        check(&[elsewhere("a"), elsewhere("b")], &[line]);
    }
}
