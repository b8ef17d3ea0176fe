//! Recording and replaying.

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    time::Duration,
};

use agent_core::{Error, ErrorKind, Message, Model, ModelRequest, Result, Retry};
use agent_llm::{Body, Cassette, CassetteBuilder, CassetteMode, LayeredModel, Transport, transport_fn};
use bytes::Bytes;
use futures::StreamExt;
use http::{Request, Response};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::{Answer, DONE, Provider, Step, ask, ask_to_stream, delta, finish, hello, request, say};

fn model(transport: impl Transport) -> LayeredModel {
    let key = "canary-key-1";
    agent_llm::model("openai:m")
        .base_url("http://acme.test/v1")
        .api_key(key)
        .transport(transport)
        .retries(0)
        .build()
        .expect("a model")
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

async fn said(model: &LayeredModel, requests: Vec<ModelRequest>) -> Vec<Result<String>> {
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
    assert_eq!(error.retry(), Retry::Temporary(Some(Duration::from_secs(7))));
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

/// A POST request with this body.
fn post(uri: &str, body: impl Into<Bytes>) -> Request<Bytes> {
    Request::post(uri).body(body.into()).expect("a request")
}

/// Returns the chunks of the answer, and the error that ended it.
async fn chunks(tape: &Cassette, request: Request<Bytes>) -> (Vec<Bytes>, Option<ErrorKind>) {
    let (mut heard, mut broke) = (Vec::new(), None);
    let mut body = tape.send(request).await.expect("an answer").into_body();
    while let Some(chunk) = body.next().await {
        match chunk {
            Ok(bytes) => heard.push(bytes),
            Err(e) => broke = Some(e.kind()),
        }
    }
    (heard, broke)
}

/// Returns the text of the answer.
async fn text(tape: &Cassette, request: Request<Bytes>) -> String {
    String::from_utf8(chunks(tape, request).await.0.concat()).expect("text")
}

fn panic_of(tape: &Cassette) -> String {
    let panic = catch_unwind(AssertUnwindSafe(|| tape.assert_finished())).expect_err("panics");
    panic.downcast_ref::<String>().expect("a message").clone()
}

// --- tape format ---

#[tokio::test]
async fn a_tape_is_json_that_people_can_read() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("tapes/new/hello.json");
    let answers = [
        Answer::json(200, "{\"b\": 1.50,\n \"a\": []}").header("x-request-id", "r1"),
        Answer::stream([say("data: 1\n\n"), say("data: \"2\"\n\n")]),
        Answer { status: 503, headers: vec![], steps: vec![] },
    ];
    let tape = Cassette::record(&path, Provider::new(answers)).expect("records");
    for body in [r#"{"model": "m", "n": [1]}"#, "text", ""] {
        chunks(&tape, post("http://acme.test/v1?alt=sse", body)).await;
    }
    assert_eq!(std::fs::read_to_string(&path).expect("a tape"), include_str!("data/cassette.json"));
    let tape = Cassette::replay(&path).expect("replays");
    assert_eq!(
        text(&tape, post("http://acme.test/v1?alt=sse", r#"{"n":[1],"model":"m"}"#)).await,
        r#"{"b":1.50,"a":[]}"#
    );
}

#[tokio::test]
async fn chunks_end_where_they_ended() {
    let dir = tempfile::tempdir().expect("a folder");
    let said: Vec<Bytes> =
        vec!["data: a".into(), "\n\ndata: \u{e9}".into(), Bytes::from_static(b"\xc3"), Bytes::from_static(b"\xa9\n\n")];
    let answer = Answer::stream(said.iter().cloned().map(say));
    let tape = Cassette::record(dir.path().join("tape"), Provider::new([answer])).expect("records");
    let live = chunks(&tape, post("http://acme.test/", "")).await;
    let tape = Cassette::replay(dir.path().join("tape")).expect("replays");
    assert_eq!(chunks(&tape, post("http://acme.test/", "")).await, live);
    assert_eq!(live.0, said);
}

#[tokio::test]
async fn bytes_that_are_no_text_are_kept_in_requests_and_answers() {
    let dir = tempfile::tempdir().expect("a folder");
    let image = Bytes::from((0..=255).collect::<Vec<u8>>());
    let tape = Cassette::record(dir.path().join("tape"), Provider::new([Answer::stream([say(image.clone())])]))
        .expect("records");
    chunks(&tape, post("http://acme.test/", image.clone())).await;
    let tape = Cassette::replay(dir.path().join("tape")).expect("replays");
    assert!(tape.send(post("http://acme.test/", image.slice(1..))).await.is_err(), "other bytes");
    assert_eq!(chunks(&tape, post("http://acme.test/", image.clone())).await.0, [image]);
}

#[tokio::test]
async fn an_answer_breaks_off_again_as_it_did() {
    let truncated = || Error::new(ErrorKind::Truncated, "cut").with_retry(Retry::Temporary(None));
    let cut = transport_fn(move |_| async move {
        Ok(Response::new(Body::new(futures::stream::iter([Ok("half".into()), Err(truncated())]))))
    });
    let dir = tempfile::tempdir().expect("a folder");
    let tape = Cassette::record(dir.path().join("tape"), cut).expect("records");
    let live = chunks(&tape, post("http://acme.test/", "")).await;
    assert_eq!(live, (vec!["half".into()], Some(ErrorKind::Truncated)));
    let tape = Cassette::replay(dir.path().join("tape")).expect("replays");
    assert_eq!(chunks(&tape, post("http://acme.test/", "")).await, live);

    let cut = Answer::stream([say(delta(r#"{"content":"h"}"#)), Step::Break]);
    let (dir, live) = record([cut], vec![ask_to_stream()]).await;
    assert_eq!(live[0].as_ref().expect_err("cut").kind(), ErrorKind::Transport);
    let (_, replayed) = replay(&dir, vec![ask_to_stream()]).await;
    assert_eq!(replayed[0].as_ref().expect_err("cut").kind(), ErrorKind::Transport);
}

#[tokio::test]
async fn an_answer_that_was_dropped_is_kept_as_far_as_it_was_read() {
    let dir = tempfile::tempdir().expect("a folder");
    let endless = Answer::stream([say("data: 1\n\n"), Step::Stall]);
    let tape = Cassette::record(dir.path().join("tape"), Provider::new([endless])).expect("records");
    let mut body = tape.send(post("http://acme.test/", "")).await.expect("an answer").into_body();
    body.next().await.expect("a chunk").expect("read");
    drop(body);
    let tape = Cassette::replay(dir.path().join("tape")).expect("replays");
    let (heard, broke) = chunks(&tape, post("http://acme.test/", "")).await;
    assert_eq!((heard, broke), (vec!["data: 1\n\n".into()], Some(ErrorKind::Transport)));
}

#[test]
fn a_tape_that_is_missing_or_none_says_so() {
    let dir = tempfile::tempdir().expect("a folder");
    let missing = Cassette::replay(dir.path().join("tape")).expect_err("missing");
    assert!(missing.kind() == ErrorKind::Store && missing.message().contains("record it first"), "{missing}");
    for (text, why) in [("no JSON", "expected"), (r#"{"version": 9, "exchanges": []}"#, "format 9")] {
        std::fs::write(dir.path().join("tape"), text).expect("writes");
        let e = Cassette::replay(dir.path().join("tape")).expect_err("garbage");
        assert!(e.kind() == ErrorKind::Store && e.message().contains(why), "{e}");
    }
}

// --- secrets ---

/// Returns everything that is written when a request with this answer is recorded.
async fn written(builder: CassetteBuilder, path: &Path, request: Request<Bytes>, answer: Answer) -> String {
    let tape = builder.mode(CassetteMode::RecordAll).transport(Provider::new([answer])).build().expect("records");
    chunks(&tape, request).await;
    std::fs::read_to_string(path).expect("a tape")
}

#[tokio::test]
async fn no_canary_is_written_wherever_it_sits() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("tape");
    let plain = || Answer::json(200, "{}");
    let json = |value: Value| Bytes::from(value.to_string());
    let mut with_headers = post("http://acme.test/", json(json!({"echo": "canary-bearer, canary-own-header"})));
    for (name, value) in [
        ("authorization", "Bearer canary-bearer"),
        ("x-my-api-key", "canary-own-header"),
        ("cookie", "session=canary-cookie"),
        ("x-anything", "canary-anything"),
    ] {
        with_headers.headers_mut().insert(name, value.parse().expect("a value"));
    }
    let cut_in_two =
        [say("data: the key canary-bea"), say("rer is"), say(" wrong, as is canary-"), say("bear"), say("er\n\n")];
    let echo = r#"{"error": "canary/in+url or canary%2Fin%2Burl or canary\/in+url"}"#;
    let cases = [
        (with_headers.clone(), Answer::stream(cut_in_two)),
        (with_headers, plain().header("set-cookie", "canary-answer").header("openai-organization", "canary-org")),
        (post("http://acme.test/v1?key=canary-query&access_token=canary-token&alt=sse", ""), plain()),
        (post("http://acme.test/v1?X-Amz-Signature=canary-signature", ""), plain()),
        (post("http://me:canary-password@acme.test/v1?key=canary/in+url", ""), Answer::json(200, echo)),
        (post("http://acme.test/", json(json!({"auth": {"Client-Secret": "canary"}}))), plain()),
        (post("http://acme.test/", json(json!({"mcp_servers": [{"authorization_token": "canary"}]}))), plain()),
        (
            post("http://acme.test/", json(json!({"tools": [{"headers": {"x-wiki": "Bearer canary-wiki"}}]}))),
            Answer::json(401, r#"{"error": "canary-wiki is no key"}"#),
        ),
        (post("http://acme.test/", "{}"), Answer::json(200, r#"{"a": [{"access_token": "canary", "n": 1.50}]}"#)),
        (post("http://acme.test/", "sk-canary0123456789abcdef"), Answer::json(401, "xai-canary0123456789abcdef")),
        (post("http://acme.test/", "canary-customer"), Answer::stream([say("canary-cus"), say("tomer")])),
        (post("http://acme.test/", json(json!({"e_mail": "canary"}))), Answer::json(200, r#"{"E-Mail": "canary"}"#)),
        (
            post("http://acme.test/", &b"\xffcanary-customer\xff"[..]),
            Answer::stream([say(&b"\xfecanary-customer"[..])]),
        ),
    ];
    for (request, answer) in cases {
        let shown = format!("{} {:?}", request.uri(), request.body());
        let builder = Cassette::builder(&path).secret("canary-customer").secret_field("email");
        let tape = written(builder, &path, request, answer).await;
        let hex = |text: &str| text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert!(!tape.contains("canary") && !tape.contains(&hex("canary")), "{shown}:\n{tape}");
        assert!(tape.contains("redacted") || tape.contains(&hex("redacted")), "{shown}:\n{tape}");
    }
}

#[tokio::test]
async fn what_was_taken_out_does_not_keep_requests_from_being_equal() {
    let get = |key: &str| {
        let uri = format!("http://acme.test/v1?alt=sse&key={key}");
        let mut request = post(&uri, format!("my key is {key}, or {key}"));
        request.headers_mut().insert("x-api-key", key.parse().expect("a value"));
        request
    };
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("tape");
    let tape = written(Cassette::builder(&path), &path, get("canary-key-1"), Answer::json(200, "{}")).await;
    assert!(tape.contains("alt=sse&key=redacted") && tape.contains("my key is [redacted], or [redacted]"), "{tape}");
    assert_eq!(text(&Cassette::replay(&path).expect("replays"), get("another-key")).await, "{}");
}

#[tokio::test]
async fn fields_that_only_sound_secret_are_kept() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("tape");
    let body = r#"{"max_tokens": 5, "prompt_cache_key": "c", "signature": "s", "logprobs": [{"token": "t"}], "password": {"type": "string"}}"#;
    let tape = written(Cassette::builder(&path), &path, post("http://acme.test/", body), Answer::json(200, body)).await;
    assert!(!tape.contains("redacted"), "{tape}");
}

// --- matching of requests ---

#[tokio::test]
async fn what_is_ignored_does_not_matter_and_anything_else_does() {
    let body = |user: &str, first: &str, second: &str, text: &str| {
        json!({"metadata": {"user": user, "n": 1}, "messages": [{"id": first, "text": text}, {"id": second}]})
            .to_string()
    };
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("tape");
    let builder = || Cassette::builder(&path).ignore("/metadata/user").ignore("/messages/*/id").ignore("/not/there");
    written(builder(), &path, post("http://acme.test/", body("a", "1", "2", "hi")), Answer::json(200, "{}")).await;
    let replay = |builder: CassetteBuilder| builder.mode(CassetteMode::Replay).build().expect("replays");
    let tape = replay(builder());
    let error = tape.send(post("http://acme.test/", body("b", "3", "4", "bye"))).await.expect_err("another text");
    let differences: Vec<_> = error.message().lines().filter(|line| line.starts_with("  ")).collect();
    assert_eq!(differences, [r#"  body.messages[0].text: recorded "hi", asked "bye""#]);
    assert_eq!(text(&tape, post("http://acme.test/", body("b", "3", "4", "hi"))).await, "{}");

    let strict = replay(Cassette::builder(&path));
    assert!(strict.send(post("http://acme.test/", body("b", "1", "2", "hi"))).await.is_err());
    let e = Cassette::builder(&path).ignore("user").build().expect_err("no pointer");
    assert!(e.kind() == ErrorKind::Config && e.message().contains("'user' is no JSON Pointer"), "{e}");
}

#[tokio::test]
async fn another_address_is_another_request_unless_only_the_host_differs_and_that_is_ignored() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("tape");
    written(Cassette::builder(&path), &path, post("http://acme.test/v1?a=1", ""), Answer::json(200, "{}")).await;
    let tape = Cassette::replay(&path).expect("replays");
    let other = tape.send(post("https://localhost:8080/v1?a=1", "")).await.expect_err("another host");
    assert!(other.message().contains(r#"url: recorded "http://acme.test/v1?a=1""#), "{other}");
    let tape = Cassette::builder(&path).mode(CassetteMode::Replay).ignore_host().build().expect("replays");
    assert!(tape.send(post("https://localhost:8080/v1?a=2", "")).await.is_err());
    assert_eq!(text(&tape, post("https://localhost:8080/v1?a=1", "")).await, "{}");
}

#[tokio::test(start_paused = true)]
async fn parallel_requests_find_their_answers_and_stand_in_the_order_in_which_they_began() {
    let slow_first = transport_fn(|request: Request<Bytes>| async move {
        let body = String::from_utf8(request.into_body().to_vec()).expect("text");
        tokio::time::sleep(Duration::from_secs(10 - body.parse::<u64>().expect("a number"))).await;
        Ok(Response::new(format!("answer {body}").into()))
    });
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("tape");
    let ask = |tape: &Cassette, order: Vec<u32>| {
        let tape = tape.clone();
        async move {
            let asked = order.iter().map(|n| text(&tape, post("http://acme.test/", n.to_string())));
            order.iter().copied().zip(futures::future::join_all(asked).await).collect::<BTreeMap<_, _>>()
        }
    };
    let live = ask(&Cassette::record(&path, slow_first).expect("records"), vec![1, 2, 3, 4]).await;
    let tape: Value = serde_json::from_str(&std::fs::read_to_string(&path).expect("a tape")).expect("JSON");
    let bodies: Vec<_> =
        tape["exchanges"].as_array().expect("a list").iter().map(|e| e["request"]["body"]["json"].clone()).collect();
    assert_eq!(bodies, [1, 2, 3, 4]);
    let tape = Cassette::replay(&path).expect("replays");
    assert_eq!(ask(&tape, vec![3, 1, 4, 2]).await, live);
    tape.assert_finished();
}

// --- recording missing exchanges ---

#[tokio::test]
async fn what_is_missing_is_recorded_and_the_rest_is_replayed() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("tape");
    let open = |mode, provider: &Provider| {
        Cassette::builder(&path).mode(mode).transport(provider.clone()).build().expect("opens")
    };
    let get = |n: u32| post("http://acme.test/", n.to_string());
    let provider = Provider::new(["one", "two", "new one"].map(|said| Answer::stream([say(said)])));

    let tape = open(CassetteMode::RecordMissing, &provider);
    assert_eq!((text(&tape, get(1)).await.as_str(), provider.calls()), ("one", 1));
    tape.assert_finished();
    let tape = open(CassetteMode::RecordMissing, &provider);
    assert_eq!((text(&tape, get(2)).await.as_str(), text(&tape, get(1)).await.as_str()), ("two", "one"));
    assert_eq!((provider.calls(), tape.left()), (2, 0));
    let tape = open(CassetteMode::Replay, &provider);
    assert_eq!((text(&tape, get(1)).await.as_str(), tape.left(), provider.calls()), ("one", 1, 2));

    let tape = open(CassetteMode::RecordAll, &provider);
    assert!(std::fs::read_to_string(&path).expect("a tape").contains("two"), "left alone until there is something new");
    assert_eq!(text(&tape, get(1)).await, "new one");
    let tape = open(CassetteMode::Replay, &provider);
    assert_eq!((text(&tape, get(1)).await.as_str(), tape.left()), ("new one", 0));
}

#[tokio::test]
async fn a_request_that_had_no_answer_at_all_is_not_recorded() {
    let dir = tempfile::tempdir().expect("a folder");
    let down =
        transport_fn(|_| async { Err(Error::new(ErrorKind::Transport, "down").with_retry(Retry::Temporary(None))) });
    let tape = Cassette::record(dir.path().join("tape"), down).expect("records");
    assert_eq!(tape.send(post("http://acme.test/", "")).await.expect_err("down").message(), "down");
    assert!(!dir.path().join("tape").exists());
}

#[tokio::test]
async fn what_was_not_followed_is_found_wherever_the_error_went() {
    let (dir, _) = record([Answer::json(200, hello())], vec![ask()]).await;
    let tape = Cassette::replay(dir.path().join("tape")).expect("replays");
    assert!(panic_of(&tape).contains("nobody asked for:\n  POST http://acme.test/v1/chat/completions"));
    let _ = said(&model(tape.clone()), vec![request([Message::user("bye")]), ask()]).await;
    assert!(panic_of(&tape).contains(r#"recorded "hi", asked "bye""#));
}
