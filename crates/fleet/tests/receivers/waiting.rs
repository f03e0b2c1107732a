//! `prof push --spool`: recordings that cannot be pushed now wait, and are sent first the next
//! time.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::Path;
use std::process::Output;

use prof_needs::tools;

use super::data_set::{Session, sum};
use super::server::Server;
use super::{errors, fleet, weights};

/// `prof push` of a recording of this service and host, with a spool of a MiB.
fn push(session: &Session, recording: &Path, service: &str, url: &str) -> Output {
    let mut push = fleet();
    push.args(["push", "--service", service, "--host", service]);
    push.arg("--spool").arg(session.path("spool"));
    push.args(["--spool-size", "1"]).arg(recording).arg(url);
    push.output().unwrap()
}

/// The output of a push that succeeds.
fn pushed(session: &Session, recording: &Path, service: &str, url: &str) -> String {
    let output = push(session, recording, service, url);
    assert!(output.status.success(), "{}", errors(&output));
    errors(&output)
}

/// How many files the spool has for all destinations.
fn files(session: &Session) -> usize {
    let folders = fs::read_dir(session.path("spool")).unwrap();
    let folders = folders.map(|folder| fs::read_dir(folder.unwrap().path()).unwrap());
    folders.map(Iterator::count).sum()
}

#[test]
fn waiting_recordings_go_first() {
    if !tools(&["gcc"]) {
        return;
    }
    let session = Session::new();
    let (first, second) = (session.record("first"), session.record("second"));
    // The address refuses connections until the server starts.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
    let address = address.unwrap();
    let url = format!("pyroscope+http://{address}");
    let said = pushed(&session, &first, "shop", &url);
    assert!(said.contains("cannot reach http://127.0.0.1:"), "{said}");
    assert!(said.contains("first waits in the spool"), "{said}");
    fs::remove_file(&first).unwrap();

    let server = Server::at(address, &[]);
    let said = pushed(&session, &second, "bank", &url);
    assert!(said.contains("pushed 1 recording that waited"), "{said}");
    assert!(server.next().target.contains("name=shop"));
    assert!(server.next().target.contains("name=bank"));
    assert!(server.rest().is_empty());
    assert_eq!(files(&session), 0);
}

#[test]
fn a_recording_that_a_receiver_fails_to_take_keeps_its_place() {
    if !tools(&["gcc"]) {
        return;
    }
    let session = Session::new();
    let recordings = ["a", "b", "c", "d", "e"].map(|name| (name, session.record(name)));
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
    let address = address.unwrap();
    let url = format!("pyroscope+http://{address}");
    let push = |number: usize| {
        let (name, recording) = &recordings[number];
        pushed(&session, recording, name, &url)
    };
    (0..3).for_each(|number| _ = push(number));
    assert_eq!(files(&session), 6);

    let failing = [(500, "down"); 3];
    let answers = [failing.as_slice(), &[(200, ""); 2]].concat();
    let server = Server::at(address, &answers);
    // The receiver is down: two are tried, and the new one is not.
    let said = push(3);
    assert!(said.contains("answers 500: down"), "{said}");
    assert_eq!(server.rest().len(), 2);
    assert_eq!(files(&session), 8);
    // It takes all but the oldest.
    let said = push(4);
    assert!(said.contains("pushed 3 recordings that waited"), "{said}");
    let names = server.rest().into_iter().map(|request| {
        let (_, rest) = request.target.split_once("name=").unwrap();
        rest.chars().take(1).collect::<String>()
    });
    assert_eq!(names.collect::<Vec<_>>(), ["a", "d", "c", "b", "e"]);
    assert_eq!(files(&session), 2);
}

#[test]
fn waiting_recordings_reach_a_data_set_with_their_origin() {
    if !tools(&["gcc"]) {
        return;
    }
    let session = Session::new();
    let recordings = ["a", "b", "c"].map(|name| (name, session.record(name)));
    // No data set can be created there.
    let data = session.path("data");
    fs::write(&data, "").unwrap();
    let url = data.to_str().unwrap();
    for (name, recording) in &recordings[..2] {
        let said = pushed(&session, recording, name, url);
        assert!(said.contains("waits in the spool"), "{said}");
    }
    // Another destination has nothing to do with it.
    let other = session.path("other");
    pushed(&session, &recordings[0].1, "a", other.to_str().unwrap());
    assert_eq!(files(&session), 4, "two recordings and whose they are");
    fs::remove_file(&data).unwrap();
    let said = pushed(&session, &recordings[2].1, "c", url);
    assert!(said.contains("pushed 2 recordings that waited"), "{said}");
    for (name, recording) in &recordings {
        assert_eq!(
            session.query(&["--host", name, "--service", name]),
            weights(recording)
        );
    }
    let all = recordings.iter().map(|(_, recording)| weights(recording));
    let all = all.reduce(|all, one| sum(&all, &one));
    assert_eq!(session.query(&[]), all.unwrap());
    assert_eq!(files(&session), 0);
}

#[test]
fn a_full_spool_drops_the_oldest_and_takes_nothing_larger() {
    if !tools(&["gcc"]) {
        return;
    }
    let session = Session::new();
    let data = session.path("data");
    fs::write(&data, "").unwrap();
    let url = data.to_str().unwrap();
    let padded = |name: &str, kib: u64| {
        let recording = session.record(name);
        let file = File::options().write(true).open(&recording).unwrap();
        file.set_len(kib << 10).unwrap();
        recording
    };
    pushed(&session, &padded("first", 600), "a", url);
    let said = pushed(&session, &padded("second", 600), "b", url);
    assert!(
        said.contains("the spool is full: dropped 1 recording, the oldest"),
        "{said}"
    );
    let large = push(&session, &padded("third", 1025), "c", url);
    assert!(!large.status.success());
    let said = errors(&large);
    assert!(said.contains("third is larger than the spool"), "{said}");
    assert_eq!(files(&session), 2);
}
