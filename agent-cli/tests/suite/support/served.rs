//! `agent serve`, as a process that is asked over HTTP.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{Model, agent_on};

/// A server in a process of its own.
pub(crate) struct Server {
    process: Child,
    pub(crate) address: String,
    said: Arc<Mutex<String>>,
}

impl Server {
    pub(crate) fn begin(dir: &Path, model: &Model, args: &[&str]) -> Self {
        Self::of(agent_on(dir, model), args)
    }

    /// The server that this command of the program is with these arguments.
    pub(crate) fn of(mut command: Command, args: &[&str]) -> Self {
        command.args(["serve", "--listen", "127.0.0.1:0"]).args(args).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut line = String::new();
        let mut said = BufReader::new(process.stderr.take().unwrap());
        said.read_line(&mut line).unwrap();
        let address = line.split("http://").nth(1).unwrap_or_else(|| panic!("{line}"));
        let address = address.split(',').next().unwrap().to_owned();
        let heard = Arc::<Mutex<String>>::default();
        let said = said.lines().map_while(Result::ok);
        std::thread::spawn({
            let heard = heard.clone();
            move || said.for_each(|line| heard.lock().unwrap().push_str(&(line + "\n")))
        });
        Self { process, address, said: heard }
    }

    /// As `kill -9` does.
    pub(crate) fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    pub(crate) fn ask(&self, method: &str, path: &str, body: &Value) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let body = if method == "GET" { String::new() } else { body.to_string() };
        write!(
            stream,
            "{method} {path} HTTP/1.0\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut text = String::new();
        let _ = stream.read_to_string(&mut text);
        let status = text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        (status, text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default())
    }

    /// Standard error after its address, once it contains this text.
    pub(crate) fn says(&self, part: &str) -> String {
        let late = Instant::now() + Duration::from_secs(60);
        loop {
            let said = self.said.lock().unwrap().clone();
            if said.contains(part) {
                return said;
            }
            assert!(Instant::now() < late, "it does not say '{part}': {said}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        let (_, body) = self.ask("GET", path, &Value::Null);
        serde_json::from_str(&body).unwrap_or_else(|e| panic!("{e}: {body}"))
    }

    /// The run, when it has this status.
    pub(crate) fn until(&self, run: &str, status: &str) -> Value {
        let late = Instant::now() + Duration::from_secs(60);
        loop {
            let seen = self.get(&format!("/api/runs/{run}?wait=1"));
            if seen["status"] == status {
                return seen;
            }
            assert!(Instant::now() < late, "the run is not {status}: {seen}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Starts a run, and gives its id.
pub(crate) fn start(server: &Server, body: &Value) -> String {
    let (status, text) = server.ask("POST", "/api/agents/agent/runs", body);
    assert_eq!(status, 202, "{text}");
    serde_json::from_str::<Value>(&text).unwrap()["run"].as_str().unwrap().to_owned()
}

/// Allows what a run asks, and gives the questions.
pub(crate) fn allow(server: &Server, run: &str) -> Value {
    let waiting = server.until(run, "waiting")["questions"].clone();
    let question = &waiting[0];
    let answers = json!({"answers": [{"question": question["id"], "digest": question["digest"], "allow": true}]});
    let (status, text) = server.ask("POST", &format!("/api/runs/{run}/answers"), &answers);
    assert_eq!(status, 202, "{text}");
    waiting
}
