//! The inputs of the recorder: the command line, the control pipe, and /proc.

use std::path::PathBuf;

use prof_events::parsing::Catalog;
use prof_procfs::kernel::{self, KernelModule};
use prof_procfs::settings::Mount;
use prof_procfs::{Maps, Stat, Status};

/// Any text as a list of events, on a machine that has only the kernel's own.
pub fn event_names(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let nowhere = || PathBuf::from("/nowhere");
    let catalog = Catalog {
        devices: nowhere(),
        tracefs: vec![nowhere()],
        library_cache: nowhere(),
        libraries: Vec::new(),
        programs: Vec::new(),
    };
    match catalog.parse(text) {
        // Its name in reports parses again.
        Ok(groups) => {
            for event in groups.iter().flat_map(|group| &group.events) {
                let _ = catalog.parse(&event.to_string());
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Any bytes as commands of a control pipe.
pub fn control(bytes: &[u8]) {
    prof_recorder::fuzzing::control(bytes);
}

/// Any bytes as /proc/PID/maps, and as the other files of /proc and /sys that the recorder reads.
pub fn maps(bytes: &[u8]) {
    prof_recorder::fuzzing::notes(bytes);
    let maps = Maps::parse(bytes);
    for address in [0, 0x5555_5555_5000, u64::MAX] {
        if let Some(entry) = maps.find(address) {
            assert!(entry.addresses.contains(&address));
        }
    }
    let _ = kernel::text_in(bytes);
    Stat::parse(bytes);
    let text = String::from_utf8_lossy(bytes);
    for line in text.lines() {
        KernelModule::parse(line);
        Mount::parse(line);
    }
    let status = Status::parse(&text);
    let _ = (status.users(), status.inner_pid(), status.ignores(2));
}
