//! A model with a misbehaving provider.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use agent_core::{
    Chunk, ChunkSink, Error, ErrorKind, Model, ModelRequest, ModelResponse, Result, ToolSpec, async_trait,
    tool::RemoteMcp,
};
use agent_llm::{Auth, Credentials, ModelBuilder, transport_fn};
use bytes::Bytes;
use http::Response;
use tokio::time::Instant;

use crate::common::{
    Answer, DONE, Provider, Step, ask, ask_to_stream, codec, completion, delta, finish, hello, listen, say,
};

fn model(provider: &Provider) -> ModelBuilder {
    agent_llm::model("openai:m").base_url("http://acme.test/v1").transport(provider.clone()).retries(0)
}

async fn call(answer: Answer, req: ModelRequest) -> Result<ModelResponse> {
    model(&Provider::new([answer])).build()?.call(req).await
}

async fn fail(answer: Answer) -> Error {
    call(answer, ask()).await.expect_err("a failure")
}

fn spoken() -> Vec<Step> {
    vec![say(delta(r#"{"content":"hel"}"#)), say(delta(r#"{"content":"lo"}"#)), say(finish("stop")), say(DONE)]
}

#[tokio::test]
async fn the_key_and_the_headers_go_with_every_request() {
    let provider = Provider::new([Answer::json(200, hello())]);
    let model = model(&provider).api_key("a-key-of-mine").header("x-team", "7").build().expect("a model");
    model.call(ask()).await.expect("an answer");
    assert_eq!(provider.header("authorization").as_deref(), Some("Bearer a-key-of-mine"));
    assert_eq!(provider.header("x-team").as_deref(), Some("7"));
    assert_eq!(provider.header("content-type").as_deref(), Some("application/json"));

    let provider = Provider::new([Answer::json(200, hello())]);
    let azure =
        agent_llm::model("azure:m").option("resource", "x").api_key("a-key-of-mine").transport(provider.clone());
    azure.build().expect("a model").call(ask()).await.expect("an answer");
    assert_eq!(provider.header("api-key").as_deref(), Some("a-key-of-mine"));
    assert_eq!(provider.header("authorization"), None);
}

#[tokio::test]
async fn streamed_or_whole_the_answer_and_the_chunks_are_the_same() {
    let mut heard = Vec::new();
    for stream in [false, true] {
        let answer = if stream { Answer::stream(spoken()) } else { Answer::json(200, hello()) };
        let mut req = ask();
        req.stream = stream;
        let chunks = listen(&mut req);
        let response = call(answer, req).await.expect("an answer");
        assert_eq!(response.message.text(), "hello");
        assert!(!response.message.is_edited());
        let chunks = chunks.lock().expect("lock");
        let text = chunks.iter().filter_map(|c| if let Chunk::Text { delta, .. } = c { Some(&**delta) } else { None });
        heard.push(text.collect::<String>());
    }
    assert_eq!(heard, ["hello", "hello"]);
}

#[tokio::test]
async fn the_kept_message_is_what_the_sink_left_of_it() {
    let hide = |chunk| {
        Ok(Some(match chunk {
            Chunk::Text { index, delta } => Chunk::Text { index, delta: delta.replace('l', "*") },
            other => other,
        }))
    };
    for stream in [false, true] {
        let answer = if stream { Answer::stream(spoken()) } else { Answer::json(200, hello()) };
        let mut req = ask();
        (req.stream, req.sink) = (stream, ChunkSink::default().with(hide));
        let response = call(answer, req).await.expect("an answer");
        assert_eq!((response.message.text().as_str(), response.message.is_edited()), ("he**o", true));
    }
}

#[tokio::test]
async fn a_layer_that_refuses_a_chunk_ends_the_call() {
    let mut req = ask_to_stream();
    req.sink = ChunkSink::default().with(|_| Err(Error::new(ErrorKind::Middleware, "no")));
    let error = call(Answer::stream(spoken()), req).await.expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::Middleware);
}

#[tokio::test]
async fn a_server_that_does_not_stream_when_asked_to_is_understood() {
    let whole = call(Answer::json(200, hello()), ask_to_stream()).await.expect("an answer");
    let streamed = call(Answer::stream(spoken()), ask()).await.expect("an answer");
    assert_eq!((whole.message.text(), streamed.message.text()), ("hello".into(), "hello".into()));
    let mut unnamed = Answer::stream(spoken());
    unnamed.headers.clear();
    assert_eq!(call(unnamed, ask_to_stream()).await.expect("an answer").message.text(), "hello");
}

#[tokio::test]
async fn any_cut_of_the_bytes_gives_the_same_answer() {
    let body = format!("\u{feff}{}{}{DONE}", delta(r#"{"content":"äß😀\u00e9"}"#), finish("stop"));
    for size in [1, 2, 3, 7, 64] {
        let pieces = body.as_bytes().chunks(size).map(|piece| say(Bytes::copy_from_slice(piece)));
        let response = call(Answer::stream(pieces), ask_to_stream()).await.expect("an answer");
        assert_eq!(response.message.text(), "äß😀é", "in pieces of {size}");
    }
}

#[tokio::test]
async fn refusals_have_their_kinds_and_facts() {
    let limited = Answer::json(429, r#"{"error":{"message":"slow down","code":"rate_limit_exceeded"}}"#);
    let error = fail(limited.header("retry-after", "7").header("x-request-id", "req_1")).await;
    assert_eq!(error.kind(), ErrorKind::RateLimited);
    assert_eq!(error.retry(), agent_core::Retry::Temporary(Some(Duration::from_secs(7))));
    let facts = ["provider", "status", "code", "request_id"].map(|name| error.context(name).expect("a fact"));
    assert_eq!(facts, ["acme.test", "429", "rate_limit_exceeded", "req_1"]);
    assert_eq!(fail(Answer::json(401, "{}")).await.kind(), ErrorKind::Authentication);
    assert_eq!(fail(Answer::json(500, "<html>oops</html>")).await.kind(), ErrorKind::Provider);
    let redirect = fail(Answer::json(302, "").header("location", "http://169.254.169.254/")).await;
    assert_eq!((redirect.kind(), redirect.is_retryable()), (ErrorKind::Protocol, false));
}

#[tokio::test]
async fn a_key_that_the_provider_repeats_is_not_passed_on() {
    let body = r#"{"error":{"message":"Incorrect API key provided: canary-key-1.","code":"canary-key-1"}}"#;
    let provider = Provider::new([Answer::json(401, body)]);
    let model = model(&provider).api_key("canary-key-1").build().expect("a model");
    let error = model.call(ask()).await.expect_err("refused");
    assert!(!format!("{error} {error:?} {model:?}").contains("canary"), "{error}");
    assert_eq!(error.message(), "Incorrect API key provided: [redacted].");
    assert_eq!((error.kind(), error.context("status")), (ErrorKind::Authentication, Some("401")));
}

#[tokio::test]
async fn what_opens_a_server_of_tools_is_not_passed_on_when_the_provider_repeats_it() {
    let body = r#"{"error":{"message":"wiki refused canary-token and canary-header"}}"#;
    let provider = Provider::new([Answer::json(424, body)]);
    let model = agent_llm::model("openai:gpt-5@responses").api_key("a-key").retries(0).transport(provider);
    let mut req = ask();
    let wiki =
        RemoteMcp::new("wiki", "https://mcp.test").authorization("canary-token").header("x-wiki", "canary-header");
    req.tools = [ToolSpec::of_server(wiki)].into_iter().collect();
    let error = model.build().expect("a model").call(req).await.expect_err("refused");
    assert_eq!(error.message(), "wiki refused [redacted] and [redacted]");
}

#[tokio::test]
async fn a_key_that_does_not_last_is_asked_for_before_every_request() {
    let provider = Provider::new([1, 2].map(|_| Answer::json(200, hello())));
    let asked = Arc::new(AtomicUsize::new(0));
    let key = {
        let asked = asked.clone();
        move || {
            let nth = asked.fetch_add(1, Ordering::Relaxed) + 1;
            async move { Ok(format!("token-number-{nth}")) }
        }
    };
    let model = model(&provider).api_key("a-key-of-mine").credentials(key).build().expect("a model");
    for nth in 1..=2 {
        model.call(ask()).await.expect("an answer");
        assert_eq!(provider.header("authorization"), Some(format!("Bearer token-number-{nth}")));
    }
    let none = || async { Err(Error::new(ErrorKind::Authentication, "sign in again")) };
    let signed_out =
        agent_llm::model("openai:m").transport(Provider::default()).credentials(none).build().expect("a model");
    assert_eq!(signed_out.call(ask()).await.expect_err("no key").message(), "sign in again");
}

/// Keys, the first of which has been revoked.
struct Renewed(AtomicUsize);

#[async_trait]
impl Credentials for Renewed {
    async fn key(&self) -> Result<String> {
        Ok(format!("canary-{:08}", self.0.load(Ordering::Relaxed)))
    }

    async fn refused(&self) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed) == 0
    }
}

#[tokio::test]
async fn a_key_that_was_taken_back_is_renewed_once_and_none_is_shown() {
    let refusal = || Answer::json(401, r#"{"error":{"message":"canary-00000000 is old, and canary-00000001"}}"#);
    let provider = Provider::new([refusal(), Answer::json(200, hello())]);
    let renewed = model(&provider).credentials(Renewed(AtomicUsize::new(0))).build().expect("a model");
    renewed.call(ask()).await.expect("an answer");
    assert_eq!(provider.header("authorization").as_deref(), Some("Bearer canary-00000001"));

    let provider = Provider::new([refusal(), refusal()]);
    let refused = model(&provider).credentials(Renewed(AtomicUsize::new(0))).build().expect("a model");
    let error = refused.call(ask()).await.expect_err("refused twice");
    assert_eq!((error.kind(), provider.calls()), (ErrorKind::Authentication, 2));
    assert!(!format!("{error:?} {refused:?}").contains("canary"), "{error:?}");
}

#[test]
fn neither_models_nor_their_builders_show_a_key() {
    for name in ["openai:m", "openai:m@responses", "anthropic:m", "gemini:m"] {
        let builder = agent_llm::model(name).api_key("canary-key").header("x-secret", "canary-header");
        let shown = format!("{builder:?}") + &format!("{:?}", builder.build().expect("builds"));
        assert!(shown.contains(&format!("{name:?}")) && !shown.contains("canary"), "{shown}");
    }
}

#[tokio::test]
async fn a_web_page_is_not_an_answer() {
    for req in [ask(), ask_to_stream()] {
        let mut answer = Answer::json(200, "<!DOCTYPE html><html></html>");
        answer.headers = vec![("content-type", "text/html; charset=utf-8".into())];
        let error = call(answer, req).await.expect_err("a page");
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Protocol, false));
    }
}

#[tokio::test]
async fn an_answer_that_was_compressed_unasked_is_refused() {
    let error = fail(Answer::json(200, &b"\x1f\x8b"[..]).header("content-encoding", "gzip")).await;
    assert!(error.kind() == ErrorKind::Protocol && error.message().contains("compressed"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn silence_before_the_head_ends_the_call() {
    let transport = transport_fn(|_| std::future::pending());
    let model =
        agent_llm::model("openai:m").transport(transport).idle_timeout(Duration::from_secs(20)).retries(0).build();
    let began = Instant::now();
    let error = model.expect("a model").call(ask()).await.expect_err("silence");
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Timeout, true));
    assert_eq!(began.elapsed().as_secs(), 20);
}

#[tokio::test(start_paused = true)]
async fn silence_in_the_middle_ends_the_call() {
    let began = Instant::now();
    let mut steps = spoken();
    steps.insert(1, Step::Stall);
    let error = call(Answer::stream(steps), ask_to_stream()).await.expect_err("silence");
    assert_eq!((error.kind(), began.elapsed().as_secs()), (ErrorKind::Timeout, 300));
    let whole = Answer { steps: vec![say("{"), Step::Stall], ..Answer::json(200, "") };
    assert_eq!(fail(whole).await.kind(), ErrorKind::Timeout);
}

#[tokio::test(start_paused = true)]
async fn the_beginning_of_an_answer_has_a_limit_of_its_own() {
    let limited = async |steps: Vec<Step>, first, between| {
        let model = model(&Provider::new([Answer::stream(steps)]));
        let model = model.first_timeout(Duration::from_secs(first)).idle_timeout(Duration::from_secs(between));
        let began = Instant::now();
        let error = model.build().expect("a model").call(ask_to_stream()).await.expect_err("silence");
        (error.kind(), error.message().to_owned(), began.elapsed().as_secs())
    };
    let late = "the answer did not begin within 5s";
    assert_eq!(limited(vec![Step::Stall], 5, 60).await, (ErrorKind::Timeout, late.into(), 5));
    for (first, between) in [(5, 60), (60, 5)] {
        let silent = format!("nothing arrived for {between}s");
        let steps = vec![say(delta(r#"{"content":"hel"}"#)), Step::Stall];
        assert_eq!(limited(steps, first, between).await, (ErrorKind::Timeout, silent, between));
    }
}

#[tokio::test(start_paused = true)]
async fn a_complete_answer_outlives_its_connection() {
    let complete = || [say(delta(r#"{"content":"hello"}"#)), say(finish("stop"))];
    for fate in [Step::Break, Step::Stall] {
        let steps = complete().into_iter().chain([fate]);
        let response = call(Answer::stream(steps), ask_to_stream()).await.expect("an answer");
        assert_eq!(response.message.text(), "hello");
    }
    let began = Instant::now();
    let steps = spoken().into_iter().chain([Step::Stall]);
    call(Answer::stream(steps), ask_to_stream()).await.expect("an answer");
    assert!(began.elapsed() < Duration::from_secs(1), "nothing more is expected after the last event");
}

#[tokio::test]
async fn a_connection_that_breaks_early_is_no_answer() {
    let steps = [say(delta(r#"{"content":"hello"}"#)), Step::Break];
    let error = call(Answer::stream(steps), ask_to_stream()).await.expect_err("broken");
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Transport, true));
    let whole = Answer { steps: vec![say("{"), Step::Break], ..Answer::json(200, "") };
    assert_eq!(fail(whole).await.kind(), ErrorKind::Transport);
}

#[tokio::test]
async fn the_last_event_counts_without_the_empty_line_after_it() {
    let said = || say(delta(r#"{"content":"hello"}"#));
    let answer = Answer::stream([said(), say(finish("stop").trim_end().to_owned())]);
    assert_eq!(call(answer, ask_to_stream()).await.expect("an answer").message.text(), "hello");
    let answer = Answer::stream([said(), say(r#"data: {"error":{"type":"overloaded_error","message":"busy"}}"#)]);
    assert_eq!(call(answer, ask_to_stream()).await.expect_err("an error").kind(), ErrorKind::Overloaded);
    let answer = Answer::stream([said(), say(finish("stop")[..60].to_owned())]);
    assert_eq!(call(answer, ask_to_stream()).await.expect_err("cut").kind(), ErrorKind::Truncated);
}

#[tokio::test]
async fn an_answer_beyond_the_limit_is_refused() {
    let long = delta(&format!(r#"{{"content":"{}"}}"#, "x".repeat(500)));
    let endless = std::iter::repeat_with(|| say(long.clone())).take(100);
    let comments = std::iter::repeat_with(|| say(": keep-alive\n\n")).take(1_000);
    let whole = completion(&format!(r#"{{"content":"{}"}}"#, "x".repeat(5_000)), "stop");
    for answer in [Answer::stream(endless), Answer::stream(comments), Answer::json(200, whole)] {
        let model = model(&Provider::new([answer])).max_answer(4_000).build().expect("a model");
        let error = model.call(ask_to_stream()).await.expect_err("too long");
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Protocol, false));
        assert!(error.message().contains("max_answer"), "{error}");
    }
}

#[tokio::test]
async fn dropping_the_call_drops_the_connection() {
    let open = std::sync::Arc::new(());
    let held = open.clone();
    let transport = transport_fn(move |_| {
        let held = held.clone();
        async move {
            let body = futures::stream::pending::<Result<Bytes>>();
            let body = futures::StreamExt::map(body, move |item| {
                let _ = &held;
                item
            });
            Ok(Response::new(agent_llm::Body::new(body)))
        }
    });
    let model = agent_llm::model("openai:m").transport(transport).build().expect("a model");
    let mut call = Box::pin(model.call(ask_to_stream()));
    assert!(futures::poll!(&mut call).is_pending());
    let while_open = std::sync::Arc::strong_count(&open);
    drop(call);
    assert_eq!(std::sync::Arc::strong_count(&open), while_open - 1);
}

#[tokio::test]
async fn a_wire_of_ones_own_has_the_same_way_to_its_provider() {
    let provider = Provider::new([Answer::json(200, hello())]);
    let model = ModelBuilder::new(codec())
        .api_key("a-key-of-mine")
        .auth(Auth::Header("x-api-key".into()))
        .transport(provider.clone())
        .build()
        .expect("a model");
    assert_eq!((model.info().name.as_str(), model.info().provider.as_str()), ("m", "acme"));
    model.call(ask()).await.expect("an answer");
    assert_eq!(provider.header("x-api-key").as_deref(), Some("a-key-of-mine"));
}

#[test]
fn a_header_that_http_does_not_allow_is_refused_without_showing_it() {
    let error = agent_llm::model("openai:m").api_key("can\nary").build().expect_err("a line break");
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(!format!("{error:?}").contains("can\\nary"), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_pings_for_ever_after_the_answer_does_not_hold_the_call() {
    let pings = (0..1_000).map(|_| Step::Late(Duration::from_secs(5), ": ping\n\n".into()));
    let said = [say(delta(r#"{"content":"hello"}"#)), say(finish("stop"))];
    let (answer, began) = (Answer::stream(said.into_iter().chain(pings)), Instant::now());
    assert_eq!(call(answer, ask_to_stream()).await.expect("an answer").message.text(), "hello");
    assert!(began.elapsed() <= Duration::from_secs(11), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_drips_does_not_hold_the_call() {
    let mut refusal = Answer::json(500, "oh");
    refusal.steps.extend((0..1_000).map(|_| Step::Late(Duration::from_secs(5), " no".into())));
    let began = Instant::now();
    let error = fail(refusal).await;
    assert_eq!(error.context("status"), Some("500"));
    assert!(began.elapsed() <= Duration::from_secs(11), "{:?}", began.elapsed());
}
