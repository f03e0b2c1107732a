//! Offsets, as the table or the interpreter has them, and as a C compiler finds them in the headers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use prof_runtimes::python::{CodeBytes, CurrentFrame, EntryMark, Layout};

use crate::target::{Target, interpreters};

#[test]
fn offsets_are_those_of_the_headers() {
    let mut checked = 0;
    for path in interpreters() {
        let Some(headers) = headers(&path) else {
            continue;
        };
        checked += 1;
        let layout = *Target::start(&path).interpreter().layout();
        assert_eq!(fields(&layout), of_headers(&headers), "{}", path.display());
    }
    prof_needs::met(checked > 0, "the headers of CPython, and cc");
}

/// The folder of an interpreter's headers, if those of its own structs are there.
fn headers(interpreter: &Path) -> Option<PathBuf> {
    let name = interpreter.file_name()?;
    let folder = interpreter.parent()?.parent()?.join("include").join(name);
    let is_there = folder.join("internal/pycore_pystate.h").exists();
    is_there.then_some(folder)
}

fn of_headers(folder: &Path) -> BTreeMap<String, u64> {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/offsets.c");
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("offsets");
    let status = Command::new("cc")
        .arg(format!("-I{}", folder.display()))
        .arg(format!("-I{}/internal", folder.display()))
        .args([source.as_ref(), "-o".as_ref(), program.as_os_str()])
        .status();
    assert!(status.unwrap().success());
    let output = Command::new(program).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let fields = text.lines().map(|line| {
        let (name, offset) = line.split_once(' ').unwrap();
        (name.to_owned(), offset.parse().unwrap())
    });
    fields.collect()
}

/// The offsets that the C program prints.
fn fields(layout: &Layout) -> BTreeMap<String, u64> {
    let mut fields = vec![
        ("interpreters_head", layout.interpreters_head),
        ("interpreter_next", layout.interpreter_next),
        ("threads_head", layout.threads_head),
        ("thread_next", layout.thread_next),
        ("thread_id", layout.thread_id),
        ("frame_previous", layout.frame_previous),
        ("frame_code", layout.frame_code),
        ("frame_instruction", layout.frame_instruction),
        ("code_filename", layout.code_filename),
        ("code_name", layout.code_name),
        ("code_firstlineno", layout.code_firstlineno),
        ("code_linetable", layout.code_linetable),
        ("object_type", layout.object_type),
        ("object_size", layout.object_size),
        ("bytes_data", layout.bytes_data),
        ("unicode_length", layout.unicode_length),
        ("unicode_state", layout.unicode_state),
        ("ascii_data", layout.ascii_data),
        ("compact_data", layout.compact_data),
    ];
    fields.extend(layout.native_thread_id.map(|it| ("native_thread_id", it)));
    fields.extend(layout.code_qualname.map(|it| ("code_qualname", it)));
    match layout.current_frame {
        CurrentFrame::Direct(field) => fields.push(("current_frame", field)),
        CurrentFrame::CFrame { cframe, current } => {
            fields.extend([("cframe", cframe), ("cframe_current", current)]);
        }
    }
    match layout.entry_mark {
        EntryMark::EachFrame => {}
        EntryMark::IsEntry(field) => fields.push(("is_entry", field)),
        EntryMark::Owner(field) => fields.push(("owner", field)),
    }
    match layout.code_bytes {
        CodeBytes::Object { field, .. } | CodeBytes::Inline(field) => {
            fields.push(("code_bytes", field));
        }
    }
    let fields = fields.into_iter();
    fields.map(|(name, at)| (name.to_owned(), at)).collect()
}
