//! Answers with damaged bytes: each ends its own call in time, and no other one.

use std::{sync::Arc, time::Duration};

use agent_tools::mcp::{Client, ClientBuilder, Http, Protocol, Reader, Streams, Writer};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpListener,
    time::Instant,
};

use super::support::*;

/// Number of damaged answers per transport: `AGENT_DAMAGED_ANSWERS`.
fn count() -> u64 {
    std::env::var("AGENT_DAMAGED_ANSWERS").ok().and_then(|count| count.parse().ok()).unwrap_or(200)
}

const TIMEOUT: Duration = Duration::from_secs(5);

/// Numbers that look random.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("fits") % limit.max(1)
    }
}

/// Damages an answer, except for the digits of its id: with those of another request it would be
/// a valid answer to that one.
fn damage(answer: &str, seed: u64) -> Vec<u8> {
    let mut numbers = Numbers(seed);
    numbers.below(1);
    let begin = answer.find("\"id\":").expect("an id");
    let id = begin..begin + answer[begin..].find(['}', ',']).expect("an end");
    let mut bytes = answer.as_bytes().to_vec();
    for _ in 0..=numbers.below(4) {
        let at = numbers.below(bytes.len());
        if id.contains(&at) {
            continue;
        }
        match numbers.below(6) {
            0 => bytes[at] ^= 1 << numbers.below(8),
            1 => bytes[at] = u8::try_from(numbers.below(256)).expect("a byte"),
            2 if at >= id.end => bytes.truncate(at),
            3 if at >= id.end => drop(bytes.remove(at)),
            4 if at >= id.end => bytes.splice(at..at, b"\\ud83d".iter().copied()).for_each(drop),
            5 if at >= id.end => bytes.splice(at..at, b"NaN".iter().copied()).for_each(drop),
            _ => {}
        }
    }
    bytes
}

/// The answer to a request, whose calls with an even number are damaged.
fn answer(asked: &Value) -> Option<Vec<u8>> {
    let id = asked.get("id")?;
    let number = asked["params"]["arguments"]["n"].as_u64();
    let result = match asked["method"].as_str()? {
        "server/discover" => {
            json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private"})
        }
        "initialize" => {
            json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "d", "version": "1"}})
        }
        "tools/list" => json!({"tools": [{"name": "work", "inputSchema": {"type": "object"}}]}),
        // Other ids inside.
        _ => {
            json!({"content": [{"type": "text", "text": format!("done {} {{\"id\":3}}", number.unwrap_or_default())}], "structuredContent": {"id": 2}})
        }
    };
    let answer = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
    Some(match number {
        Some(number) if number % 2 == 0 => damage(&answer, number),
        _ => answer.into_bytes(),
    })
}

fn over_streams(protocol: Protocol) -> ClientBuilder {
    let streams = Streams::new(|| {
        Box::pin(async {
            let (near, far) = tokio::io::duplex(1 << 16);
            let (reader, mut writer) = tokio::io::split(far);
            tokio::spawn(async move {
                let mut lines = BufReader::new(reader).lines();
                while let Ok(Some(line)) = lines.next_line().await {
                    let asked = serde_json::from_str(&line).expect("JSON");
                    if let Some(mut bytes) = answer(&asked) {
                        bytes.push(b'\n');
                        if writer.write_all(&bytes).await.is_err() {
                            return;
                        }
                    }
                }
            });
            let (reader, writer) = tokio::io::split(near);
            Ok((Box::new(reader) as Reader, Box::new(writer) as Writer))
        })
    });
    Client::builder("d", streams).protocol(protocol)
}

async fn over_http() -> ClientBuilder {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (_, body) = read(&mut stream).await?;
                let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
                let Some(bytes) = answer(&asked) else {
                    return stream
                        .write_all(b"HTTP/1.1 202 Accepted\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
                        .await;
                };
                let has_events = asked["params"]["arguments"]["n"].as_u64().is_some_and(|n| n % 4 == 0);
                let (kind, body) = match has_events {
                    true => ("text/event-stream", [b"data: ".as_slice(), &bytes, b"\n\n"].concat()),
                    false => ("application/json", bytes),
                };
                let length = body.len();
                let head = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
                );
                stream.write_all(head.as_bytes()).await?;
                stream.write_all(&body).await
            });
        }
    });
    Client::builder("d", Http::new(format!("http://{address}/mcp")))
}

/// Makes calls whose answers are damaged, each beside one whose answer is not.
async fn try_all(client: Client) {
    let client = Arc::new(client.clone());
    client.offered().await.expect("listed");
    for first in (0..count()).step_by(20) {
        let calls = (first..first + 20).map(|n| {
            let client = client.clone();
            async move {
                let began = Instant::now();
                let called = call(&client, "d_work", json!({"n": n})).await;
                assert!(began.elapsed() <= TIMEOUT + Duration::from_secs(1), "call {n} hangs");
                if n % 2 == 1 {
                    let text = called.unwrap_or_else(|e| panic!("call {n} beside a damaged answer: {e}")).to_text();
                    assert_eq!(text, format!("done {n} {{\"id\":3}}"));
                }
            }
        });
        futures::future::join_all(calls).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_damaged_answer_over_streams_ends_its_call_and_no_other_one() {
    for protocol in [Protocol::Handshake, Protocol::Stateless] {
        try_all(over_streams(protocol).timeout(TIMEOUT).build().expect("builds")).await;
    }
}

#[tokio::test]
async fn a_damaged_answer_over_http_ends_its_call_and_no_other_one() {
    try_all(over_http().await.timeout(TIMEOUT).build().expect("builds")).await;
}
