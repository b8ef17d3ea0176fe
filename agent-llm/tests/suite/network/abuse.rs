//! Providers with invalid HTTP/1.1 traffic.

use agent_core::{ErrorKind, Model, ModelResponse, Result};
use agent_llm::model;

use super::{
    common::{ask, ask_to_stream, delta, finish, hello},
    server::{answering, answering_once},
};

fn head(more: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{more}\r\n")
}

fn whole(body: &str) -> Vec<u8> {
    (head(&format!("content-length: {}\r\n", body.len())) + body).into_bytes()
}

fn streamed(pieces: &[&str]) -> Vec<u8> {
    let chunks: String = pieces.iter().map(|piece| format!("{:x}\r\n{piece}\r\n", piece.len())).collect();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    format!("{head}{chunks}").into_bytes()
}

async fn call(answer: Vec<u8>, is_streamed: bool) -> Result<ModelResponse> {
    let url = answering(move |_| answer.clone()).await;
    let model = model("openai:m").retries(0).base_url(url).api_key("sk-SECRET").max_answer(1 << 20);
    let model = model.idle_timeout(std::time::Duration::from_secs(1)).build().expect("a model");
    model.call(if is_streamed { ask_to_stream() } else { ask() }).await
}

async fn refused(what: &str, answer: Vec<u8>, is_streamed: bool, kind: ErrorKind) {
    let error = call(answer, is_streamed).await.expect_err(what);
    assert_eq!(error.kind(), kind, "{what}: {error}");
    assert!(!format!("{error:?}").contains("SECRET"), "{what}: {error:?}");
}

#[tokio::test]
async fn streams_that_end_early_or_are_garbage_are_errors() {
    let said = delta(r#"{"content":"hel"}"#);
    let bad_chunk = [&streamed(&[]), &b"zz\r\nhello\r\n"[..]].concat();
    refused("a cut event", streamed(&[&said, "data: {\"id\":"]), true, ErrorKind::Timeout).await;
    refused("no finish", [streamed(&[&said]), b"0\r\n\r\n".to_vec()].concat(), true, ErrorKind::Truncated).await;
    refused("no chunk", bad_chunk, true, ErrorKind::Transport).await;
    let ended = streamed(&[&said, &finish("stop"), "data: [DONE]\n\n"]);
    assert_eq!(call(ended, true).await.expect("an answer").message.text(), "hel", "though the last chunk is missing");
}

#[tokio::test]
async fn a_body_that_is_shorter_than_its_head_said_is_cut_though_what_came_is_whole() {
    let short = head(&format!("content-length: {}\r\n", hello().len() + 50)) + &hello();
    let url = answering_once(short.into_bytes()).await;
    let error = model("openai:m").retries(0).base_url(url).build().expect("a model").call(ask()).await;
    let error = error.expect_err("cut");
    assert_eq!((error.kind(), error.context("part")), (ErrorKind::Truncated, Some("body")), "{error}");
}

#[tokio::test]
async fn heads_without_end_and_bodies_that_are_none_are_errors() {
    let header = format!("x: {}\r\n", "a".repeat(1_000));
    refused("a huge head", head(&header.repeat(2_000)).into_bytes(), false, ErrorKind::Transport).await;
    refused("many headers", head(&"x: y\r\n".repeat(200)).into_bytes(), false, ErrorKind::Transport).await;
    refused(
        "two lengths",
        head("content-length: 1\r\ncontent-length: 2\r\n").into_bytes(),
        false,
        ErrorKind::Transport,
    )
    .await;
    refused("a silent body", head("content-length: 100\r\n").into_bytes(), false, ErrorKind::Timeout).await;
    let big = [head("content-length: 1073741824\r\n").into_bytes(), vec![b' '; 2 << 20]].concat();
    refused("a huge body", big, false, ErrorKind::Protocol).await;
}

#[tokio::test]
async fn what_was_not_asked_for_is_nobodys_answer() {
    let (said, evil) = (whole(&hello()), whole(&hello().replace("hello", "EVIL!")));
    let smuggled = [said.clone(), evil].concat();
    let url = answering(move |_| smuggled.clone()).await;
    let model = model("openai:m").retries(0).base_url(url).build().expect("a model");
    for _ in 0..5 {
        assert_eq!(model.call(ask()).await.expect("an answer").message.text(), "hello");
    }
}
