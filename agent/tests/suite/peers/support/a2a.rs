//! An agent at a URL: the protocol's server, by hand.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
};

use agent::tools::peers::{A2aAgent, A2aBuilder};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};

use super::ms;

/// The token that the server wants.
pub(crate) const TOKEN: &str = "a-token-to-keep";

/// State of the server.
#[derive(Clone, Copy, Default)]
pub(crate) struct How {
    pub(crate) streams: bool,
    /// Breaks every stream off after its first event.
    pub(crate) breaks_off: bool,
    /// Shows the received messages.
    pub(crate) has_history: bool,
    /// Wants to be called elsewhere.
    pub(crate) elsewhere: bool,
}

#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) address: String,
    how: How,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    tasks: BTreeMap<String, Value>,
    log: Vec<String>,
    contexts: Vec<Value>,
}

impl Server {
    pub(crate) async fn start(how: How) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
        let address = listener.local_addr().expect("an address").to_string();
        let server = Self { address, how, state: Arc::default() };
        let serving = server.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let server = serving.clone();
                tokio::spawn(async move { server.answer(stream).await });
            }
        });
        server
    }

    pub(crate) fn agent(&self) -> A2aAgent {
        self.builder().build().expect("builds")
    }

    pub(crate) fn builder(&self) -> A2aBuilder {
        let builder = A2aAgent::builder(format!("http://{}", self.address)).bearer(TOKEN);
        builder.allow_private(self.address.as_str()).poll_every(ms(5))
    }

    /// Received messages and cancellations.
    pub(crate) fn log(&self) -> Vec<String> {
        self.lock().log.clone()
    }

    /// In which contexts messages came.
    pub(crate) fn contexts(&self) -> Vec<Value> {
        self.lock().contexts.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("not poisoned")
    }

    async fn answer(&self, stream: TcpStream) {
        let mut stream = BufReader::new(stream);
        let (mut head, mut length, mut authorised) = (String::new(), 0, false);
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await.unwrap_or_default() == 0 {
                return;
            }
            let lower = line.to_ascii_lowercase();
            if let Some(value) = lower.strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length");
            }
            authorised |= lower.trim() == format!("authorization: bearer {TOKEN}");
            if line.trim().is_empty() {
                break;
            }
            head.push_str(&line);
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await.expect("a body");
        if !authorised {
            return send(&mut stream, "401 Unauthorized", "text/plain", "who are you?").await;
        }
        if head.starts_with("GET /.well-known/agent-card.json ") {
            let host = if self.how.elsewhere { "127.0.0.1:1" } else { &self.address };
            let card = json!({
                "name": "clerk", "url": format!("http://{host}/rpc"), "preferredTransport": "JSONRPC",
                "protocolVersion": "0.3.0", "capabilities": {"streaming": self.how.streams},
            });
            return send(&mut stream, "200 OK", "application/json", &card.to_string()).await;
        }
        let request: Value = serde_json::from_slice(&body).expect("JSON");
        let params = &request["params"];
        match request["method"].as_str().expect("a method") {
            "message/send" => {
                let text = params["message"]["parts"][0]["text"].as_str().unwrap_or_default();
                match text {
                    "garbage" => send(&mut stream, "200 OK", "application/json", "<html>").await,
                    "huge" => send(&mut stream, "200 OK", "application/json", &"x".repeat(5 << 20)).await,
                    "echo" => {
                        let error = json!({"code": -32603, "message": format!("you sent {TOKEN}")});
                        let reply = json!({"jsonrpc": "2.0", "id": 1, "error": error}).to_string();
                        send(&mut stream, "200 OK", "application/json", &reply).await;
                    }
                    _ => reply(&mut stream, self.take(&params["message"])).await,
                }
            }
            "message/stream" => {
                let task = self.take(&params["message"]);
                self.stream(&mut stream, task, true).await;
            }
            "tasks/resubscribe" => {
                let task = self.task(params);
                self.stream(&mut stream, task, false).await;
            }
            "tasks/get" => {
                let task = self.task(params);
                if task["text"] == "slow" {
                    self.finish(&task, "slowly");
                }
                reply(&mut stream, task).await;
            }
            "tasks/cancel" => {
                let mut task = self.task(params);
                task["status"] = json!({"state": "canceled"});
                let mut state = self.lock();
                state.log.push("cancelled".to_owned());
                state.tasks.insert(task["id"].as_str().expect("an id").to_owned(), task);
            }
            other => panic!("{other} is not expected"),
        }
    }

    fn task(&self, params: &Value) -> Value {
        self.lock().tasks.get(params["id"].as_str().unwrap_or_default()).cloned().unwrap_or_default()
    }

    /// Takes a message; gives the task, or a message.
    fn take(&self, message: &Value) -> Value {
        let text = message["parts"][0]["text"].as_str().unwrap_or_default().to_owned();
        let mut state = self.lock();
        state.log.push(text.clone());
        state.contexts.push(message["contextId"].clone());
        let known = message["taskId"].as_str().and_then(|id| state.tasks.get(id)).cloned();
        let context =
            message["contextId"].as_str().map_or_else(|| format!("context-{}", state.log.len()), str::to_owned);
        if text == "at once" {
            let parts = json!([{"kind": "text", "text": "at once"}]);
            return json!({"kind": "message", "messageId": "m1", "role": "agent", "contextId": context, "parts": parts});
        }
        let mut task = match known {
            Some(mut task) => {
                completed(&mut task, &format!("the answer: {text}"));
                task
            }
            None => {
                let id = format!("task-{}", state.log.len());
                let mut task = json!({"kind": "task", "id": id, "contextId": context, "text": text, "history": []});
                match text.as_str() {
                    "ask" => {
                        let parts = json!([{"kind": "text", "text": "Which one?"}]);
                        let message = json!({"kind": "message", "messageId": "q1", "role": "agent", "parts": parts});
                        task["status"] = json!({"state": "input-required", "message": message});
                    }
                    "fail" => {
                        let parts = json!([{"kind": "text", "text": "no luck"}]);
                        let message = json!({"kind": "message", "messageId": "f1", "role": "agent", "parts": parts});
                        task["status"] = json!({"state": "failed", "message": message});
                    }
                    "draw" => {
                        completed(&mut task, "drawn");
                        let image = json!({"kind": "file", "file": {"name": "a.png", "mimeType": "image/png", "bytes": "aW1n"}});
                        task["artifacts"][0]["parts"].as_array_mut().expect("a list").push(image);
                    }
                    "look" => {
                        let files = message["parts"].as_array().expect("a list")[1..]
                            .iter()
                            .map(|part| part["file"].to_string());
                        completed(&mut task, &files.collect::<String>());
                    }
                    "hang" | "slow" => task["status"] = json!({"state": "working"}),
                    _ => completed(&mut task, &format!("you said {text}")),
                }
                task
            }
        };
        if self.how.has_history {
            task["history"].as_array_mut().expect("a list").push(message.clone());
        }
        state.tasks.insert(task["id"].as_str().expect("an id").to_owned(), task.clone());
        task
    }

    fn finish(&self, task: &Value, text: &str) {
        let mut task = task.clone();
        completed(&mut task, text);
        self.lock().tasks.insert(task["id"].as_str().expect("an id").to_owned(), task);
    }

    /// Tells of a task as a stream: that it works, its artifacts in pieces, and how it stands.
    async fn stream(&self, stream: &mut BufReader<TcpStream>, task: Value, is_new: bool) {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        let _ = stream.write_all(head.as_bytes()).await;
        if task["kind"] == "message" {
            return event(stream, &task).await;
        }
        let (id, context) = (&task["id"], &task["contextId"]);
        let mut begun = task.clone();
        begun["artifacts"] = json!([]);
        begun["status"] = json!({"state": "working"});
        event(stream, &begun).await;
        if self.how.breaks_off && is_new {
            return;
        }
        for artifact in task["artifacts"].as_array().into_iter().flatten() {
            let text = artifact["parts"][0]["text"].as_str().expect("text");
            for (n, piece) in [&text[..3], &text[3..]].iter().enumerate() {
                let artifact = json!({"artifactId": "a1", "parts": [{"kind": "text", "text": piece}]});
                let update = json!({
                    "kind": "artifact-update", "taskId": id, "contextId": context, "artifact": artifact, "append": n > 0,
                });
                event(stream, &update).await;
            }
        }
        if task["status"]["state"] == "working" {
            tokio::time::sleep(ms(3_600_000)).await;
        }
        let status = &task["status"];
        event(
            stream,
            &json!({"kind": "status-update", "taskId": id, "contextId": context, "status": status, "final": true}),
        )
        .await;
    }
}

fn completed(task: &mut Value, text: &str) {
    task["status"] = json!({"state": "completed"});
    task["artifacts"] = json!([{"artifactId": "a1", "parts": [{"kind": "text", "text": text}]}]);
}

async fn event(stream: &mut BufReader<TcpStream>, result: &Value) {
    let reply = json!({"jsonrpc": "2.0", "id": 1, "result": result});
    let _ = stream.write_all(format!("data: {reply}\r\n\r\n").as_bytes()).await;
}

async fn reply(stream: &mut BufReader<TcpStream>, result: Value) {
    let reply = match result.is_null() {
        true => json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32001, "message": "Task not found"}}),
        false => json!({"jsonrpc": "2.0", "id": 1, "result": result}),
    };
    send(stream, "200 OK", "application/json", &reply.to_string()).await;
}

async fn send(stream: &mut BufReader<TcpStream>, status: &str, kind: &str, body: &str) {
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    // The one who listens may be gone.
    let _ = stream.write_all(head.as_bytes()).await;
    let _ = stream.write_all(body.as_bytes()).await;
    let _ = stream.shutdown().await;
}
