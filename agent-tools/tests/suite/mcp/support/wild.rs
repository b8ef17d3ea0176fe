//! Hand-written servers that misbehave.

use agent_tools::mcp::{Client, ClientBuilder, Protocol, Reader, Streams, Writer};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};

/// Misbehaviours of a server, in words such as `hang tools/call`, `die initialize`, `large 1000`,
/// `garbage` and `nonsense`.
///
/// A server that `asks` makes an elicitation request in each call. A `late` server never answers
/// its first call, and makes its request during the next one. A server that `relists` announces
/// changed tools in each call, and then never lists them. `pages` lists tools endlessly.
#[derive(Clone)]
pub(crate) struct Wild(pub(crate) String);

/// Returns a client builder for such a server.
pub(crate) fn builder(how: &str) -> ClientBuilder {
    let wild = Wild(how.to_owned());
    let streams = Streams::new(move || {
        let wild = wild.clone();
        Box::pin(async move {
            let (near, far) = tokio::io::duplex(1024);
            let (reader, writer) = tokio::io::split(far);
            tokio::spawn(async move { wild.serve(reader, writer).await });
            let (reader, writer) = tokio::io::split(near);
            Ok((Box::new(reader) as Reader, Box::new(writer) as Writer))
        })
    });
    Client::builder("wild", streams).protocol(Protocol::Handshake)
}

impl Wild {
    /// Serves until its input ends, or it crashes.
    pub(crate) async fn serve(&self, reader: impl AsyncRead + Unpin, mut writer: impl AsyncWrite + Unpin) {
        let mut lines = BufReader::new(reader).lines();
        let (what, of) = self.0.split_once(' ').unwrap_or((&self.0, ""));
        let (mut calls, mut lists) = (0, 0);
        while let Ok(Some(line)) = lines.next_line().await {
            let asked: Value = serde_json::from_str(&line).expect("JSON");
            let method = asked["method"].as_str().unwrap_or_default();
            let Some(id) = asked.get("id").filter(|_| !method.is_empty()) else { continue };
            match what {
                "hang" if of == method => std::future::pending().await,
                "die" if of == method => return,
                "garbage" => {
                    let noise =
                        b"Listening on port 3000\n\n\xff\xfe\x00\n{\"level\":\"info\"}\n[1,2\n{\"jsonrpc\":\"2.0\"}\n";
                    let _ = writer.write_all(noise).await;
                }
                _ => {}
            }
            calls += usize::from(method == "tools/call");
            lists += usize::from(method == "tools/list");
            match what {
                "late" if calls == 1 => continue,
                "late" | "asks" if method == "tools/call" => {
                    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
                    let params = json!({"mode": "form", "message": "Who are you?", "requestedSchema": schema});
                    let ask =
                        json!({"jsonrpc": "2.0", "id": 900 + calls, "method": "elicitation/create", "params": params});
                    let _ = writer.write_all((ask.to_string() + "\n").as_bytes()).await;
                    if what == "asks" {
                        continue;
                    }
                }
                "relists" if lists > 1 && method == "tools/list" => continue,
                "relists" if method == "tools/call" => {
                    let note = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
                    let _ = writer.write_all((note.to_string() + "\n").as_bytes()).await;
                }
                _ => {}
            }
            let result = match method {
                "initialize" => json!({
                    "protocolVersion": asked["params"]["protocolVersion"],
                    "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
                    "serverInfo": {"name": "wild", "version": "1"},
                }),
                "tools/list" if what == "pages" => json!({"tools": [], "nextCursor": "more"}),
                "tools/list" if what == "talks" => {
                    let long = json!({"name": "work", "description": "x".repeat(1_000_000), "inputSchema": {"type": "object"}});
                    let huge = json!({"type": "object", "properties": {}, "title": "x".repeat(1_000_000)});
                    json!({"tools": [long, {"name": "huge", "inputSchema": huge}]})
                }
                "tools/list" if what == "structured" => {
                    let output =
                        json!({"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]});
                    json!({"tools": [{"name": "work", "inputSchema": {"type": "object"}, "outputSchema": output}]})
                }
                "tools/call" if what == "structured" => {
                    let value: Value = serde_json::from_str(of).expect("JSON");
                    json!({"content": [{"type": "text", "text": of}], "structuredContent": value})
                }
                "tools/list" => json!({"tools": [{"name": "work", "inputSchema": {"type": "object"}}]}),
                "tools/call" if what == "nonsense" => json!({"content": "nothing of the kind"}),
                "tools/call" if what == "large" => {
                    json!({"content": [{"type": "text", "text": "x".repeat(of.parse().expect("a number"))}]})
                }
                "tools/call" if what == "environment" => {
                    let names: Vec<String> = std::env::vars().map(|(name, _)| name).collect();
                    json!({"content": [{"type": "text", "text": names.join(" ")}]})
                }
                "tools/call" => json!({"content": [{"type": "text", "text": "worked"}]}),
                "resources/list" => json!({"resources": []}),
                "prompts/list" => json!({"prompts": []}),
                _ => json!({}),
            };
            let answer = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string() + "\n";
            if writer.write_all(answer.as_bytes()).await.is_err() || writer.flush().await.is_err() {
                return;
            }
        }
    }
}
