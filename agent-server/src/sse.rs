//! Server-sent events.

use std::{convert::Infallible, fmt::Write, time::Duration};

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use http::{HeaderValue, header};

/// How long nothing may be said, so that nobody on the way gives the connection up.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

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

    /// As it is sent.
    fn bytes(&self) -> Bytes {
        let mut text = String::with_capacity(self.data.len() + 48);
        if let Some(id) = &self.id {
            let _ = writeln!(text, "id: {id}");
        }
        if let Some(event) = self.event {
            let _ = writeln!(text, "event: {event}");
        }
        for line in self.data.split('\n') {
            let _ = writeln!(text, "data: {}", line.trim_end_matches('\r'));
        }
        text.push('\n');
        text.into()
    }
}

/// The answer that sends these events, and a comment where nothing was said for some time.
pub(crate) fn response(frames: impl Stream<Item = Frame> + Send + 'static) -> Response {
    let first = stream::once(async { Bytes::from_static(b"retry: 1000\n\n") });
    of_bytes(first.chain(with_keep_alive(frames.map(|frame| frame.bytes()))), EVENTS)
}

/// As [`response`], for clients that cannot come back, and that may take anything but a comment for an event.
pub(crate) fn plain(frames: impl Stream<Item = Frame> + Send + 'static) -> Response {
    of_bytes(with_keep_alive(frames.map(|frame| frame.bytes())), EVENTS)
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

fn with_keep_alive(frames: impl Stream<Item = Bytes> + Send + 'static) -> impl Stream<Item = Bytes> + Send {
    stream::unfold(Box::pin(frames), |mut frames| async {
        match tokio::time::timeout(KEEP_ALIVE, frames.next()).await {
            Ok(frame) => frame.map(|frame| (frame, frames)),
            Err(_) => Some((Bytes::from_static(b": keep-alive\n\n"), frames)),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_many_lines_is_many_lines_of_data() {
        let frame = Frame { id: Some("3.0".into()), event: Some("end"), data: "a\r\nb\n".into() };
        assert_eq!(frame.bytes(), "id: 3.0\nevent: end\ndata: a\ndata: b\ndata: \n\n");
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_stream_is_kept_alive() {
        let frames = stream::once(async {
            tokio::time::sleep(KEEP_ALIVE * 2 + Duration::from_secs(1)).await;
            Frame::new("x").bytes()
        });
        let said: Vec<_> = with_keep_alive(frames).collect().await;
        assert_eq!(said, [": keep-alive\n\n", ": keep-alive\n\n", "data: x\n\n"]);
    }
}
