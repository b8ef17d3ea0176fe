//! Servers that misbehave, written by hand.

use agent_tools::mcp::{Client, ClientBuilder, Reader, Streams, Writer};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};

/// What a server does wrong, in words such as `hang tools/call`, `die initialize`, `large 1000`, `garbage` and `nonsense`.
#[derive(Clone)]
pub(crate) struct Wild(pub(crate) String);

/// A client of one.
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
    Client::builder("wild", streams)
}

impl Wild {
    /// Serves until its input ends, or it dies.
    pub(crate) async fn serve(&self, reader: impl AsyncRead + Unpin, mut writer: impl AsyncWrite + Unpin) {
        let mut lines = BufReader::new(reader).lines();
        let (what, of) = self.0.split_once(' ').unwrap_or((&self.0, ""));
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
            let result = match method {
                "initialize" => json!({
                    "protocolVersion": asked["params"]["protocolVersion"],
                    "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
                    "serverInfo": {"name": "wild", "version": "1"},
                }),
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
