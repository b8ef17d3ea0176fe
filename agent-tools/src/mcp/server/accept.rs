//! What a client accepts as an answer: JSON, events, or both.

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, Request, Response,
    header::{ACCEPT, CONTENT_TYPE},
};
use http_body_util::{BodyExt, Full};
use serde_json::Value;

use super::http::Answer;
use crate::lines::Event;

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

/// Maximum number of bytes of an answer with events that is turned into JSON.
const LARGEST: usize = 64 << 20;

/// What a client accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Accepts {
    /// Events, and JSON too.
    Events,
    Json,
    /// Neither: the request is refused.
    Nothing,
}

impl Accepts {
    /// What the headers say. Without any word, a client accepts everything.
    fn of(headers: &HeaderMap) -> Self {
        let said = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).flat_map(|v| v.split(','));
        let kinds: Vec<_> = said
            .filter(|kind| !kind.split(';').skip(1).any(|parameter| is_zero(parameter.trim())))
            .map(|kind| kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
            .collect();
        let accepts = |kind: &str, any: &str| kinds.iter().any(|one| one == kind || one == any || one == "*/*");
        match () {
            () if !headers.contains_key(ACCEPT) || accepts(EVENTS, "text/*") => Self::Events,
            () if accepts(JSON, "application/*") => Self::Json,
            () => Self::Nothing,
        }
    }

    /// Takes what the request accepts, and makes it one that accepts all that a server may answer.
    pub(super) fn widen<B>(request: &mut Request<B>) -> Self {
        let accepts = Self::of(request.headers());
        let widened = match (request.method(), accepts) {
            (&Method::POST, Self::Events | Self::Json) => "application/json, text/event-stream",
            (&Method::GET, Self::Events) => EVENTS,
            _ => return accepts,
        };
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static(widened));
        accepts
    }

    /// The answer as the client accepts it: of events, the message that answers the request.
    pub(super) async fn narrow(self, answer: Answer) -> Answer {
        let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if self != Self::Json || !kind.starts_with(EVENTS) {
            return answer;
        }
        let (mut head, mut body) = answer.into_parts();
        let mut bytes = Vec::new();
        // The stream ends with the answer.
        while let Some(Ok(frame)) = body.frame().await {
            let data = frame.into_data().unwrap_or_default();
            bytes.extend_from_slice(&data[..data.len().min(LARGEST - bytes.len())]);
        }
        head.headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        Response::from_parts(head, Full::new(Bytes::from(answer_in(&bytes))).boxed())
    }
}

fn is_zero(parameter: &str) -> bool {
    parameter.strip_prefix("q=").and_then(|q| q.parse::<f32>().ok()) == Some(0.0)
}

/// The message of these events that is an answer.
fn answer_in(events: &[u8]) -> Vec<u8> {
    let mut event = Event::default();
    for line in events.split(|byte| *byte == b'\n') {
        if !event.push(line, LARGEST) {
            continue;
        }
        let data = std::mem::take(&mut event).data;
        let message: Value = serde_json::from_slice(&data).unwrap_or_default();
        if message.get("result").is_some() || message.get("error").is_some() {
            return data;
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_answered_in_what_it_accepts() {
        for (accept, wanted) in [
            (None, Accepts::Events),
            (Some("*/*"), Accepts::Events),
            (Some("application/json, text/event-stream"), Accepts::Events),
            (Some("text/event-stream"), Accepts::Events),
            (Some("Text/*;q=0.5"), Accepts::Events),
            (Some("application/json"), Accepts::Json),
            (Some("application/json;charset=utf-8, text/event-stream;q=0"), Accepts::Json),
            (Some("application/*"), Accepts::Json),
            (Some("text/html"), Accepts::Nothing),
            (Some(""), Accepts::Nothing),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(accept) = accept {
                headers.insert(ACCEPT, accept.parse().expect("a value"));
            }
            assert_eq!(Accepts::of(&headers), wanted, "{accept:?}");
        }
        let events = b"id: 1\r\ndata:\r\n\r\ndata: {\"method\":\"note\"}\n\ndata: {\"id\":1,\"result\":{}}\n\n";
        assert_eq!(answer_in(events), b"{\"id\":1,\"result\":{}}");
    }
}
