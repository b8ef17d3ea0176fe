//! HTTP servers that lose their sessions.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use agent_tools::mcp::{Client, Http};
use serde_json::{Value, json};
use tokio::{
    io::AsyncWriteExt,
    net::{TcpListener, TcpStream},
};

use super::support::*;

/// Answers one request in the session of this number: any other session is rejected with status
/// 400, as some servers do.
async fn answer(mut stream: TcpStream, session: usize) -> std::io::Result<()> {
    let (head, body) = read(&mut stream).await?;
    let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
    let id = asked["id"].clone();
    let result = match asked["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": asked["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "forgetful", "version": "1"},
        }),
        "tools/list" => json!({"tools": [{"name": "work", "inputSchema": {"type": "object"}}]}),
        _ => json!({"content": [{"type": "text", "text": "worked"}]}),
    };
    let is_known =
        asked["method"] == "initialize" || head.to_lowercase().contains(&format!("mcp-session-id: {session}\r\n"));
    let (status, body) = match (is_known, id.is_null()) {
        _ if !head.starts_with("POST") => ("405 Method Not Allowed", String::new()),
        (true, true) => ("202 Accepted", String::new()),
        (true, false) => ("200 OK", json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string()),
        (false, _) => {
            let error = json!({"code": -32000, "message": "Bad Request: No valid session ID provided"});
            ("400 Bad Request", json!({"jsonrpc": "2.0", "id": null, "error": error}).to_string())
        }
    };
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nmcp-session-id: {session}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).await
}

#[tokio::test]
async fn a_server_that_was_started_again_and_answers_400_to_an_old_session_is_found_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let started = Arc::new(AtomicUsize::new(1));
    let now = started.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream, now.load(Ordering::Acquire)));
        }
    });
    let client = Client::builder("f", Http::new(format!("http://{address}/mcp"))).build().expect("builds");
    assert_eq!(call(&client, "f_work", json!({})).await.expect("works").to_text(), "worked");
    started.store(2, Ordering::Release);
    assert_eq!(call(&client, "f_work", json!({})).await.expect("works again").to_text(), "worked");
}
