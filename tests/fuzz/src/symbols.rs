//! Symbols: of files, of kernels, of JIT code, and from servers.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use prof_model::{BuildId, Module, Pid};
use prof_symbols::{
    Debuginfod, EmbeddedSymbols, Places, Query, Source, SymbolOptions, Symbolizer, demangle,
    is_async_plumbing, readable, shorten,
};

use crate::directory;

/// Addresses that occur in the input, so that some of them match its contents.
fn addresses(bytes: &[u8]) -> Vec<u64> {
    const MOST: usize = 200;
    let words = bytes.chunks_exact(8).take(MOST);
    let words = words.filter_map(|word| Some(u64::from_le_bytes(word.try_into().ok()?)));
    let lines = bytes.split(|&byte| byte == b'\n').take(MOST);
    let texts = lines.filter_map(|line| {
        let first = line.split(|&byte| byte == b' ').next()?;
        u64::from_str_radix(std::str::from_utf8(first).ok()?, 16).ok()
    });
    let usual = [0, 1, 0x1000, 0x7fff_ffff_ffff, u64::MAX];
    let mut all: Vec<u64> = words.chain(texts).chain(usual).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Any bytes as an ELF file with DWARF: fewer names.
pub fn symbols_elf(bytes: &[u8]) {
    names_in_elf(bytes, 61);
}

/// Any bytes as a small Go program, with the tables of Go's runtime.
pub fn symbols_go(bytes: &[u8]) {
    names_in_elf(bytes, 31);
}

/// The names of places that are so many bytes apart.
fn names_in_elf(bytes: &[u8], step: usize) {
    let directory = directory();
    let file = directory.path().join("file");
    std::fs::write(&file, bytes).expect("a file");
    let offsets: Vec<u64> = (0..bytes.len() as u64).step_by(step).take(200).collect();
    let module = Module::from_path(&file);
    let symbolizer = Symbolizer::new(SymbolOptions {
        debug_dirs: Vec::new(),
        ..SymbolOptions::default()
    });
    symbolizer.resolve(&[Query {
        source: Source::File(&module),
        addresses: &offsets,
    }]);
}

struct Dumps(PathBuf);

impl Places for Dumps {
    fn candidates(&self, _: &Module) -> Vec<PathBuf> {
        Vec::new()
    }

    fn jitdumps(&self, _: Pid) -> Vec<PathBuf> {
        vec![self.0.clone()]
    }
}

/// Any bytes as a jitdump and as a perf map, and the names and the code of addresses in them.
pub fn symbols_jit(bytes: &[u8]) {
    let directory = directory();
    let pid = Pid::MAX;
    let dump = directory.path().join("jit.dump");
    let map = directory.path().join(format!("perf-{pid}.map"));
    std::fs::write(&dump, bytes).expect("a file");
    std::fs::write(&map, bytes).expect("a file");
    let options = SymbolOptions {
        jit_map_dir: directory.path().into(),
        ..SymbolOptions::default()
    };
    let addresses = addresses(bytes);
    let query = Query {
        source: Source::Jit { pid },
        addresses: &addresses,
    };
    Symbolizer::new(options.clone()).resolve(&[query]);
    let symbolizer = Symbolizer::new(options).with_places(Dumps(dump));
    symbolizer.resolve(&[query]);
    let _ = symbolizer.jit_code(pid, query.addresses);
}

/// Any text as a name, and any bytes as stored symbols.
pub fn symbols_names(bytes: &[u8]) {
    if let Ok(symbols) = EmbeddedSymbols::from_bytes(bytes) {
        let again = EmbeddedSymbols::from_bytes(&symbols.to_bytes());
        assert_eq!(again.ok(), Some(symbols));
    }
    if let Ok(name) = std::str::from_utf8(bytes) {
        shorten(&demangle(name));
        readable(name);
        is_async_plumbing(name);
    }
}

/// Any bytes as the kernel's list of symbols, and as its ELF notes.
pub fn kallsyms(bytes: &[u8]) {
    let directory = directory();
    let file = directory.path().join("kallsyms");
    std::fs::write(&file, bytes).expect("a file");
    let options = SymbolOptions {
        kallsyms: file.clone(),
        kernel_notes: file,
        kcore: "/nowhere".into(),
        vmlinux: Vec::new(),
        debug_dirs: Vec::new(),
        ..SymbolOptions::default()
    };
    let addresses = addresses(bytes);
    let query = Query {
        source: Source::Kernel,
        addresses: &addresses,
    };
    let answers = Symbolizer::new(options).resolve(&[query]);
    assert_eq!(
        answers.first().map(|answer| answer.len()),
        Some(addresses.len())
    );
}

/// Any bytes as the response of a debuginfod server.
pub fn debuginfod(bytes: &[u8]) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("a port");
    let directory = directory();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            for connection in listener.incoming() {
                if is_over.load(Ordering::Acquire) {
                    return;
                }
                answer(connection.expect("a connection"), bytes);
            }
        });
        ask(&format!("http://{address}"), directory.path());
        is_over.store(true, Ordering::Release);
        let _ = TcpStream::connect(address);
    });
}

/// Reads the head of a request and answers it with these bytes.
fn answer(mut connection: TcpStream, bytes: &[u8]) {
    let mut request = Vec::new();
    let mut piece = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        match connection.read(&mut piece) {
            Ok(0) | Err(_) => return,
            Ok(length) => request.extend_from_slice(&piece[..length]),
        }
    }
    let _ = connection.write_all(bytes);
}

fn ask(url: &str, cache: &Path) {
    let symbolizer = Symbolizer::new(SymbolOptions {
        debug_dirs: Vec::new(),
        debuginfod: Some(Debuginfod {
            urls: vec![url.into()],
            cache: cache.into(),
            timeout: Duration::from_secs(10),
            longest: Duration::from_secs(60),
            largest: 1 << 20,
        }),
        ..SymbolOptions::default()
    });
    let module = Module {
        build_id: BuildId::new(&[7; 20]),
        ..Module::from_path("/nowhere/file")
    };
    symbolizer.resolve(&[Query {
        source: Source::File(&module),
        addresses: &[0, 0x1000, 0x1139],
    }]);
}
