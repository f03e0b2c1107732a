//! A headless Chromium, driven through chromedriver (W3C WebDriver).

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

/// A browser with one page. It and its driver end with it.
pub struct Browser {
    driver: Child,
    port: u16,
    session: String,
}

impl Browser {
    /// Starts a browser that keeps its files in `directory`.
    pub fn start(directory: &Path) -> Self {
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        // "ChromeDriver was started successfully on port 38327."
        let port = lines
            .map_while(Result::ok)
            .find_map(|line| {
                let rest = line.split_once("started successfully on port ")?.1;
                rest.trim_end_matches('.').parse().ok()
            })
            .expect("chromedriver prints its port");
        let mut browser = Self {
            driver,
            port,
            session: String::new(),
        };
        let profile = format!("--user-data-dir={}", directory.join("chromium").display());
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--window-size=1200,900",
            &profile,
        ];
        let capabilities = json!({"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": {"args": arguments},
            "goog:loggingPrefs": {"browser": "ALL"},
        }}});
        let session = browser.call("POST", "/session", &capabilities);
        browser.session = session["sessionId"].as_str().unwrap().to_owned();
        browser
    }

    /// Opens a file with a fragment, and waits until the page has drawn itself.
    pub fn open(&self, page: &Path, fragment: &str) {
        // Another fragment alone would not load the page again.
        self.post("/url", &json!({"url": "about:blank"}));
        let url = format!("file://{}{fragment}", page.display());
        self.post("/url", &json!({ "url": url }));
        let ready = "const done = arguments[0];
            const look = () => window.prof ? done(true) : requestAnimationFrame(look); look()";
        self.post("/execute/async", &json!({"script": ready, "args": []}));
    }

    /// Runs JavaScript, and returns its result.
    pub fn script(&self, script: &str) -> Value {
        self.post("/execute/sync", &json!({"script": script, "args": []}))
    }

    /// All visible text of the page, and the contents of its fields.
    pub fn text(&self) -> String {
        self.script("return document.body.innerText")
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// Types into the first element that a selector finds.
    pub fn keys(&self, selector: &str, text: &str) {
        let element = self.element(selector);
        self.post(
            &format!("/element/{element}/value"),
            &json!({ "text": text }),
        );
    }

    /// Clicks on a box of a flamegraph that the page has reported.
    pub fn click_box(&self, selector: &str, found: &Value) {
        let (x, row) = (&found["x"], &found["row"]);
        let place = format!(
            "const canvas = document.querySelector('{selector}').getBoundingClientRect();
             return [Math.round(canvas.left + {x} + 4), Math.round(canvas.top + {row} * 18 + 9)]"
        );
        let place = self.script(&place);
        let actions = json!({"actions": [{"type": "pointer", "id": "mouse", "actions": [
            {"type": "pointerMove", "duration": 0, "x": place[0], "y": place[1]},
            {"type": "pointerDown", "button": 0},
            {"type": "pointerUp", "button": 0},
        ]}]});
        self.post("/actions", &actions);
    }

    /// Clicks on the first of these elements that has this text.
    pub fn click_text(&self, selector: &str, text: &str) {
        let all = format!("[...document.querySelectorAll('{selector}')]");
        self.script(&format!(
            "{all}.find(one => one.textContent.includes('{text}')).click()"
        ));
    }

    /// # Panics
    /// If the text is not to be seen.
    #[track_caller]
    pub fn assert_shows(&self, text: &str) {
        let shown = self.text();
        assert!(shown.contains(text), "{text:?} is not in:\n{shown}");
    }

    /// The errors in the browser's log: of scripts, and refused requests.
    pub fn errors(&self) -> Vec<String> {
        let log = self.post("/se/log", &json!({"type": "browser"}));
        let entries = log.as_array().unwrap().iter();
        let severe = entries.filter(|entry| entry["level"] == "SEVERE");
        severe.map(|entry| entry["message"].to_string()).collect()
    }

    fn element(&self, selector: &str) -> String {
        let using = json!({"using": "css selector", "value": selector});
        let found = self.post("/element", &using);
        found["element-6066-11e4-a52e-4f735466cecf"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        self.call("POST", &format!("/session/{}{path}", self.session), body)
    }

    /// One request, on a connection of its own.
    fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        // Longer than any request takes: a browser that hangs fails the test.
        let limit = Some(Duration::from_secs(120));
        stream.set_read_timeout(limit).unwrap();
        let body = body.to_string();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        // The driver keeps connections open: the length says where the answer ends.
        let mut stream = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).unwrap();
            let line = line.trim().to_ascii_lowercase();
            if let Some(number) = line.strip_prefix("content-length:") {
                length = number.trim().parse().unwrap();
            }
            if line.is_empty() {
                break;
            }
        }
        let mut answer = vec![0; length];
        stream.read_exact(&mut answer).unwrap();
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        assert!(
            answer["value"].get("error").is_none(),
            "{method} {path}: {answer}"
        );
        answer["value"].clone()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() {
            // Ends the browser; its driver is ended below in any case.
            let path = format!("/session/{}", self.session);
            if !std::thread::panicking() {
                self.call("DELETE", &path, &json!({}));
            }
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
