//! Recording and replaying.

mod common;

use agent_core::{ErrorKind, Message, Model, ModelRequest, Result};
use agent_llm::{Cassette, OpenAiChat, Transport};
use bytes::Bytes;
use futures::StreamExt;
use http::Request;
use tempfile::TempDir;

use crate::common::{Answer, DONE, Provider, Step, ask, ask_to_stream, delta, finish, hello, request, say};

fn model(transport: impl Transport) -> OpenAiChat {
    let key = "canary-key-1";
    OpenAiChat::builder("m").base_url("http://acme.test/v1").api_key(key).transport(transport).build().expect("a model")
}

async fn record(
    answers: impl IntoIterator<Item = Answer>,
    requests: Vec<ModelRequest>,
) -> (TempDir, Vec<Result<String>>) {
    let dir = tempfile::tempdir().expect("a folder");
    let tape = Cassette::record(dir.path().join("tape"), Provider::new(answers)).expect("records");
    (dir, said(&model(tape), requests).await)
}

async fn replay(dir: &TempDir, requests: Vec<ModelRequest>) -> (Cassette, Vec<Result<String>>) {
    let tape = Cassette::replay(dir.path().join("tape")).expect("replays");
    let said = said(&model(tape.clone()), requests).await;
    (tape, said)
}

async fn said(model: &OpenAiChat, requests: Vec<ModelRequest>) -> Vec<Result<String>> {
    let mut said = Vec::new();
    for req in requests {
        said.push(model.call(req).await.map(|response| response.message.text()));
    }
    said
}

fn stream() -> Answer {
    Answer::stream([say(delta(r#"{"content":"hä"}"#)), say(finish("stop")), say(DONE)])
}

#[tokio::test]
async fn what_was_recorded_is_said_again() {
    let limited = Answer::json(429, r#"{"error":{"message":"slow down"}}"#).header("retry-after", "7");
    let requests = || vec![ask(), ask_to_stream(), request([Message::user("again")])];
    let (dir, live) = record([Answer::json(200, hello()), stream(), limited], requests()).await;
    let (tape, replayed) = replay(&dir, requests()).await;
    tape.assert_finished();
    let shown = |said: &[Result<String>]| format!("{said:?}");
    assert_eq!(shown(&replayed), shown(&live));
    let error = replayed[2].as_ref().expect_err("limited");
    assert_eq!(error.retry(), agent_core::Retry::Temporary(Some(std::time::Duration::from_secs(7))));
}

#[tokio::test]
async fn equal_requests_are_answered_in_the_order_of_the_tape() {
    let answer = |text: &str| Answer::json(200, hello().replace("hello", text));
    let (dir, _) = record([answer("one"), answer("two")], vec![ask(), ask()]).await;
    let (tape, replayed) = replay(&dir, vec![ask()]).await;
    assert_eq!((replayed[0].as_deref().expect("one"), tape.left()), ("one", 1));
}

#[tokio::test]
#[should_panic(expected = "nobody asked for")]
async fn an_answer_that_is_left_fails_the_check() {
    let (dir, _) = record([Answer::json(200, hello())], vec![ask()]).await;
    Cassette::replay(dir.path().join("tape")).expect("replays").assert_finished();
}

#[tokio::test]
async fn a_request_that_was_not_recorded_is_told_with_what_differs() {
    let (dir, _) = record([Answer::json(200, hello())], vec![ask()]).await;
    let (_, replayed) = replay(&dir, vec![request([Message::user("bye")]), ask(), ask()]).await;
    let error = replayed[0].as_ref().expect_err("not recorded");
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::NonDeterminism, false));
    assert!(error.message().contains(r#"body.messages[0].content: recorded "hi", asked "bye""#), "{error}");
    assert!(replayed[1].is_ok());
    let error = replayed[2].as_ref().expect_err("used up");
    assert!(error.message().contains("nothing that was recorded is left"), "{error}");
}

#[tokio::test]
async fn no_secret_is_written() {
    let body = r#"{"error":{"message":"the key canary-key-1 and sk-canary0123456789abcdef are wrong"}}"#;
    let refusal = Answer::json(401, body).header("set-cookie", "canary-cookie");
    let ask = || vec![request([Message::user("my key is canary-key-1, or\nsk-canary0123456789abcdef")])];
    let (dir, _) = record([refusal], ask()).await;
    let tape = std::fs::read_to_string(dir.path().join("tape")).expect("a tape");
    assert!(!tape.contains("canary"), "{tape}");
    let (tape, replayed) = replay(&dir, ask()).await;
    assert_eq!(replayed[0].as_ref().expect_err("refused").kind(), ErrorKind::Authentication);
    tape.assert_finished();
}

#[tokio::test]
async fn a_key_in_the_address_is_not_written() {
    let dir = tempfile::tempdir().expect("a folder");
    let get = || Request::get("http://acme.test/v1?alt=sse&key=canary-key-1").body(Bytes::new()).expect("a request");
    let tape = Cassette::record(dir.path().join("tape"), Provider::new([Answer::json(200, "{}")])).expect("records");
    let body = tape.send(get()).await.expect("an answer").into_body();
    body.for_each(|_| async {}).await;
    let text = std::fs::read_to_string(dir.path().join("tape")).expect("a tape");
    assert!(!text.contains("canary") && text.contains("alt=sse"), "{text}");
    Cassette::replay(dir.path().join("tape")).expect("replays").send(get()).await.expect("an answer");
}

#[tokio::test]
async fn an_answer_that_broke_off_breaks_off_again() {
    let cut = Answer::stream([say(delta(r#"{"content":"h"}"#)), Step::Break]);
    let (dir, live) = record([cut], vec![ask_to_stream()]).await;
    assert_eq!(live[0].as_ref().expect_err("cut").kind(), ErrorKind::Transport);
    let (_, replayed) = replay(&dir, vec![ask_to_stream()]).await;
    assert_eq!(replayed[0].as_ref().expect_err("cut").kind(), ErrorKind::Transport);
}

#[test]
fn a_tape_that_is_missing_or_none_says_so() {
    let dir = tempfile::tempdir().expect("a folder");
    let missing = Cassette::replay(dir.path().join("tape")).expect_err("missing");
    assert!(missing.kind() == ErrorKind::Store && missing.message().contains("tape"), "{missing}");
    std::fs::write(dir.path().join("tape"), "no JSON").expect("writes");
    assert_eq!(Cassette::replay(dir.path().join("tape")).expect_err("garbage").kind(), ErrorKind::Store);
}
