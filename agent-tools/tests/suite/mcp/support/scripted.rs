//! Server of hand-written answers that records what it receives.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use agent_tools::mcp::{Client, ClientBuilder, Reader, Streams, Writer};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

/// Returns the messages that answer a request; one with `result` or `error` gets the request's id.
/// `None` closes the connection.
type Answers = dyn Fn(&Value) -> Option<Vec<Value>> + Send + Sync;

#[derive(Clone)]
pub(crate) struct Scripted {
    answers: Arc<Answers>,
    seen: Arc<Mutex<Vec<Value>>>,
    connections: Arc<AtomicUsize>,
}

impl Scripted {
    pub(crate) fn new(answers: impl Fn(&Value) -> Option<Vec<Value>> + Send + Sync + 'static) -> Self {
        Self { answers: Arc::new(answers), seen: Arc::default(), connections: Arc::default() }
    }

    /// A server without handshake: it has the tool `work`, whose calls `call` answers.
    pub(crate) fn stateless(call: impl Fn(&Value) -> Vec<Value> + Send + Sync + 'static) -> Self {
        Self::new(move |asked| {
            Some(match asked["method"].as_str().unwrap_or_default() {
                "server/discover" => vec![discovered(&json!({"tools": {}, "logging": {}}))],
                "tools/list" => vec![tools(0)],
                _ => call(asked),
            })
        })
    }

    pub(crate) fn builder(&self) -> ClientBuilder {
        let server = self.clone();
        let streams = Streams::new(move || {
            let server = server.clone();
            Box::pin(async move {
                server.connections.fetch_add(1, Ordering::AcqRel);
                let (near, far) = tokio::io::duplex(1 << 16);
                tokio::spawn(server.serve(far));
                let (reader, writer) = tokio::io::split(near);
                Ok((Box::new(reader) as Reader, Box::new(writer) as Writer))
            })
        });
        Client::builder("s", streams)
    }

    async fn serve(self, far: tokio::io::DuplexStream) {
        let (reader, mut writer) = tokio::io::split(far);
        let mut lines = BufReader::new(reader).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let asked: Value = serde_json::from_str(&line).expect("JSON");
            self.seen.lock().expect("free").push(asked.clone());
            let Some(id) = asked.get("id") else { continue };
            let Some(answers) = (self.answers)(&asked) else { return };
            for mut answer in answers {
                answer["jsonrpc"] = "2.0".into();
                if answer.get("method").is_none() {
                    answer["id"] = id.clone();
                }
                if writer.write_all((answer.to_string() + "\n").as_bytes()).await.is_err() {
                    return;
                }
            }
        }
    }

    /// Returns the received messages with this method.
    pub(crate) fn seen(&self, method: &str) -> Vec<Value> {
        self.seen.lock().expect("free").iter().filter(|asked| asked["method"] == method).cloned().collect()
    }

    /// Returns the methods of all received messages.
    pub(crate) fn methods(&self) -> Vec<String> {
        let seen = self.seen.lock().expect("free");
        seen.iter().filter_map(|asked| asked["method"].as_str().map(str::to_owned)).collect()
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Acquire)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "callers make the value in place")]
pub(crate) fn result(value: Value) -> Value {
    json!({ "result": value })
}

/// The answer to a probe of a server with these capabilities.
pub(crate) fn discovered(capabilities: &Value) -> Value {
    result(json!({
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": capabilities,
        "ttlMs": 0,
        "cacheScope": "private",
        "instructions": "Be kind.",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "1"}},
    }))
}

/// A list with the tool `work`, which holds for this time.
pub(crate) fn tools(ttl_ms: u64) -> Value {
    let work = json!({"name": "work", "inputSchema": {"type": "object"}});
    result(json!({"resultType": "complete", "tools": [work], "ttlMs": ttl_ms, "cacheScope": "private"}))
}

/// The result of a call.
pub(crate) fn text(text: impl Into<String>) -> Value {
    result(json!({"resultType": "complete", "content": [{"type": "text", "text": text.into()}]}))
}

/// A result that requests these inputs.
pub(crate) fn input(requests: &Value, state: &str) -> Value {
    result(json!({"resultType": "input_required", "inputRequests": requests, "requestState": state}))
}

/// The request of a name from a person.
pub(crate) fn elicitation(message: &str) -> Value {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    json!({"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}})
}
