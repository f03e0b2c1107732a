//! The kernel: its own list of symbols, `vmlinux`, and other kernels than the running one.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::PathBuf;

use crate::common::{chains, module, run};
use object::{Object, ObjectSection};
use prof_model::BuildId;
use prof_symbols::{
    Detail, Host, ModuleStatus, Query, RecordedKernel, Resolved, Source, SymbolOptions, Symbolizer,
};

/// A machine whose kernel is a small program: list of symbols, notes and `vmlinux` with DWARF.
struct Machine {
    directory: tempfile::TempDir,
    build_id: BuildId,
}

/// The address at which the kernel runs, unlike the one it was linked for.
const TEXT: u64 = 0xffff_ffff_9a00_0000;
/// The address that it was linked for.
const LINKED: u64 = 0xffff_ffff_8100_0000;

impl Machine {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let source = "\
            int sink;\n\
            static inline __attribute__((always_inline)) void inner(int n) { sink += n; }\n\
            __attribute__((section(\".text.a\"))) void first(int n) { inner(n); sink *= 3; }\n";
        fs::write(directory.path().join("kernel.c"), source).unwrap();
        let script = format!(
            "SECTIONS {{ . = {LINKED:#x}; _text = .; .text : {{ *(.text*) }} \
             .note.gnu.build-id : {{ *(.note.gnu.build-id) }} .data : {{ *(.data*) *(.bss*) *(COMMON) }} \
             /DISCARD/ : {{ *(.eh_frame) *(.comment) }} }}"
        );
        fs::write(directory.path().join("kernel.ld"), script).unwrap();
        let flags = [
            "-O1",
            "-g",
            "-nostdlib",
            "-static",
            "-mcmodel=kernel",
            "-fno-pic",
            "-no-pie",
            "-fcf-protection=none",
            "-Wl,--build-id",
            "-Wl,-T,kernel.ld",
            "kernel.c",
        ];
        run(
            "gcc",
            &[&flags[..], &["-o", "vmlinux"]].concat(),
            directory.path(),
        );
        let vmlinux = directory.path().join("vmlinux");
        let bytes = fs::read(&vmlinux).unwrap();
        let object = object::File::parse(&*bytes).unwrap();
        let notes = object.section_by_name(".note.gnu.build-id").unwrap();
        fs::write(directory.path().join("notes"), notes.data().unwrap()).unwrap();
        let this = Self {
            build_id: module(&vmlinux).build_id.unwrap(),
            directory,
        };
        this.boot(TEXT);
        this
    }

    /// Writes the list of symbols of a kernel that lies at this address.
    fn boot(&self, text: u64) {
        let list = format!(
            "{text:x} T _text\n{text:x} T first\n{:x} t later\t[module]\n",
            text + 0x2000_0000
        );
        fs::write(self.path("kallsyms"), list).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn options(&self) -> SymbolOptions {
        SymbolOptions {
            kallsyms: self.path("kallsyms"),
            kernel_notes: self.path("notes"),
            vmlinux: vec![self.path("vmlinux")],
            ..SymbolOptions::default()
        }
    }
}

fn resolve(options: SymbolOptions, addresses: &[u64]) -> Resolved {
    let query = Query {
        source: Source::Kernel,
        addresses,
    };
    Symbolizer::new(options).resolve(&[query]).remove(0)
}

#[test]
fn vmlinux_has_inlined_functions_and_kallsyms_modules() {
    let machine = Machine::new();
    let addresses: Vec<u64> = (TEXT..TEXT + 8).chain([TEXT + 0x2000_0004]).collect();
    let resolved = resolve(machine.options(), &addresses);
    assert_eq!(resolved.detail(), Detail::Inlines);
    let chains = chains(&resolved);
    assert!(chains.contains(&"inner:2 first:3".to_owned()), "{chains:?}");
    assert!(chains.contains(&"later [module]".to_owned()), "{chains:?}");
}

#[test]
fn a_vmlinux_of_another_build_is_not_used() {
    let machine = Machine::new();
    let options = SymbolOptions {
        vmlinux: vec![Machine::new().path("vmlinux"), "/proc/self/exe".into()],
        ..machine.options()
    };
    let resolved = resolve(options, &[TEXT]);
    assert_eq!(resolved.detail(), Detail::Functions);
    assert_eq!(chains(&resolved), ["first"]);
}

#[test]
fn a_recording_of_an_earlier_boot_is_moved_to_where_the_kernel_is_now() {
    let machine = Machine::new();
    machine.boot(TEXT + 0x60_0000);
    let recorded_kernel = RecordedKernel {
        build_id: Some(machine.build_id),
        text: Some(TEXT),
    };
    for vmlinux in [Vec::new(), vec![machine.path("vmlinux")]] {
        let options = SymbolOptions {
            recorded_kernel,
            vmlinux,
            ..machine.options()
        };
        let resolved = resolve(options, &[TEXT, TEXT + 0x2000_0000]);
        let name = resolved.frames(0).last().unwrap();
        assert_eq!(&*name.function, "first");
        assert!(
            resolved.frames(1).is_empty(),
            "the addresses of modules are unknown"
        );
    }
}

#[test]
fn a_recording_of_another_kernel_is_not_named_by_this_one() {
    let machine = Machine::new();
    let recorded = BuildId::new(&[1; 20]).unwrap();
    let options = SymbolOptions {
        recorded_kernel: RecordedKernel {
            build_id: Some(recorded),
            text: None,
        },
        ..machine.options()
    };
    let resolved = resolve(options, &[TEXT]);
    assert!(
        matches!(resolved.status(), ModuleStatus::OtherKernel { found, .. }
            if *found == machine.build_id),
        "{}",
        resolved.status()
    );
}

#[test]
fn a_hidden_kernel_is_named_by_vmlinux_if_the_recording_says_where_it_was() {
    let machine = Machine::new();
    fs::write(machine.path("kallsyms"), "0000000000000000 T _text\n").unwrap();
    let resolved = resolve(machine.options(), &[TEXT]);
    assert_eq!(resolved.status(), &ModuleStatus::KernelHidden);
    assert!(resolved.status().to_string().contains("kptr_restrict"));
    let options = SymbolOptions {
        recorded_kernel: RecordedKernel {
            build_id: Some(machine.build_id),
            text: Some(TEXT),
        },
        ..machine.options()
    };
    let resolved = resolve(options, &[TEXT]);
    assert_eq!(resolved.status(), &ModuleStatus::Named);
    assert_eq!(&*resolved.frames(0).last().unwrap().function, "first");
}

#[test]
fn the_running_kernel_has_the_functions_that_it_lists() {
    let list = fs::read_to_string("/proc/kallsyms").unwrap();
    let listed = list
        .lines()
        .find_map(|line| line.strip_suffix(" T vfs_read"));
    let address = listed.and_then(|address| u64::from_str_radix(address, 16).ok());
    let address = address.unwrap_or(0);
    let resolved = resolve(SymbolOptions::default(), &[address.wrapping_add(4)]);
    match address {
        0 => assert_eq!(resolved.status(), &ModuleStatus::KernelHidden),
        _ => assert_eq!(&*resolved.frames(0).last().unwrap().function, "vfs_read"),
    }
}

/// A stream of perf from another machine has no build id of the kernel.
#[test]
fn a_recording_of_another_machine_is_not_named_by_its_kernel() {
    let machine = Machine::new();
    let host = |arch: &str, release: &str| Host {
        arch: Some(arch.into()),
        release: Some(release.into()),
        ..Host::default()
    };
    let status = |recorded_host, build_id| {
        let options = SymbolOptions {
            recorded_host,
            host: host("x86_64", "6.1.0"),
            recorded_kernel: RecordedKernel {
                build_id,
                text: Some(TEXT),
            },
            ..machine.options()
        };
        resolve(options, &[TEXT]).status().clone()
    };
    assert_eq!(status(host("x86_64", "6.1.0"), None), ModuleStatus::Named);
    assert_eq!(status(Host::default(), None), ModuleStatus::Named);
    for other in [host("aarch64", "6.1.0"), host("x86_64", "6.5.0")] {
        let found = status(other.clone(), None);
        assert!(matches!(found, ModuleStatus::OtherHost { .. }), "{found}");
        // The build id proves more.
        assert_eq!(status(other, Some(machine.build_id)), ModuleStatus::Named);
    }
}
