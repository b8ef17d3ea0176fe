//! AWS event streams: frames with lengths, headers and checksums.

use agent_core::{Error, ErrorKind, Result, Retry};
use aws_smithy_eventstream::frame::{DecodedFrame, MessageFrameDecoder};
use aws_smithy_types::event_stream::Message;
use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::BytesMut;
use serde_json::{Map, Value, json};

use super::{LONGEST, too_long};

/// Splits a byte stream into the events of an AWS event stream, independent of chunk boundaries.
///
/// An event is passed on as JSON: an object with its payload under its type. An event that wraps
/// bytes (`chunk`, with which Bedrock wraps a model's native events) is passed on as those bytes.
/// An exception becomes an object that carries it under `error`.
#[derive(Debug, Default)]
pub(super) struct AwsSplitter {
    bytes: BytesMut,
    frames: MessageFrameDecoder,
}

impl AwsSplitter {
    /// Takes the next bytes and passes every event that they complete to `take`.
    ///
    /// # Errors
    /// [`ErrorKind::Protocol`] for a frame that is corrupt or too long; the errors of `take`. The
    /// stream is unusable after an error.
    pub(super) fn push(&mut self, bytes: &[u8], mut take: impl FnMut(&str) -> Result<()>) -> Result<()> {
        self.bytes.extend_from_slice(bytes);
        loop {
            let frame = self.frames.decode_frame(&mut self.bytes);
            match frame.map_err(|e| broken("a frame of the stream is broken").with_source(e))? {
                DecodedFrame::Complete(message) => take(&data(&message)?)?,
                DecodedFrame::Incomplete if self.bytes.len() > LONGEST => return Err(too_long(LONGEST)),
                DecodedFrame::Incomplete => return Ok(()),
            }
        }
    }
}

/// Returns the content of a frame as JSON.
fn data(message: &Message) -> Result<String> {
    let header = |name: &str| {
        let header = message.headers().iter().find(|header| header.name().as_str() == name)?;
        header.value().as_string().ok().map(|text| text.as_str().to_owned())
    };
    let payload = match &message.payload()[..] {
        [] => "{}",
        payload => str::from_utf8(payload).map_err(|e| broken("a frame of the stream holds no text").with_source(e))?,
    };
    match header(":message-type").as_deref() {
        Some("exception") => Ok(exception(header(":exception-type"), payload)),
        Some("error") => {
            let (code, why) = (header(":error-code"), header(":error-message").unwrap_or_default());
            Ok(exception(code, &json!({"message": why}).to_string()))
        }
        _ => match header(":event-type").as_deref() {
            Some("chunk") => chunk(payload),
            Some(kind) => Ok(format!("{{{}:{payload}}}", Value::from(kind))),
            None => Err(broken("a frame of the stream does not say what it is")),
        },
    }
}

fn exception(kind: Option<String>, payload: &str) -> String {
    let said = serde_json::from_str::<Map<String, Value>>(payload);
    let mut error = said.unwrap_or_else(|_| Map::from_iter([("message".to_owned(), payload.into())]));
    error.extend(kind.map(|kind| ("type".to_owned(), kind.into())));
    json!({"error": error}).to_string()
}

/// Returns a model's native event, which is transferred as base64.
fn chunk(payload: &str) -> Result<String> {
    let wrong = || broken("a chunk of the stream holds no bytes");
    let said: Value = serde_json::from_str(payload).map_err(|e| wrong().with_source(e))?;
    let bytes =
        BASE64_STANDARD.decode(said["bytes"].as_str().ok_or_else(wrong)?).map_err(|e| wrong().with_source(e))?;
    String::from_utf8(bytes).map_err(|e| wrong().with_source(e))
}

/// Returns the frame that decodes to this event.
#[cfg(any(test, feature = "testing"))]
pub(super) fn framed(data: &str) -> Vec<u8> {
    let event: Map<String, Value> = serde_json::from_str(data).unwrap_or_default();
    let kinds = |message, name, kind| [(":message-type", message), (name, kind)];
    match event.iter().next() {
        Some((name, Value::Object(error))) if name == "error" => {
            let kind = error.get("type").and_then(Value::as_str).unwrap_or_default();
            frame(&kinds("exception", ":exception-type", kind), json!({"message": error.get("message")}).to_string())
        }
        Some((kind, payload)) if event.len() == 1 => frame(&kinds("event", ":event-type", kind), payload.to_string()),
        _ => frame(&kinds("event", ":event-type", "chunk"), json!({"bytes": BASE64_STANDARD.encode(data)}).to_string()),
    }
}

#[cfg(any(test, feature = "testing"))]
fn frame(headers: &[(&str, &str)], payload: String) -> Vec<u8> {
    use aws_smithy_eventstream::frame::write_message_to;
    use aws_smithy_types::event_stream::{Header, HeaderValue};

    let header =
        |(name, value): &(&str, &str)| Header::new((*name).to_owned(), HeaderValue::String((*value).to_owned().into()));
    let headers: Vec<_> = headers.iter().map(header).collect();
    let message = Message::new_from_parts(headers, payload.into_bytes());
    let mut bytes = Vec::new();
    write_message_to(&message, &mut bytes).expect("it is short");
    bytes
}

/// Builds an error that is worth a retry.
fn broken(what: &'static str) -> Error {
    Error::new(ErrorKind::Protocol, what).with_retry(Retry::Temporary(None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::framing::Framing;

    fn split(pieces: &[&[u8]]) -> Result<Vec<String>> {
        let (mut splitter, mut seen) = (Framing::AwsEvents.splitter(), Vec::new());
        for piece in pieces {
            splitter.push(piece, |event| {
                seen.push(event.to_owned());
                Ok(())
            })?;
        }
        splitter.finish(|_| unreachable!("a frame that was cut is no event"))?;
        Ok(seen)
    }

    fn frame(headers: &[(&str, &str)], payload: &str) -> Vec<u8> {
        super::frame(headers, payload.to_owned())
    }

    #[test]
    fn events_are_the_same_wherever_the_bytes_were_cut() {
        let event = |kind| [(":message-type", "event"), (":event-type", kind)];
        let hello = BASE64_STANDARD.encode(r#"{"type":"ping"}"#);
        let stream = [
            frame(&event("contentBlockDelta"), r#"{"delta":{"text":"Zürich"}}"#),
            frame(&event("chunk"), &format!(r#"{{"bytes":"{hello}","p":"abc"}}"#)),
            frame(
                &[(":message-type", "exception"), (":exception-type", "throttlingException")],
                r#"{"message":"slow"}"#,
            ),
            frame(&[(":message-type", "error"), (":error-code", "InternalFailure"), (":error-message", "why")], ""),
        ]
        .concat();
        let wanted = [
            r#"{"contentBlockDelta":{"delta":{"text":"Zürich"}}}"#,
            r#"{"type":"ping"}"#,
            r#"{"error":{"message":"slow","type":"throttlingException"}}"#,
            r#"{"error":{"message":"why","type":"InternalFailure"}}"#,
        ];
        for at in 0..=stream.len() {
            assert_eq!(split(&[&stream[..at], &stream[at..]]).expect("sound"), wanted, "cut at {at}");
        }
        let bytes: Vec<_> = stream.chunks(1).collect();
        assert_eq!(split(&bytes).expect("sound"), wanted);
    }

    #[test]
    fn of_a_frame_with_a_byte_that_changed_on_its_way_nothing_is_taken() {
        let sound =
            frame(&[(":message-type", "event"), (":event-type", "messageStop")], r#"{"stopReason":"end_turn"}"#);
        for at in 0..sound.len() {
            let mut stream = sound.clone();
            stream[at] ^= 1;
            match split(&[&stream]) {
                Err(e) => assert_eq!((e.kind(), e.is_retryable()), (ErrorKind::Protocol, true), "byte {at}"),
                // A frame whose declared length exceeds its bytes looks truncated to the splitter;
                // the wire detects the missing end.
                Ok(events) => assert!(at < 4 && events.is_empty(), "byte {at}"),
            }
        }
    }

    #[test]
    fn a_stream_that_ends_within_a_frame_gives_what_came_whole() {
        let one = frame(&[(":message-type", "event"), (":event-type", "messageStart")], "{}");
        let stream = [&one[..], &one[..one.len() - 1]].concat();
        assert_eq!(split(&[&stream]).expect("no error of its own"), [r#"{"messageStart":{}}"#]);
    }

    #[test]
    fn a_frame_that_says_nothing_of_the_kind_is_refused() {
        for (headers, payload) in [
            (&[(":message-type", "event")][..], "{}"),
            (&[(":event-type", "chunk")], "{}"),
            (&[(":event-type", "chunk")], r#"{"bytes":"no base64"}"#),
        ] {
            assert_eq!(split(&[&frame(headers, payload)]).expect_err("refused").kind(), ErrorKind::Protocol);
        }
    }
}
