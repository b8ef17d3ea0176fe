//! Failure modes observed at providers, over real sockets, on both versions of HTTP.

use std::{convert::Infallible, time::Duration};

use agent_core::{ErrorKind, Model, ModelResponse, Result};
use agent_llm::{HttpTransport, model};
use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{Request, Response};
use http_body_util::{BodyExt, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    body::{Frame, Incoming},
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;

use super::common::{DONE, ask, ask_to_stream, completion, delta, finish, hello};

/// End of a body.
#[derive(Clone, Copy)]
pub(crate) enum End {
    Whole,
    /// The server breaks off.
    Cut,
    /// No more data, while the connection stays open.
    Silent,
    /// Not even a head is sent.
    NoHead,
    /// The last piece repeats for ever.
    Never,
    /// One byte arrives from time to time, for ever.
    Drip,
}

#[derive(Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
    /// Maximum number of bytes per chunk.
    pub(crate) piece: usize,
    pub(crate) end: End,
}

pub(crate) fn json(body: impl Into<Vec<u8>>) -> Answer {
    Answer {
        status: 200,
        headers: vec![("content-type", "application/json".into())],
        body: body.into(),
        piece: 1 << 16,
        end: End::Whole,
    }
}

pub(crate) fn events(body: String) -> Answer {
    Answer { headers: vec![("content-type", "text/event-stream".into())], ..json(body) }
}

pub(crate) fn refusal(status: u16, header: (&'static str, &str), body: &str) -> Answer {
    Answer { status, headers: vec![(header.0, header.1.into())], ..json(body) }
}

fn body(answer: &Answer) -> UnsyncBoxBody<Bytes, std::io::Error> {
    let pieces: Vec<_> = answer.body.chunks(answer.piece).map(Bytes::copy_from_slice).collect();
    let last = pieces.last().cloned().unwrap_or_default();
    let pieces = stream::iter(pieces).map(|piece| Ok(Frame::data(piece)));
    let end = match answer.end {
        // Delayed, so that the data before it is sent.
        End::Cut => stream::once(async {
            tokio::task::yield_now().await;
            Err(std::io::Error::other("broken off"))
        })
        .boxed(),
        End::Silent => stream::pending().boxed(),
        End::Never => stream::repeat_with(move || Ok(Frame::data(last.clone()))).boxed(),
        End::Drip => {
            let byte = || async { tokio::time::sleep(Duration::from_millis(20)).await };
            stream::repeat(()).then(move |()| byte()).map(|()| Ok(Frame::data(Bytes::from_static(b" ")))).boxed()
        }
        End::Whole | End::NoHead => stream::empty().boxed(),
    };
    StreamBody::new(pieces.chain(end)).boxed_unsync()
}

async fn serve(answer: Answer, is_http2: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.expect("a client");
            let (answer, io) = (answer.clone(), TokioIo::new(stream));
            let service = service_fn(move |request: Request<Incoming>| {
                let answer = answer.clone();
                async move {
                    request.into_body().collect().await.map(drop).unwrap_or_default();
                    if let End::NoHead = answer.end {
                        std::future::pending::<()>().await;
                    }
                    let mut response = Response::builder().status(answer.status);
                    for (name, value) in &answer.headers {
                        response = response.header(*name, value);
                    }
                    Ok::<_, Infallible>(response.body(body(&answer)).expect("an answer"))
                }
            });
            tokio::spawn(async move {
                match is_http2 {
                    true => drop(http2::Builder::new(TokioExecutor::new()).serve_connection(io, service).await),
                    false => drop(http1::Builder::new().serve_connection(io, service).await),
                }
            });
        }
    });
    url
}

pub(crate) async fn call(answer: Answer, is_http2: bool) -> Result<ModelResponse> {
    let is_streamed = answer.headers[0].1 == "text/event-stream";
    let transport = HttpTransport::builder().no_proxy();
    let transport = if is_http2 { transport.http2_prior_knowledge() } else { transport };
    // Where data is expected, a busy machine may take long.
    let is_silent = matches!(answer.end, End::Silent | End::NoHead);
    let idle = Duration::from_millis(if is_silent { 200 } else { 60_000 });
    let url = serve(answer, is_http2).await;
    let model = model("openai:m").retries(0).base_url(url).api_key("sk-SECRET").max_answer(1 << 20);
    let model = model.transport(transport.build().expect("a transport")).idle_timeout(idle);
    model.build().expect("a model").call(if is_streamed { ask_to_stream() } else { ask() }).await
}

/// Asserts that both versions of HTTP produce the same kind of error, and that no error shows the
/// key.
pub(crate) async fn refused(what: &str, answer: Answer, kind: ErrorKind) {
    refused_as(what, answer, &[kind]).await;
}

/// Asserts that truncation is reported as truncated or broken, depending on the protocol.
pub(crate) async fn cut(what: &str, answer: Answer) {
    refused_as(what, Answer { end: End::Cut, ..answer }, &[ErrorKind::Truncated, ErrorKind::Transport]).await;
}

async fn refused_as(what: &str, answer: Answer, kinds: &[ErrorKind]) {
    for is_http2 in [false, true] {
        let error = call(answer.clone(), is_http2).await.expect_err(what);
        assert!(kinds.contains(&error.kind()), "{what}, HTTP/2: {is_http2}: {error}");
        assert!(!format!("{error:?}").contains("SECRET"), "{what}: {error:?}");
    }
}

pub(crate) async fn answered(what: &str, answer: Answer, check: impl Fn(&ModelResponse) -> bool) {
    for is_http2 in [false, true] {
        let response = call(answer.clone(), is_http2).await.expect(what);
        assert!(check(&response), "{what}, HTTP/2: {is_http2}: {:?}", response.message);
    }
}

fn calls(calls: impl Iterator<Item = (String, String)>) -> Answer {
    let function = |(id, arguments): (String, String)| {
        let arguments = serde_json::to_string(&arguments).expect("a string");
        format!(r#"{{"id":"{id}","type":"function","function":{{"name":"echo","arguments":{arguments}}}}}"#)
    };
    let calls: Vec<_> = calls.map(function).collect();
    let message = format!(r#"{{"role":"assistant","content":null,"tool_calls":[{}]}}"#, calls.join(","));
    json(completion(&message, "tool_calls"))
}

#[tokio::test]
async fn answers_that_stop_are_errors() {
    let said = delta(r#"{"content":"hel"}"#);
    cut("a cut event", events(format!("{said}data: {{\"id\":"))).await;
    refused("half an event", events(format!("{said}data: {{\"id\":")), ErrorKind::Truncated).await;
    refused("no finish", events(said.clone()), ErrorKind::Truncated).await;
    refused("a silent stream", Answer { end: End::Silent, ..events(said.clone()) }, ErrorKind::Timeout).await;
    cut("a cut body", json(&hello().as_bytes()[..40])).await;
    refused("a slow body", Answer { end: End::Silent, ..json(" ") }, ErrorKind::Timeout).await;
    refused("no answer", Answer { end: End::NoHead, ..json("") }, ErrorKind::Timeout).await;
    refused("too long", json(vec![b' '; 2 << 20]), ErrorKind::Protocol).await;
    let whole = format!("{said}{}{DONE}", finish("stop"));
    answered("a cut after the end", Answer { end: End::Cut, ..events(whole) }, |r| r.message.text() == "hel").await;
}

#[tokio::test]
async fn refusals_and_pages_are_what_they_say_and_show_no_key() {
    let page = Answer { headers: vec![("content-type", "text/html".into())], ..json("<html>gateway</html>") };
    refused("a page", page, ErrorKind::Protocol).await;
    let key = ("content-type", "application/json");
    refused("a bad key", refusal(401, key, r#"{"error":{"message":"bad key sk-SECRET"}}"#), ErrorKind::Authentication)
        .await;
    let slow = refusal(429, ("retry-after", "1000000000000"), r#"{"error":{"message":"slow down"}}"#);
    refused("too many", slow, ErrorKind::RateLimited).await;
    for is_http2 in [false, true] {
        let elsewhere = refusal(307, ("location", "http://127.0.0.1:1/steal"), "");
        let error = call(elsewhere, is_http2).await.expect_err("it is not followed");
        assert_eq!(error.context("status"), Some("307"), "{error}");
    }
}

#[tokio::test]
async fn odd_answers_are_read_as_far_as_they_go() {
    let with = |from: &str, to: &str| json(hello().replace(from, to));
    for odd in ["he\\ud800llo", "he\\u0000llo"] {
        answered(odd, with("hello", odd), |r| r.message.text().starts_with("he") && r.message.text().ends_with("llo"))
            .await;
    }
    answered("a byte order mark", json(["\u{feff}", &hello()].concat()), |r| r.message.text() == "hello").await;
    answered("nothing said", with("\"hello\"", "\"\""), |r| r.message.text().is_empty()).await;
    let same = calls((0..3).map(|n| ("a".into(), format!("{{\"n\":{n}}}"))));
    answered("one id for three calls", same, |r| r.message.calls().count() == 3).await;
    let many = calls((0..10_000).map(|n| (format!("a{n}"), "{}".into())));
    answered("ten thousand calls", many, |r| r.message.calls().count() == 10_000).await;
    let deep = format!("{{\"text\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    answered("deep arguments", calls([("a".into(), deep)].into_iter()), |r| r.message.calls().count() == 1).await;
    let depth = format!("\"deep\":{}{},\"usage\"", "[".repeat(100_000), "]".repeat(100_000));
    let bytes = hello().replace("hello", "he\u{1}llo").into_bytes();
    let not_utf8: Vec<_> = bytes.into_iter().map(|byte| if byte == 1 { 0xff } else { byte }).collect();
    let tokens = |count: &str| with("\"prompt_tokens\":10", &format!("\"prompt_tokens\":{count}"));
    // Accepted or rejected, but with the text, and without a crash.
    for answer in [with("\"usage\"", &depth), json(not_utf8), tokens("1e400"), tokens("-5")] {
        for is_http2 in [false, true] {
            match call(answer.clone(), is_http2).await {
                Ok(response) => assert!(response.message.text().ends_with("llo")),
                Err(e) => assert_eq!(e.kind(), ErrorKind::Protocol, "{e}"),
            }
        }
    }
}
