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
use tokio::time::{Instant, sleep};

/// How long nothing may be said, so that nobody on the way gives the connection up.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Bytes that go out together although more is ready: of a client that is behind, no more than that and one event wait here.
const ENOUGH: usize = 16 << 10;

/// The media type.
const EVENTS: &str = "text/event-stream";

/// One event of a stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frame {
    /// What a client says as `Last-Event-ID` when it comes back.
    pub(crate) id: Option<String>,
    /// Its type; `message` if unset.
    pub(crate) event: Option<&'static str>,
    /// Its content.
    pub(crate) data: String,
}

impl Frame {
    /// An event with this content.
    pub(crate) fn new(data: impl Into<String>) -> Self {
        Self { id: None, event: None, data: data.into() }
    }

    /// Writes it as it is sent.
    fn write(&self, text: &mut String) {
        text.reserve(self.data.len() + 64);
        let fields = [("id: ", self.id.as_deref()), ("event: ", self.event)];
        let fields = fields.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let lines = self.data.split('\n').map(|line| ("data: ", line.trim_end_matches('\r')));
        for (name, value) in fields.chain(lines) {
            text.push_str(name);
            text.push_str(value);
            text.push('\n');
        }
        text.push('\n');
    }
}

/// The answer that sends these events, and a comment where nothing was said for some time.
pub(crate) fn response(frames: impl Stream<Item = Frame> + Send + 'static) -> Response {
    let first = stream::once(async { Bytes::from_static(b"retry: 1000\n\n") });
    of_bytes(first.chain(written(frames)), EVENTS)
}

/// As [`response`], for clients that cannot come back, and that may take anything but a comment for an event.
pub(crate) fn plain(frames: impl Stream<Item = Frame> + Send + 'static) -> Response {
    of_bytes(written(frames), EVENTS)
}

/// The answer that sends these bytes as they come, and is of this media type.
pub(crate) fn of_bytes(bytes: impl Stream<Item = Bytes> + Send + 'static, kind: &'static str) -> Response {
    let body = bytes.map(Ok::<_, Infallible>);
    let mut response = Body::from_stream(body).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// The events as they are sent: what is ready together goes out together, and a comment where nothing was said for some time.
fn written(frames: impl Stream<Item = Frame> + Send + 'static) -> impl Stream<Item = Bytes> + Send {
    let mut frames = Box::pin(frames.fuse());
    // One timer lasts for many events: it is only moved when it fires too early.
    let (mut silence, mut said) = (Box::pin(sleep(KEEP_ALIVE)), Instant::now());
    stream::poll_fn(move |cx| {
        let mut text = String::new();
        while text.len() < ENOUGH
            && let Poll::Ready(Some(frame)) = frames.as_mut().poll_next(cx)
        {
            frame.write(&mut text);
        }
        if text.is_empty() && frames.is_done() {
            return Poll::Ready(None);
        }
        while text.is_empty() {
            ready!(silence.as_mut().poll(cx));
            match said.elapsed() < KEEP_ALIVE {
                true => silence.as_mut().reset(said + KEEP_ALIVE),
                false => text.push_str(": keep-alive\n\n"),
            }
        }
        said = Instant::now();
        Poll::Ready(Some(text.into()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_secs(1);

    #[tokio::test]
    async fn a_text_of_many_lines_is_many_lines_of_data() {
        let frame = Frame { id: Some("3.0".into()), event: Some("end"), data: "a\r\nb\n".into() };
        let sent: Vec<_> = written(stream::iter([frame])).collect().await;
        assert_eq!(sent, ["id: 3.0\nevent: end\ndata: a\ndata: b\ndata: \n\n"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_stream_is_kept_alive_and_one_that_speaks_is_not() {
        let frames = stream::iter([KEEP_ALIVE - TICK, TICK * 2, KEEP_ALIVE * 2 + TICK]).then(async |silent| {
            sleep(silent).await;
            Frame::new("x")
        });
        let sent: Vec<_> = written(frames).collect().await;
        assert_eq!(sent, ["data: x\n\n", "data: x\n\n", ": keep-alive\n\n", ": keep-alive\n\n", "data: x\n\n"]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_ready_together_goes_out_together_and_waits_for_nothing() {
        let later = stream::once(async {
            sleep(TICK).await;
            Frame::new("c")
        });
        let frames = stream::iter(["a", "b"]).map(Frame::new).chain(later);
        let sent: Vec<_> = written(frames).collect().await;
        assert_eq!(sent, ["data: a\n\ndata: b\n\n", "data: c\n\n"]);
    }

    #[tokio::test]
    async fn no_more_than_a_client_may_be_behind_is_written_at_once() {
        let frames = stream::repeat_with(|| Frame::new("x".repeat(1_000))).take(1_000);
        let sent: Vec<_> = written(frames).collect().await;
        assert!(sent.iter().all(|piece| piece.len() < ENOUGH + 2_000), "{}", sent.len());
        assert_eq!(sent.iter().map(Bytes::len).sum::<usize>(), 1_000 * 1_008);
    }
}
