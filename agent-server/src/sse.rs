//! Server-sent events.

use std::{
    convert::Infallible,
    task::{Poll, ready},
    time::Duration,
};

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use http::{HeaderValue, header};
use serde::Serialize;
use tokio::time::{Instant, sleep};

/// Interval of keep-alive comments, which prevent intermediaries from closing an idle connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Maximum size in bytes of a batch of ready events: for a slow client, at most this and one more
/// event are buffered.
const ENOUGH: usize = 16 << 10;

/// Buffer capacity that is sufficient for most events.
const USUAL: usize = 512;

/// Media type.
const EVENTS: &str = "text/event-stream";

/// Encoded event. Its JSON is a single line, and so is its data field.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frame(Vec<u8>);

impl Frame {
    /// Encodes an event with this data.
    pub(crate) fn json(data: &impl Serialize) -> Self {
        Self::with(&[], data)
    }

    /// Like [`json`](Self::json), with further fields: the type (`event`), and the id that a client
    /// sends as `Last-Event-ID` when it reconnects (`id`).
    pub(crate) fn with(fields: &[(&str, &str)], data: &impl Serialize) -> Self {
        let mut frame = Vec::with_capacity(USUAL);
        for (name, value) in fields {
            [name, ": ", value, "\n"].iter().for_each(|part| frame.extend_from_slice(part.as_bytes()));
        }
        frame.extend_from_slice(b"data: ");
        serde_json::to_writer(&mut frame, data).expect("events have string keys");
        frame.extend_from_slice(b"\n\n");
        Self(frame)
    }

    /// Returns the end marker of protocols that have one.
    pub(crate) fn done() -> Self {
        Self(b"data: [DONE]\n\n".to_vec())
    }
}

/// Returns a response that streams these events with keep-alive comments and a reconnection
/// interval.
pub(crate) fn response(frames: impl Stream<Item = Frame> + Send + 'static) -> Response {
    let first = stream::once(async { Bytes::from_static(b"retry: 1000\n\n") });
    of_bytes(first.chain(written(frames)), EVENTS)
}

/// Like [`response`], for clients that cannot reconnect and may not support fields other than data.
pub(crate) fn plain(frames: impl Stream<Item = Frame> + Send + 'static) -> Response {
    of_bytes(written(frames), EVENTS)
}

/// Returns a response that streams these bytes with this media type.
pub(crate) fn of_bytes(bytes: impl Stream<Item = Bytes> + Send + 'static, kind: &'static str) -> Response {
    let body = bytes.map(Ok::<_, Infallible>);
    let mut response = Body::from_stream(body).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// Encodes the stream: sends ready events in batches, and a comment after a silence.
fn written(frames: impl Stream<Item = Frame> + Send + 'static) -> impl Stream<Item = Bytes> + Send {
    let mut frames = Box::pin(frames.fuse());
    // One timer serves many events: it is only reset when it fires too early.
    let (mut silence, mut said) = (Box::pin(sleep(KEEP_ALIVE)), Instant::now());
    stream::poll_fn(move |cx| {
        let mut bytes = Vec::new();
        while bytes.len() < ENOUGH
            && let Poll::Ready(Some(Frame(frame))) = frames.as_mut().poll_next(cx)
        {
            match bytes.is_empty() {
                true => bytes = frame,
                false => bytes.extend(frame),
            }
        }
        if bytes.is_empty() && frames.is_done() {
            return Poll::Ready(None);
        }
        while bytes.is_empty() {
            ready!(silence.as_mut().poll(cx));
            match said.elapsed() < KEEP_ALIVE {
                true => silence.as_mut().reset(said + KEEP_ALIVE),
                false => bytes.extend_from_slice(b": keep-alive\n\n"),
            }
        }
        said = Instant::now();
        Poll::Ready(Some(bytes.into()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_secs(1);

    #[tokio::test]
    async fn a_text_of_many_lines_is_one_line_of_data() {
        let frames = [Frame::with(&[("id", "3.0"), ("event", "end")], &"a\r\nb\n"), Frame::done()];
        let sent: Vec<_> = written(stream::iter(frames)).collect().await;
        assert_eq!(sent, ["id: 3.0\nevent: end\ndata: \"a\\r\\nb\\n\"\n\ndata: [DONE]\n\n"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_stream_is_kept_alive_and_one_that_speaks_is_not() {
        let frames = stream::iter([KEEP_ALIVE - TICK, TICK * 2, KEEP_ALIVE * 2 + TICK]).then(async |silent| {
            sleep(silent).await;
            Frame::json(&1)
        });
        let sent: Vec<_> = written(frames).collect().await;
        assert_eq!(sent, ["data: 1\n\n", "data: 1\n\n", ": keep-alive\n\n", ": keep-alive\n\n", "data: 1\n\n"]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_ready_together_goes_out_together_and_waits_for_nothing() {
        let later = stream::once(async {
            sleep(TICK).await;
            Frame::json(&3)
        });
        let frames = stream::iter([1, 2]).map(|n| Frame::json(&n)).chain(later);
        let sent: Vec<_> = written(frames).collect().await;
        assert_eq!(sent, ["data: 1\n\ndata: 2\n\n", "data: 3\n\n"]);
    }

    #[tokio::test]
    async fn no_more_than_a_client_may_be_behind_is_written_at_once() {
        let frames = stream::repeat_with(|| Frame::json(&"x".repeat(1_000))).take(1_000);
        let sent: Vec<_> = written(frames).collect().await;
        assert!(sent.iter().all(|piece| piece.len() < ENOUGH + 2_000), "{}", sent.len());
        assert_eq!(sent.iter().map(Bytes::len).sum::<usize>(), 1_000 * 1_010);
    }
}
