//! `prof report --html`: names are untrusted text.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use prof_tests::browser::Browser;
use prof_tests::{Need, Outcome, Session, USER_CODE, needs};
use serde_json::Value;

fn write_page(session: &Session, arguments: &[&str]) -> PathBuf {
    let arguments = [arguments, &["--html", "page.html"]].concat();
    session.run(arguments).assert_code(0);
    session.path("page.html")
}

/// Opens every view, and checks that all content of the page is shown as text.
fn assert_only_text(browser: &Browser, page: &Path, search: &str) {
    for view in ["flame", "leaf", "functions", "tree", "chart", "source"] {
        browser.open(page, &format!("#view={view}&search={search}"));
        browser.open(page, &format!("#view={view}"));
        let elements = "return document.querySelectorAll(\
            'img, b:not(.verdict b, .hottest b), s, u, em').length";
        assert_eq!(browser.script(elements), 0, "{view}");
        assert_eq!(browser.script("return window.ran ?? null"), Value::Null);
        let requests = "return performance.getEntriesByType('resource').length";
        assert_eq!(browser.script(requests), 0);
        let shown = browser.text();
        assert!(
            !shown.contains(['\u{202e}', '\u{200b}', '\u{1b}']),
            "{view}"
        );
    }
}

#[test]
fn names_of_another_format() {
    if !needs(&[Need::Tool("chromedriver"), Need::Tool("chromium")]) {
        return;
    }
    let session = Session::new();
    let script = "</script><script>window.ran=1</script>";
    let image = "<img src=http://127.0.0.1:9/x onerror=window.ran=1>";
    let odd = "a\u{202e}bc\u{200b}d";
    let folded = format!("{script};{image};{odd};{{{{DATA}}}} 5\n{script};$&$`<b>bold</b> 3\n");
    session.write("prof.folded", folded.as_bytes());
    let arguments = ["report", "-i", "prof.folded", "--title", image];
    let page = write_page(&session, &arguments);
    let browser = Browser::start(session.directory());
    assert_only_text(&browser, &page, image);
    browser.open(&page, "#view=functions");
    browser.assert_shows(image);
    browser.assert_shows(r"a\u{202e}bc\u{200b}d");
    assert_eq!(browser.errors(), Vec::<String>::new());
}

/// Function, file, folder, module, thread and host.
#[test]
fn names_of_a_recorded_program() {
    let tools = ["chromedriver", "chromium", "gcc", "objcopy", "unshare"].map(Need::Tool);
    if !needs(&tools) || !needs(&[Need::Root]) {
        return;
    }
    let session = Session::new();
    let folder = session.path("<u>folder");
    std::fs::create_dir(&folder).unwrap();
    let source = folder.join("<em>\u{202e}spin.c");
    std::fs::write(&source, SOURCE).unwrap();
    let (object, program) = (session.path("spin.o"), folder.join("<s>program"));
    let run = |name: &str, arguments: &[&OsStr]| {
        let mut command = Command::new(name);
        command.args(arguments);
        Outcome::of(command).assert_code(0);
    };
    let function = "<img src=x onerror=window.ran=1>";
    let rename = format!("spin={function}");
    run(
        "gcc",
        &[
            "-g".as_ref(),
            "-O1".as_ref(),
            "-c".as_ref(),
            source.as_ref(),
            "-o".as_ref(),
            object.as_ref(),
        ],
    );
    run(
        "objcopy",
        &["--redefine-sym".as_ref(), rename.as_ref(), object.as_ref()],
    );
    run(
        "gcc",
        &[
            object.as_ref(),
            "-pthread".as_ref(),
            "-o".as_ref(),
            program.as_ref(),
        ],
    );
    let set_host = "printf '<b>host' > /proc/sys/kernel/hostname && exec \"$@\"";
    let launcher = ["unshare", "--uts", "sh", "-c", set_host, "sh"].map(OsString::from);
    let arguments = [&["record"], USER_CODE, &["--", program.to_str().unwrap()]].concat();
    Outcome::of(session.prof_under(&launcher, arguments)).assert_code(0);

    let page = write_page(&session, &["report"]);
    let browser = Browser::start(session.directory());
    assert_only_text(&browser, &page, "<b>");
    browser.open(&page, "#view=functions");
    for shown in [function, "<s>program", "<b>host"] {
        browser.assert_shows(shown);
    }
    browser.open(&page, "#view=chart");
    browser.assert_shows(r"<b>&\x1b[1m");
    assert_eq!(browser.errors(), Vec::<String>::new());
}

/// A thread with a hostile name, in a function that gets one.
const SOURCE: &str = r#"
#include <pthread.h>
#include <sys/prctl.h>
volatile unsigned sum;
__attribute__((noinline)) void spin(void) { for (unsigned i = 0; i < 200000000u; i++) sum += i; }
void *run(void *a) { prctl(PR_SET_NAME, "<b>&\033[1m"); spin(); return a; }
int main(void) { pthread_t t; return pthread_create(&t, 0, run, 0) || pthread_join(t, 0); }
"#;
