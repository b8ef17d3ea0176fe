//! Malicious and malformed requests.

use std::time::{Duration, Instant};

use agent::testing::Turn;
use agent_server::Server;
use bytes::Bytes;
use futures::{StreamExt, stream};
use http::Method;
use http_body_util::Full;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::support::{Client, Serving, support};

async fn serving() -> (Serving, Client) {
    let agent = support([Turn::text("Hello."), Turn::text("Hello.")]).build().expect("an agent");
    let serving = Serving::new(Server::builder().agent(agent).max_body(10_000)).await;
    let client = serving.client();
    (serving, client)
}

/// Returns the server's response to these bytes.
async fn raw(serving: &Serving, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(serving.address).await.expect("a connection");
    stream.write_all(bytes).await.expect("it is sent");
    let mut said = Vec::new();
    let reading = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut said));
    let _ = reading.await.expect("the server ends the connection");
    String::from_utf8_lossy(&said).into_owned()
}

#[tokio::test]
async fn a_body_that_is_wrong_is_told_what_is() {
    let (_serving, client) = serving().await;
    let path = "/api/agents/support/runs";
    for (body, told) in [
        (json!({}), "input"),
        (json!({"input": 7}), "a text, or a list of parts"),
        (json!({"input": "Hi.", "sesion": "x"}), "unknown field"),
        (json!({"input": "Hi.", "when_busy": "never"}), "unknown variant"),
        (json!({"input": ""}), "is empty"),
        (json!({"input": "Hi.", "session": ""}), "invalid session name"),
        (json!({"input": "Hi.", "session": "x".repeat(300)}), "invalid session name"),
        (json!({"input": "Hi.", "params": {"temperatur": 1}}), "unknown field"),
        (json!({"input": "Hi.", "params": {"extra": {"model": "dearest"}}}), "extra"),
        (json!({"input": "Hi.", "state": {"nobody": 1}}), "nobody"),
        (json!([]), "body"),
    ] {
        let answer = client.post(path, &body).await;
        assert_eq!((answer.status, answer.code().as_str()), (400, "invalid_request"), "{body}: {}", answer.text);
        assert!(answer.text.contains(told), "{body}: {}", answer.text);
    }
    assert_eq!(client.post("/api/agents/nobody/runs", &json!({"input": "Hi."})).await.status, 404);
    assert_eq!(client.get("/api/nothing").await.code(), "not_found");
    assert_eq!(client.delete("/api/agents").await.status, 405);
    assert_eq!(client.get("/api/runs?limit=x").await.status, 400);
}

#[tokio::test]
async fn what_is_too_large_too_deep_or_no_json_is_refused_before_it_is_looked_at() {
    let (serving, client) = serving().await;
    let path = "/api/agents/support/runs";
    let large = client.post(path, &json!({"input": "x".repeat(20_000)})).await;
    assert_eq!((large.status, large.code().as_str()), (413, "too_large"));
    let send = async |kind: &str, body: String| {
        let request = client.request(Method::POST, path).header("content-type", kind);
        client.answer(request.body(Full::from(body)).expect("a request")).await
    };
    let said = "POST /api/agents/support/runs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 10001\r\n\r\n";
    let begun = Instant::now();
    assert!(raw(&serving, said.as_bytes()).await.starts_with("HTTP/1.1 413"));
    assert!(begun.elapsed() < Duration::from_secs(10), "what says that it is too large is not waited for");
    let deep = send("application/json", format!("{{\"input\": {}1{}}}", "[".repeat(1_000), "]".repeat(1_000))).await;
    assert_eq!(deep.status, 400);
    assert!(deep.text.contains("deep"), "{}", deep.text);
    assert_eq!(send("text/plain", "{\"input\": \"Hi.\"}".into()).await.status, 415);
    assert_eq!(send("application/json", "{\"input\": ".into()).await.status, 400);
    assert_eq!(send("application/json", "\u{0}".into()).await.status, 400);
}

#[tokio::test]
async fn pages_of_others_and_names_of_others_reach_nothing() {
    let (_serving, client) = serving().await;
    let ask = async |name: &str, value: &str| {
        let mut request = client.json(Method::POST, "/api/agents/support/runs", &json!({"input": "Hi."}));
        request
            .headers_mut()
            .insert(http::HeaderName::from_bytes(name.as_bytes()).expect("a name"), value.parse().expect("a value"));
        client.answer(request).await
    };
    for (name, value, status, code) in [
        ("origin", "https://evil.example", 403, "forbidden"),
        ("origin", "null", 403, "forbidden"),
        ("host", "evil.example", 421, "unknown_host"),
        ("host", "127.0.0.1.evil.example", 421, "unknown_host"),
    ] {
        let answer = ask(name, value).await;
        assert_eq!((answer.status, answer.code().as_str()), (status, code), "{name}: {value}");
    }
    let answer = client.get("/api/runs").await;
    assert_eq!(answer.json()["runs"], json!([]), "none of them began");
    for (name, value) in
        [("x-content-type-options", "nosniff"), ("x-frame-options", "DENY"), ("cache-control", "no-store")]
    {
        assert_eq!(answer.headers[name], value);
    }
}

#[tokio::test]
async fn heads_that_are_too_many_too_long_or_malformed_are_refused() {
    let (serving, client) = serving().await;
    let many: String = (0..500).map(|n| format!("x-{n}: y\r\n")).collect();
    let said = raw(&serving, format!("GET /health HTTP/1.1\r\nhost: localhost\r\n{many}\r\n").as_bytes()).await;
    assert!(said.starts_with("HTTP/1.1 431"), "{said}");
    let long = "y".repeat(200_000);
    let said = raw(&serving, format!("GET /health HTTP/1.1\r\nhost: localhost\r\nx: {long}\r\n\r\n").as_bytes()).await;
    assert!(said.starts_with("HTTP/1.1 431") || said.is_empty(), "{said}");
    let said = raw(&serving, b"GET /health HTTP/1.1\r\nhost: localhost\r\nno colon\r\n\r\n").await;
    assert!(said.starts_with("HTTP/1.1 400"), "{said}");
    assert_eq!(client.get("/health").await.status, 200, "the server is well");
}

#[tokio::test]
async fn one_stream_more_than_there_may_be_is_refused() {
    let model = super::support::Gated::new([Turn::text("Late.")]);
    let agent = agent::Agent::builder("support", model.clone()).build().expect("an agent");
    let serving = Serving::new(Server::builder().agent(agent).max_streams(1)).await;
    let client = serving.client();
    let run = client.start(&json!({"input": "Hi."})).await;
    let path = format!("/api/runs/{}/events", run["run"].as_str().expect("an id"));
    let open = client.send(client.request(Method::GET, &path).body(Full::default()).expect("a request")).await;
    assert_eq!(open.status(), 200);
    let refused = client.get(&path).await;
    assert_eq!((refused.status, refused.code().as_str()), (429, "too_many_streams"));
    model.open();
    client.rest(&run).await;
    drop(open);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_stops_coming_is_given_up() {
    let server = Server::builder().agent(support([]).build().expect("an agent")).build().expect("a server");
    let begun = stream::once(async { Ok::<_, std::io::Error>(Bytes::from_static(b"{\"input\": ")) });
    let request = http::Request::post("/api/agents/support/runs").header("host", "localhost");
    let request = request.header("content-type", "application/json");
    let request = request.body(axum::body::Body::from_stream(begun.chain(stream::pending()))).expect("a request");
    let answer = tower::ServiceExt::oneshot(server.router(), request).await.expect("an answer");
    assert_eq!(answer.status(), 408);
}
