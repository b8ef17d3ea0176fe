//! The transport against a server of raw bytes.
#![cfg(feature = "http")]

use std::sync::Arc;

use agent_core::{ErrorKind, Model, ModelRequest, ModelResponse, Result};
use agent_llm::LayeredModel;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Notify,
    task::JoinHandle,
};

use crate::common::{DONE, ask, ask_to_stream, delta, finish, hello};

/// Action of the server on one connection, after it has read a request.
#[derive(Clone)]
enum Act {
    Say(String),
    Close,
    Reset,
    AwaitClose,
    NextRequest,
    Tell(Arc<Notify>),
    Await(Arc<Notify>),
}

fn head(more: &str) -> Act {
    Act::Say(format!("HTTP/1.1 200 OK\r\n{more}\r\n\r\n"))
}

fn whole(body: &str) -> Act {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}", body.len());
    Act::Say(format!("{head}\r\n\r\n{body}"))
}

fn chunk(body: &str) -> Act {
    Act::Say(format!("{:x}\r\n{body}\r\n", body.len()))
}

fn stream_head() -> Act {
    head("content-type: text/event-stream\r\ntransfer-encoding: chunked")
}

async fn read_request(stream: &mut TcpStream) -> bool {
    let (mut seen, mut buffer) = (Vec::new(), [0; 1024]);
    loop {
        match stream.read(&mut buffer).await {
            Ok(n) if n > 0 => seen.extend_from_slice(&buffer[..n]),
            _ => return false,
        }
        let text = String::from_utf8_lossy(&seen);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length =
                head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return true;
            }
        }
    }
}

/// Starts a server for one connection; the task returns the number of requests on it.
async fn serve(acts: Vec<Act>) -> (LayeredModel, JoinHandle<usize>) {
    let (model, served) = serve_each(vec![acts]).await;
    (model, tokio::spawn(async move { served.await.expect("serves")[0] }))
}

/// Starts a server for several concurrent connections; the task returns the number of requests on
/// each, in order of opening.
async fn serve_each(connections: Vec<Vec<Act>>) -> (LayeredModel, JoinHandle<Vec<usize>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
    let served = tokio::spawn(async move {
        let mut served = Vec::new();
        for acts in connections {
            let (stream, _) = listener.accept().await.expect("a connection");
            served.push(tokio::spawn(play(stream, acts)));
        }
        drop(listener);
        let mut requests = Vec::new();
        for connection in served {
            requests.push(connection.await.expect("plays"));
        }
        requests
    });
    (agent_llm::model("openai:m").base_url(url).retries(0).build().expect("a model"), served)
}

/// Performs `acts` after the first request; returns the number of requests.
async fn play(mut stream: TcpStream, acts: Vec<Act>) -> usize {
    let mut requests = usize::from(read_request(&mut stream).await);
    for act in acts {
        match act {
            Act::Say(text) => stream.write_all(text.as_bytes()).await.expect("writes"),
            Act::Close => break,
            Act::Reset => {
                stream.set_zero_linger().expect("sets");
                break;
            }
            Act::AwaitClose => assert!(!read_request(&mut stream).await, "closed"),
            Act::Tell(reached) => reached.notify_one(),
            Act::Await(allowed) => allowed.notified().await,
            Act::NextRequest => requests += usize::from(read_request(&mut stream).await),
        }
    }
    requests
}

async fn call(acts: Vec<Act>, req: ModelRequest) -> Result<ModelResponse> {
    let (model, _served) = serve(acts).await;
    model.call(req).await
}

#[tokio::test]
async fn a_connection_is_used_again_after_a_whole_and_after_a_streamed_answer() {
    let said = delta(r#"{"content":"hello"}"#) + &finish("stop") + DONE;
    let acts = vec![
        whole(&hello()),
        Act::NextRequest,
        stream_head(),
        chunk(&said),
        chunk(""),
        Act::NextRequest,
        whole(&hello()),
    ];
    let (model, served) = serve(acts).await;
    for req in [ask(), ask_to_stream(), ask()] {
        assert_eq!(model.call(req).await.expect("an answer").message.text(), "hello");
    }
    assert_eq!(served.await.expect("serves"), 3, "on one connection");
}

#[tokio::test]
async fn a_body_that_is_closed_early_is_truncated() {
    let said = chunk(&delta(r#"{"content":"hel"}"#));
    let error = call(vec![stream_head(), said, Act::Close], ask_to_stream()).await.expect_err("cut");
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Truncated, true));
    let short = Act::Say("HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{\"choices\"".into());
    let error = call(vec![short, Act::Close], ask()).await.expect_err("cut");
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Truncated, true));
}

#[tokio::test]
async fn a_connection_that_is_reset_has_failed() {
    let error = call(vec![stream_head(), Act::Reset], ask_to_stream()).await.expect_err("reset");
    assert!(matches!(error.kind(), ErrorKind::Transport | ErrorKind::Truncated) && error.is_retryable(), "{error}");
    let error = call(vec![Act::Reset], ask()).await.expect_err("reset");
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Transport, true));
    assert!(std::error::Error::source(&error).is_some(), "the cause is kept");
}

#[tokio::test]
async fn what_is_not_http_has_failed() {
    let error = call(vec![Act::Say("hello?\r\n\r\n".into()), Act::Close], ask()).await.expect_err("no HTTP");
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Transport, true));
}

#[tokio::test]
async fn a_server_that_is_not_there_cannot_be_reached() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
    drop(listener);
    let error = agent_llm::model("openai:m")
        .base_url(url)
        .retries(0)
        .build()
        .expect("a model")
        .call(ask())
        .await
        .expect_err("nobody");
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Transport, true));
    assert!(error.message().contains("could not be reached"), "{error}");
    assert!(error.context("provider").is_some(), "and who it is: {error}");
}

#[tokio::test]
async fn dropping_the_call_closes_the_connection() {
    for acts in [vec![], vec![stream_head(), chunk(&delta(r#"{"content":"h"}"#))]] {
        let reached = Arc::new(Notify::new());
        let last = [Act::Tell(reached.clone()), Act::AwaitClose];
        let (model, served) = serve(acts.into_iter().chain(last).collect()).await;
        tokio::select! {
            _ = model.call(ask_to_stream()) => panic!("no answer is complete"),
            () = reached.notified() => {} // and the call is dropped
        }
        assert_eq!(served.await.expect("sees the end"), 1);
    }
}

#[tokio::test]
async fn a_connection_that_was_closed_while_it_waited_is_replaced() {
    for end in [Act::Close, Act::Reset] {
        let closed = Arc::new(Notify::new());
        let first = vec![whole(&hello()), Act::Await(closed.clone()), end];
        let (model, served) = serve_each(vec![first, vec![whole(&hello())]]).await;
        model.call(ask()).await.expect("an answer");
        closed.notify_one();
        // Let the server close the connection, and the client notice it.
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        assert_eq!(model.call(ask()).await.expect("an answer").message.text(), "hello");
        assert_eq!(served.await.expect("serves"), [1, 1]);
    }
}

#[tokio::test]
async fn a_request_that_was_sent_is_not_sent_again() {
    let first = vec![whole(&hello()), Act::NextRequest, Act::Close];
    let (model, served) = serve_each(vec![first]).await;
    model.call(ask()).await.expect("an answer");
    let error = model.call(ask()).await.expect_err("no answer");
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Transport, true));
    assert_eq!(served.await.expect("serves"), [2], "and no other connection was opened");
}

#[tokio::test]
async fn calls_at_once_have_a_connection_each_and_keep_it() {
    let both = Arc::new(tokio::sync::Barrier::new(2));
    let acts = || vec![whole(&hello()), Act::NextRequest, whole(&hello())];
    let (model, served) = serve_each(vec![acts(), acts()]).await;
    let twice = || async {
        both.wait().await;
        model.call(ask()).await.expect("an answer");
        both.wait().await;
        model.call(ask()).await.expect("an answer");
    };
    tokio::join!(twice(), twice());
    assert_eq!(served.await.expect("serves"), [2, 2]);
}

#[tokio::test]
async fn a_connection_that_nobody_uses_is_closed_after_ninety_seconds_at_most() {
    let (model, served) = serve(vec![whole(&hello()), Act::AwaitClose]).await;
    model.call(ask()).await.expect("an answer");
    tokio::task::yield_now().await;
    tokio::time::pause();
    let since = tokio::time::Instant::now();
    assert_eq!(served.await.expect("sees the end"), 1);
    assert!((45..=91).contains(&since.elapsed().as_secs()), "after {:?}", since.elapsed());
}

#[tokio::test]
async fn an_answer_before_the_request_is_read_is_heard() {
    let large = "x".repeat(8 << 20);
    let refused = "HTTP/1.1 413 Payload Too Large\r\ncontent-length: 0\r\n\r\n";
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        stream.write_all(refused.as_bytes()).await.expect("writes");
        stream // open, and never read
    });
    let model = agent_llm::model("openai:m").base_url(url).retries(0).build().expect("a model");
    let history = agent_core::History::from_messages([agent_core::Message::user(large)]).expect("paired");
    let mut req = ask();
    req.messages = history;
    let error = model.call(req).await.expect_err("refused");
    assert_eq!(error.context("status"), Some("413"), "{error}");
    drop(server);
}

#[tokio::test]
async fn a_call_on_an_open_connection_is_polled_to_send_and_to_read_and_never_in_vain() {
    let (model, served) = serve(vec![whole(&hello()), Act::NextRequest, whole(&hello())]).await;
    for wanted in [None, Some(2)] {
        let (mut call, mut polls) = (std::pin::pin!(model.call(ask())), 0);
        let answered = std::future::poll_fn(|cx| {
            polls += 1;
            call.as_mut().poll(cx)
        });
        answered.await.expect("an answer");
        assert!(wanted.is_none_or(|wanted| wanted == polls), "{polls}");
    }
    assert_eq!(served.await.expect("serves"), 2);
}
