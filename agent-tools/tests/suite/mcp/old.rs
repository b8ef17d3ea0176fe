//! Servers with the HTTP+SSE transport: messages arrive as events, and are sent as requests.

use std::{net::SocketAddr, sync::Arc};

use agent_core::{ErrorKind, Toolset};
use agent_tools::mcp::{Client, Http};
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf},
    net::{TcpListener, TcpStream},
    sync::Mutex,
};

use super::{support::*, wild::Wild};

/// Starts a server that announces `endpoint` as its message endpoint.
async fn server(how: &str, endpoint: &str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let (wild, endpoint) = (Wild(how.to_owned()), endpoint.to_owned());
    tokio::spawn(async move {
        let input: Arc<Mutex<Option<WriteHalf<DuplexStream>>>> = Arc::default();
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream, wild.clone(), endpoint.clone(), input.clone()));
        }
    });
    address
}

async fn answer(
    mut stream: TcpStream,
    wild: Wild,
    endpoint: String,
    input: Arc<Mutex<Option<WriteHalf<DuplexStream>>>>,
) -> std::io::Result<()> {
    let (head, body) = read(&mut stream).await?;
    assert!(head.contains("x-key: hush"), "every request has the header: {head}");
    if head.starts_with("GET /sse ") {
        let (near, far) = tokio::io::duplex(1024);
        let (reader, writer) = tokio::io::split(far);
        tokio::spawn(async move { wild.serve(reader, writer).await });
        let (output, writer): (ReadHalf<_>, _) = tokio::io::split(near);
        *input.lock().await = Some(writer);
        let hello =
            format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\nevent: endpoint\ndata: {endpoint}\n\n");
        stream.write_all(hello.as_bytes()).await?;
        let mut lines = BufReader::new(output).lines();
        while let Some(line) = lines.next_line().await? {
            stream.write_all(format!("event: message\r\ndata: {line}\r\n\r\n").as_bytes()).await?;
        }
    } else if head.starts_with("POST /messages?session=1 ") {
        if let Some(input) = &mut *input.lock().await {
            input.write_all(&[&body[..], b"\n"].concat()).await?;
        }
        stream.write_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").await?;
    } else {
        stream.write_all(b"HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").await?;
    }
    Ok(())
}

fn client(address: SocketAddr) -> Client {
    Client::builder("old", Http::new(format!("http://{address}/sse")).header("x-key", "hush"))
        .required()
        .build()
        .expect("builds")
}

#[tokio::test]
async fn an_old_server_is_spoken_to_in_its_own_form() {
    let client = client(server("well", "/messages?session=1").await);
    assert_eq!(call(&client, "old_work", json!({})).await.expect("works").to_text(), "worked");
    client.close().await.expect("closes");
    assert_eq!(call(&client, "old_work", json!({})).await.expect("connects anew").to_text(), "worked");
}

#[tokio::test]
async fn an_old_server_that_dies_or_says_too_much_costs_an_error() {
    let dies = client(server("die tools/call", "/messages?session=1").await);
    let error = call(&dies, "old_work", json!({})).await.expect_err("dies");
    assert_eq!((error.kind(), error.message().contains("went away")), (ErrorKind::Tool, true), "{error}");
    let large = client(server("large 20000000", "/messages?session=1").await);
    let error = call(&large, "old_work", json!({})).await.expect_err("too large");
    assert!(error.message().contains("and the limit is"), "{error}");
}

#[tokio::test]
async fn messages_go_to_no_other_server_than_the_one_that_was_named() {
    let client = client(server("well", "http://127.0.0.2:1/messages?session=1").await);
    let error = client.warm_up().await.expect_err("another server");
    assert_eq!(error.kind(), ErrorKind::Tool);
}

#[tokio::test]
async fn calls_of_an_old_server_that_may_ask_run_one_at_a_time_so_that_each_question_finds_its_call() {
    let address = server("asks", "/messages?session=1").await;
    let http = Http::new(format!("http://{address}/sse")).header("x-key", "hush");
    let client = Client::builder("old", http).elicitation().build().expect("builds");
    client.warm_up().await.expect("connects");
    let (one, two) = (run(|_| {}), run(|_| {}));
    let (a, b) = tokio::join!(
        call_in(one.cx(), &client, "old_work", json!({"a": 1})),
        call_in(two.cx(), &client, "old_work", json!({"b": 1})),
    );
    for error in [a.expect_err("waits"), b.expect_err("waits")] {
        assert_eq!(error.questions().len(), 1, "{error}");
    }
}
