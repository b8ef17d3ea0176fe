//! Further behaviour observed at providers and their gateways, over real sockets, on both versions
//! of HTTP.

use std::time::{Duration, SystemTime};

use agent_core::{ErrorKind, Retry};
use async_compression::tokio::write::GzipEncoder;
use tokio::{io::AsyncWriteExt, time::timeout};

use super::{
    common::{DONE, completion, delta, finish, hello},
    modes::{Answer, End, answered, call, events, json, refusal, refused},
};

/// A stream of these events, with the text `hello`.
fn said(events: &[&str]) -> String {
    events.concat() + &finish("stop") + DONE
}

fn hel_lo() -> String {
    said(&[&delta(r#"{"role":"assistant","content":"hel"}"#), &delta(r#"{"content":"lo"}"#)])
}

#[tokio::test]
async fn a_refusal_says_when_to_try_again() {
    let plain = ("content-type", "application/json");
    let overloaded = r#"{"error":{"message":"overloaded"}}"#;
    for status in [429, 500, 502, 503, 529] {
        for is_http2 in [false, true] {
            let error = call(refusal(status, plain, overloaded), is_http2).await.expect_err("refused");
            assert_eq!(error.retry(), Retry::Temporary(None), "{status}, HTTP/2: {is_http2}: {error}");
        }
    }
    let date = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(60));
    for (value, least, most) in [("7", 7, 7), (date.as_str(), 55, 61)] {
        for is_http2 in [false, true] {
            let error = call(refusal(429, ("retry-after", value), overloaded), is_http2).await.expect_err("refused");
            let Retry::Temporary(Some(delay)) = error.retry() else { panic!("{value}: {:?}", error.retry()) };
            assert!((least..=most).contains(&delay.as_secs()), "{value}: {delay:?}");
        }
    }
}

#[tokio::test]
async fn a_stream_is_read_in_whatever_pieces_and_lines_it_comes() {
    let whole = hel_lo();
    let comments = ": still there\n\n".repeat(20_000);
    let spellings = [
        ("a byte at a time", whole.clone(), 1),
        ("with carriage returns and line feeds", whole.replace('\n', "\r\n"), 3),
        ("with carriage returns", whole.replace('\n', "\r"), 1 << 16),
        ("with a byte order mark", format!("\u{feff}{whole}"), 1),
        ("after comments", format!("{comments}{whole}"), 1 << 16),
    ];
    for (how, stream, piece) in spellings {
        answered(how, Answer { piece, ..events(stream) }, |r| r.message.text() == "hello").await;
    }
    let wide = said(&[&delta(r#"{"content":"hé日本\ud83d\ude00lo"}"#)]);
    let wide = Answer { piece: 1, ..events(wide) };
    answered("letters cut in two", wide, |r| r.message.text() == "hé日本\u{1f600}lo").await;
}

#[tokio::test]
async fn answers_without_an_end_end_at_the_limit() {
    let endless = Answer { end: End::Never, ..events(delta(r#"{"content":"again "}"#)) };
    refused("an endless stream", endless, ErrorKind::Protocol).await;
    let endless = Answer { end: End::Never, ..json("[".repeat(1 << 10)) };
    refused("an endless body", endless, ErrorKind::Protocol).await;
    let mut huge = Answer { end: End::Never, ..json(" ".repeat(1 << 16)) };
    huge.headers.push(("content-length", (1_u64 << 30).to_string()));
    refused("a huge body", huge, ErrorKind::Protocol).await;
    let huge = format!(r#"{{"content":"{}"}}"#, "x".repeat(4 << 20));
    refused("a huge delta", events(delta(&huge)), ErrorKind::Protocol).await;
    refused("garbage", json("{\"choices\": [{]"), ErrorKind::Protocol).await;
}

/// Some servers send white space until the answer is ready, which is no idle time; the caller
/// limits the duration of the call.
#[tokio::test]
async fn a_body_that_drips_lasts_as_long_as_its_caller_bears_it() {
    for is_http2 in [false, true] {
        let drip = Answer { end: End::Drip, ..json(" ") };
        timeout(Duration::from_secs(1), call(drip, is_http2)).await.expect_err("it goes on");
    }
}

#[tokio::test]
async fn what_is_missing_or_unknown_loses_nothing_of_what_was_said() {
    let message = r#"{"role":"assistant","content":"hello"}"#;
    answered("an unknown reason", json(completion(message, "because")), |r| r.message.text() == "hello").await;
    let no_usage = hello().split(",\"usage\"").next().map(|head| format!("{head}}}")).expect("a head");
    answered("no usage", json(no_usage), |r| r.message.text() == "hello" && r.usage.total() == 0).await;
    let empty = "data: {\"id\":\"r1\",\"choices\":[]}\n\n";
    let stream = format!("{empty}{}", hel_lo());
    answered("no choices", events(stream), |r| r.message.text() == "hello").await;
    let call = |index: u32, arguments: &str| {
        let function = format!(r#"{{"name":"echo","arguments":"{arguments}"}}"#);
        delta(&format!(
            r#"{{"tool_calls":[{{"index":{index},"id":"c{index}","type":"function","function":{function}}}]}}"#
        ))
    };
    let more = delta(r#"{"tool_calls":[{"index":7,"function":{"arguments":"0e9\"}"}}]}"#);
    let gaps = [call(2, "{}"), call(7, r#"{\"text\":\"\\u0"#), more].concat() + &finish("tool_calls") + DONE;
    answered("numbers left out", Answer { piece: 5, ..events(gaps) }, |r| {
        let arguments: Vec<_> = r.message.calls().map(|call| call.arguments.as_str()).collect();
        arguments == ["{}", r#"{"text":"\u00e9"}"#]
    })
    .await;
}

#[tokio::test]
async fn an_error_in_the_middle_is_an_error() {
    let error = "data: {\"error\":{\"message\":\"the server is overloaded\",\"code\":503}}\n\n";
    for is_http2 in [false, true] {
        let stream = format!("{}{error}", delta(r#"{"content":"hel"}"#));
        let error = call(events(stream), is_http2).await.expect_err("an error");
        assert!(error.is_retryable() && error.message().contains("overloaded"), "{error}");
    }
}

#[tokio::test]
async fn a_huge_head_is_refused() {
    let mut answer = json(hello());
    answer.headers.extend((0..2_000).map(|_| ("x-more", "a".repeat(1_000))));
    refused("a huge head", answer, ErrorKind::Transport).await;
}

async fn gzipped(text: &[u8]) -> Answer {
    let mut encoder = GzipEncoder::new(Vec::new());
    encoder.write_all(text).await.expect("compresses");
    encoder.shutdown().await.expect("compresses");
    let mut answer = json(encoder.into_inner());
    answer.headers.push(("content-encoding", "gzip".into()));
    answer
}

#[tokio::test]
async fn what_is_compressed_is_read_within_the_limit() {
    answered("a compressed answer", gzipped(hello().as_bytes()).await, |r| r.message.text() == "hello").await;
    refused("a bomb", gzipped(&vec![b' '; 64 << 20]).await, ErrorKind::Protocol).await;
    let mut stream = gzipped(hel_lo().as_bytes()).await;
    stream.headers[0].1 = "text/event-stream".into();
    answered("a compressed stream", stream, |r| r.message.text() == "hello").await;
}
