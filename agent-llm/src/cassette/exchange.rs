//! Contents of a tape.

use std::collections::BTreeMap;

use agent_core::{Error, ErrorKind, Result, Retry};
use bytes::Bytes;
use http::{Response, response};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::layout::compact;
use crate::Body;

/// Response headers that are recorded: those that a codec uses and that reveal nothing about the
/// account.
const KEPT_HEADERS: [&str; 6] = ["content-type", "date", "request-id", "retry-after", "retry-after-ms", "x-request-id"];

/// A request and its answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Exchange {
    pub(super) request: Asked,
    pub(super) response: Answered,
}

/// A request, without its headers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Asked {
    pub(super) method: String,
    pub(super) url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) body: Option<Content>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Answered {
    pub(super) status: u16,
    pub(super) headers: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) body: Option<Content>,
    /// Reason why the body ended early, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) broke_off: Option<BrokeOff>,
}

/// A body.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Content {
    /// One JSON value. White space between its tokens and the chunk boundaries are not kept.
    Json(Box<RawValue>),
    /// Any other content, chunk by chunk.
    Chunks(Vec<Piece>),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Piece {
    Text(String),
    /// Bytes that are not valid UTF-8, as hexadecimal.
    Binary {
        hex: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum BrokeOff {
    /// The connection broke.
    Transport,
    /// The server closed the connection too early.
    Truncated,
    /// The client stopped reading while recording.
    Dropped,
}

impl Content {
    /// Builds the content from `chunks`; `None` if they are empty.
    pub(super) fn of(chunks: Vec<Vec<u8>>) -> Option<Self> {
        let whole = chunks.concat();
        if whole.is_empty() {
            return None;
        }
        Some(match serde_json::from_slice(&whole) {
            Ok(json) => Self::Json(json),
            Err(_) => Self::Chunks(chunks.into_iter().filter(|chunk| !chunk.is_empty()).map(Piece::of).collect()),
        })
    }

    fn bytes(&self) -> Result<Vec<Bytes>> {
        match self {
            Self::Json(json) => Ok(vec![compact(json.get()).into()]),
            Self::Chunks(pieces) => pieces.iter().map(Piece::bytes).collect(),
        }
    }
}

impl Piece {
    fn of(bytes: Vec<u8>) -> Self {
        String::from_utf8(bytes).map_or_else(
            |e| Self::Binary { hex: e.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect() },
            Self::Text,
        )
    }

    fn bytes(&self) -> Result<Bytes> {
        match self {
            Self::Text(text) => Ok(text.clone().into()),
            Self::Binary { hex } => {
                let byte = |digits: &[u8]| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
                let bytes: Option<Vec<_>> = hex.as_bytes().chunks(2).map(byte).collect();
                bytes.map(Bytes::from).ok_or_else(|| edited("bytes that are not written as hexadecimal digits"))
            }
        }
    }
}

impl Answered {
    pub(super) fn new(head: &response::Parts, body: Option<Content>, broke_off: Option<BrokeOff>) -> Self {
        let header = |name: &str| Some((name.to_owned(), head.headers.get(name)?.to_str().ok()?.to_owned()));
        let headers = KEPT_HEADERS.into_iter().filter_map(header).collect();
        Self { status: head.status.as_u16(), headers, body, broke_off }
    }

    pub(super) fn respond(&self) -> Result<Response<Body>> {
        let chunks = self.body.as_ref().map(Content::bytes).transpose()?.unwrap_or_default();
        let end = self.broke_off.map(|how| Err(how.error()));
        let body = Body::new(futures::stream::iter(chunks.into_iter().map(Ok).chain(end)));
        let mut response = Response::builder().status(self.status);
        for (name, value) in &self.headers {
            response = response.header(name, value);
        }
        response.body(body).map_err(|e| edited("a head that HTTP does not allow").with_source(e))
    }
}

impl BrokeOff {
    pub(super) fn of(error: &Error) -> Self {
        match error.kind() {
            ErrorKind::Truncated => Self::Truncated,
            _ => Self::Transport,
        }
    }

    fn error(self) -> Error {
        let (kind, message) = match self {
            Self::Transport => (ErrorKind::Transport, "the recorded answer breaks off here"),
            Self::Truncated => (ErrorKind::Truncated, "the recorded answer ends here, before it is complete"),
            Self::Dropped => (ErrorKind::Transport, "the answer was not read on from here when it was recorded"),
        };
        Error::new(kind, message).with_retry(Retry::Temporary(None))
    }
}

fn edited(what: &str) -> Error {
    Error::new(ErrorKind::Store, format!("the cassette holds {what}")).with_retry(Retry::Permanent)
}
