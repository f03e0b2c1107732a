//! Rust: closures, impls and async functions, in both manglings.

#![allow(clippy::unwrap_used)]

use std::fs;

use crate::common::{chains, have_rustc, module, offset_of, options, resolve, run};
use object::{Object, ObjectSection, ObjectSymbol};

const PROGRAM: &str = "\
use std::future::Future;
use std::hint::black_box;
use std::task::{Context, Poll, Waker};
struct Server { n: u64 }
trait Work { fn work(&self) -> u64; }
impl Work for Server {
    fn work(&self) -> u64 { (0..self.n).map(|x| black_box(x) * 3).sum() }
}
impl Server {
    async fn serve(&self) -> u64 {
        let first = count(self.n).await;
        let second = async { count(black_box(self.n)).await + 1 }.await;
        first + second
    }
}
async fn count(n: u64) -> u64 {
    let mut sum = 0_u64;
    for i in 0..n { sum = sum.wrapping_mul(31) ^ black_box(i); }
    sum
}
fn run<F: Future>(future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) { return output }
    }
}
fn main() {
    let server = Server { n: 1000 };
    println!(\"{}\", run(server.serve()) + server.work());
}
";

/// The frames of every function of the program itself.
fn frames(mangling: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("app.rs"), PROGRAM).unwrap();
    let mangling = format!("-Csymbol-mangling-version={mangling}");
    // Legacy mangling is not for everyone any more.
    let flags = ["--edition=2024", "-O", "-g", &mangling, "app.rs"];
    run(
        "env",
        &[
            &["RUSTC_BOOTSTRAP=1", "rustc", "-Zunstable-options"][..],
            &flags,
        ]
        .concat(),
        directory.path(),
    );
    let program = directory.path().join("app");
    let bytes = fs::read(&program).unwrap();
    let object = object::File::parse(&*bytes).unwrap();
    let mut offsets: Vec<u64> = object
        .symbols()
        .filter(|symbol| symbol.name().is_ok_and(|name| name.contains("3app")))
        .flat_map(|symbol| symbol.address()..symbol.address() + symbol.size())
        .filter_map(|address| offset_of(&object, address))
        .collect();
    offsets.sort_unstable();
    offsets.dedup();
    let resolved = resolve(options(directory.path()), &module(&program), &offsets);
    chains(&resolved).join("\n")
}

#[test]
fn closures_and_async_functions_read_as_they_were_written() {
    if !have_rustc() {
        return;
    }
    for mangling in ["legacy", "v0"] {
        let frames = frames(mangling);
        for expected in [
            "app::count::{async fn}:",
            "::serve::{async fn}:",
            "{async block}:",
        ] {
            assert!(
                frames.contains(expected),
                "{mangling}: {expected}:\n{frames}"
            );
        }
        let closure = "<app::Server as app::Work>::work::{closure}:7";
        assert!(frames.contains(closure), "{mangling}:\n{frames}");
        assert!(!frames.contains("17h"), "{mangling}:\n{frames}");
        assert!(!frames.contains("{{closure}}"), "{mangling}:\n{frames}");
    }
}

/// Units without a requested address are not parsed, unless others refer to them, as with link-time
/// optimization.
#[test]
fn an_address_alone_has_the_names_that_it_has_among_others() {
    if !have_rustc() {
        return;
    }
    for lto in ["-Clto=off", "-Clto=fat"] {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("app.rs"), PROGRAM).unwrap();
        let flags = ["--edition=2024", "-O", "-g", lto, "app.rs"];
        run("rustc", &flags, directory.path());
        let path = directory.path().join("app");
        let bytes = fs::read(&path).unwrap();
        let object = object::File::parse(&*bytes).unwrap();
        let text = object.section_by_name(".text").unwrap();
        let addresses = text.address()..text.address() + text.size();
        let step = usize::try_from(text.size() / 12).unwrap();
        let offsets: Vec<u64> = (addresses.step_by(step))
            .filter_map(|address| offset_of(&object, address))
            .collect();
        let named = |offsets: &[u64]| resolve(options(directory.path()), &module(&path), offsets);
        let all = named(&offsets);
        assert!(
            chains(&all).iter().any(|chain| chain.contains(' ')),
            "{lto}"
        );
        for (index, offset) in offsets.iter().enumerate() {
            let alone = named(&[*offset]);
            assert_eq!(alone.frames(0), all.frames(index), "{lto}: {offset:#x}");
        }
    }
}
