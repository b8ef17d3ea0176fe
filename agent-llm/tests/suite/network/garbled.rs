//! Providers with invalid HTTP/2 frames; [`abuse`](super::abuse) covers HTTP/1.1.

use std::time::Duration;

use agent_core::{ErrorKind, Model, ModelResponse, Result};
use agent_llm::{HttpTransport, LayeredModel, model};
use tokio::net::TcpListener;

use super::{
    common::{ask, ask_to_stream, delta, hello},
    frames::{Frames, data, end, endless_head, frame, head, promise, whole},
};

/// A model whose provider answers each request with the frames that `answer` makes for its stream.
async fn answering(answer: impl Fn(u32) -> Vec<u8> + Clone + Send + 'static) -> LayeredModel {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        loop {
            let mut connection = Frames::accept(&listener).await;
            let answer = answer.clone();
            tokio::spawn(async move {
                while let Ok(stream) = connection.next().await {
                    connection.press(&answer(stream)).await;
                }
            });
        }
    });
    let transport = HttpTransport::builder().no_proxy().http2_prior_knowledge().build().expect("a transport");
    let model = model("openai:m").retries(0).base_url(url).api_key("sk-SECRET").max_answer(1 << 20);
    model.transport(transport).idle_timeout(Duration::from_secs(1)).build().expect("a model")
}

async fn call(answer: impl Fn(u32) -> Vec<u8> + Clone + Send + 'static, is_streamed: bool) -> Result<ModelResponse> {
    answering(answer).await.call(if is_streamed { ask_to_stream() } else { ask() }).await
}

/// Asserts that the error names the failed part, is temporary, and shows no key.
async fn failed(what: &str, part: &str, is_streamed: bool, answer: impl Fn(u32) -> Vec<u8> + Clone + Send + 'static) {
    let error = call(answer, is_streamed).await.expect_err(what);
    assert!(matches!(error.kind(), ErrorKind::Transport | ErrorKind::Truncated), "{what}: {error}");
    assert_eq!((error.context("part"), error.is_retryable()), (Some(part), true), "{what}: {error}");
    assert!(!format!("{error:?}").contains("SECRET"), "{what}: {error:?}");
}

fn events(stream: u32) -> Vec<u8> {
    [head(stream, &[("content-type", "text/event-stream")]), data(stream, delta(r#"{"content":"hel"}"#).as_bytes())]
        .concat()
}

#[tokio::test]
async fn frames_that_are_none_end_the_answer_with_an_error() {
    let nobodys = |stream| [events(stream), data(0, b"zz")].concat();
    failed("bytes of no stream", "body", true, nobodys).await;
    let huge = |stream| [events(stream), frame(0, 0, stream, &[b' '; 20_000])].concat();
    failed("a frame of more than was agreed", "body", true, huge).await;
    let flood = |stream| [head(stream, &[]), data(stream, &[b' '; 16_000]).repeat(100)].concat();
    failed("more than there is room for", "body", false, flood).await;
    let text = |stream| [events(stream), b"HTTP/1.1 200 OK\r\n\r\n".to_vec()].concat();
    failed("another protocol", "body", true, text).await;
    failed("no head", "head", false, |stream| data(stream, b"{}")).await;
    failed("a head without a status", "head", false, |stream| frame(1, 4, stream, &[])).await;
    failed("a head without end", "head", false, endless_head).await;
}

#[tokio::test]
async fn a_body_of_another_length_than_its_head_said_is_no_answer() {
    let said = |more: isize| {
        move |stream| {
            let length = hello().len().saturating_add_signed(more).to_string();
            [head(stream, &[("content-length", &length)]), end(stream, hello().as_bytes())].concat()
        }
    };
    failed("too short", "body", false, said(50)).await;
    failed("too long", "body", false, said(-50)).await;
    assert_eq!(call(said(0), false).await.expect("an answer").message.text(), "hello");
}

/// Frames in addition to those of a stream.
type More = fn(u32, &[u8]) -> Vec<u8>;

/// Frames after an answer, or on a stream that was not opened, are refused, if necessary by closing
/// the connection.
#[tokio::test]
async fn what_was_not_asked_for_is_nobodys_answer() {
    let evil = || hello().replace("hello", "EVIL!").into_bytes();
    let smuggled: [More; 3] = [
        |stream, evil| whole(stream, evil),
        |stream, evil| whole(stream + 2, evil),
        |stream, evil| [promise(stream, 2), whole(2, evil)].concat(),
    ];
    for more in smuggled {
        let model = answering(move |stream| [whole(stream, hello().as_bytes()), more(stream, &evil())].concat()).await;
        for _ in 0..5 {
            match model.call(ask()).await {
                Ok(response) => assert_eq!(response.message.text(), "hello"),
                Err(e) => assert!(matches!(e.kind(), ErrorKind::Transport | ErrorKind::Truncated), "{e}"),
            }
        }
    }
}
