//! A model whose answers are written down, behind a real server: the program knows no other one.

#![allow(dead_code, reason = "each test uses its part")]

pub(crate) mod postgres;
pub(crate) mod served;
pub(crate) mod svg;

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Command, Output, Stdio},
    sync::{Arc, Condvar, Mutex},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

/// Reply of the model.
#[derive(Clone)]
pub(crate) enum Reply {
    Text(&'static str),
    Call(&'static str, Value),
    /// As many calls at once.
    Calls(Vec<(&'static str, Value)>),
    /// Says the first text, and the second one when the gate is opened.
    Held(&'static str, Gate, &'static str),
    /// Many small pieces, and then a text.
    Flood(usize, &'static str),
    Status(u16),
}

/// Opened once.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    pub(crate) fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }

    fn wait(&self) {
        let open = self.0.0.lock().unwrap();
        drop(self.0.1.wait_timeout_while(open, Duration::from_secs(60), |open| !*open).unwrap());
    }
}

/// The server; it lives as long as the test.
pub(crate) struct Model {
    pub(crate) url: String,
    /// The requests that came.
    pub(crate) asked: Arc<Mutex<Vec<Value>>>,
}

impl Model {
    /// Answers in this order, to any request.
    pub(crate) fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let replies = Arc::new(Mutex::new(replies.into_iter().collect::<std::collections::VecDeque<_>>()));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let kept = asked.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (replies, asked) = (replies.clone(), kept.clone());
                thread::spawn(move || drop(serve(stream.unwrap(), &replies, &asked)));
            }
        });
        Self { url, asked }
    }

    /// The texts of the newest request.
    pub(crate) fn last(&self) -> String {
        self.asked.lock().unwrap().last().map_or_else(String::new, |request| request["messages"].to_string())
    }
}

fn serve(
    mut stream: TcpStream,
    replies: &Mutex<std::collections::VecDeque<Reply>>,
    asked: &Mutex<Vec<Value>>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let line = line.trim().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let number = asked.lock().unwrap().len();
    asked.lock().unwrap().push(request);
    let reply = replies.lock().unwrap().pop_front().unwrap_or(Reply::Status(400));
    if let Reply::Status(status) = reply {
        let body = "{\"error\": {\"message\": \"the script is over\"}}";
        return write!(
            stream,
            "HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        );
    }
    write!(stream, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")?;
    let mut say = |delta: Value, end: Option<&str>| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": end});
        let chunk = json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "scripted", "choices": [choice]});
        write!(stream, "data: {chunk}\n\n").and_then(|()| stream.flush())
    };
    match reply {
        Reply::Text(text) => {
            for word in text.split_inclusive(' ') {
                say(json!({"content": word}), None)?;
            }
            say(json!({}), Some("stop"))?;
        }
        Reply::Call(name, arguments) => {
            say(json!({"tool_calls": [call(0, &format!("call_{number}"), name, &arguments)]}), None)?;
            say(json!({}), Some("tool_calls"))?;
        }
        Reply::Calls(calls) => {
            for (at, (name, arguments)) in calls.iter().enumerate() {
                say(json!({"tool_calls": [call(at, &format!("call_{number}_{at}"), name, arguments)]}), None)?;
            }
            say(json!({}), Some("tool_calls"))?;
        }
        Reply::Held(first, gate, then) => {
            say(json!({"content": first}), None)?;
            gate.wait();
            say(json!({"content": then}), Some("stop"))?;
        }
        Reply::Flood(pieces, text) => {
            for n in 0..pieces {
                say(json!({"content": format!("piece {n} ")}), None)?;
            }
            say(json!({"content": text}), Some("stop"))?;
        }
        Reply::Status(_) => {}
    }
    write!(stream, "data: [DONE]\n\n")
}

fn call(index: usize, id: &str, name: &str, arguments: &Value) -> Value {
    let function = json!({"name": name, "arguments": arguments.to_string()});
    json!({"index": index, "id": id, "type": "function", "function": function})
}

/// The program in a directory, with a store there and nothing of the user's environment that changes what it does.
pub(crate) fn agent(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_agent"));
    command.current_dir(dir).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
        .env("HOME", dir)
        .env("TERM", "xterm-256color")
        .env("LANG", "C.UTF-8")
        .env("AGENT_STORE", "sessions.db")
        .stdin(Stdio::null());
    command
}

/// The same, with the scripted model.
pub(crate) fn agent_on(dir: &Path, model: &Model) -> Command {
    let mut command = agent(dir);
    command
        .env("OPENAI_BASE_URL", &model.url)
        .env("OPENAI_API_KEY", "a-key")
        .env("AGENT_MODEL", "openai:scripted@chat");
    command
}

/// Result of a command: its exit code, standard output and standard error.
pub(crate) fn end(command: &mut Command, args: &[&str]) -> (i32, String, String) {
    let Output { status, stdout, stderr } = command.args(args).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap_or(-1), text(stdout), text(stderr))
}
