//! Recorded exchanges, and their classification without a codec.

use std::{
    fs::File,
    io::{self, BufRead, BufReader},
    path::Path,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use flate2::read::MultiGzDecoder;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Wire, aws_frames};

/// Request with its response, one line of the file.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Exchange {
    /// Id of the exchange.
    pub(crate) id: String,
    /// Project that recorded it.
    #[serde(default)]
    pub(crate) source: String,
    /// Provider that responded.
    pub(crate) provider: String,
    /// Name of the wire.
    pub(crate) api: String,
    /// True if the response was streamed as events.
    #[serde(default)]
    pub(crate) stream: bool,
    /// Requested model.
    #[serde(default)]
    pub(crate) model: Option<String>,
    pub(crate) request: Asked,
    pub(crate) response: Answered,
}

/// Recorded request.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Asked {
    pub(crate) path: String,
    /// Body; `None` if it was not recorded, or is not JSON.
    pub(crate) json: Option<Value>,
}

/// Recorded response.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Answered {
    status: u16,
    #[serde(default)]
    headers: Map<String, Value>,
    /// `text`, or `base64` for a binary body.
    #[serde(default)]
    encoding: String,
    pub(crate) body: String,
}

/// Classification of a response, from the recording alone.
#[derive(Debug)]
pub(crate) enum Recording {
    /// Error with an error status.
    Refused(StatusCode),
    /// Error body with a success status.
    Error,
    /// Whole body.
    Whole(Value),
    /// Complete stream, folded by the wire's naive fold into the equivalent whole body.
    Streamed(Value),
    /// Stream that contains an error, or parts of two messages.
    Interrupted,
    /// Stream that ends before its response is complete.
    Cut,
    /// Invalid recording: a codec can only reject it.
    Broken(&'static str),
}

/// Iterates over the non-empty lines of a file, which may be compressed with gzip.
pub(crate) fn lines(path: &Path) -> io::Result<impl Iterator<Item = io::Result<String>>> {
    let file = File::open(path)?;
    let reader: Box<dyn BufRead> = if path.extension().is_some_and(|e| e == "gz") {
        Box::new(BufReader::new(MultiGzDecoder::new(file)))
    } else {
        Box::new(BufReader::new(file))
    };
    Ok(reader.lines().filter(|line| !matches!(line, Ok(line) if line.trim().is_empty())))
}

impl Exchange {
    /// Iterates over the exchanges of a file of JSON lines, which may be compressed with gzip.
    pub(crate) fn read(path: &Path) -> io::Result<impl Iterator<Item = io::Result<Self>>> {
        Ok(lines(path)?.map(|line| Ok(serde_json::from_str(&line?)?)))
    }

    /// Returns the model's name, if it was recorded.
    pub(crate) fn model(&self) -> &str {
        self.model.as_deref().filter(|model| !model.is_empty()).unwrap_or("unknown")
    }

    /// Returns the response's valid headers.
    pub(crate) fn headers(&self) -> HeaderMap {
        let header = |(name, value): (&String, &Value)| {
            Some((HeaderName::try_from(name).ok()?, HeaderValue::try_from(value.as_str()?).ok()?))
        };
        self.response.headers.iter().filter_map(header).collect()
    }

    /// Returns the status of the response.
    pub(crate) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.response.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// Returns the bytes of the response body.
    pub(crate) fn body(&self) -> Vec<u8> {
        let Answered { encoding, body, .. } = &self.response;
        match encoding.as_str() {
            "base64" => BASE64_STANDARD.decode(body).unwrap_or_default(),
            _ => body.clone().into_bytes(),
        }
    }

    /// Classifies the response.
    pub(crate) fn recording(&self, wire: &dyn Wire) -> Recording {
        let (status, body) = (self.status(), &self.response.body);
        if !status.is_success() {
            return Recording::Refused(status);
        }
        if !self.stream {
            if self.response.encoding == "base64" {
                return Recording::Broken("the body is not text");
            }
            return match serde_json::from_str(body) {
                Ok(whole) if wire.is_error(&whole) => Recording::Error,
                Ok(whole) => Recording::Whole(whole),
                Err(_) => Recording::Broken("the body is not JSON"),
            };
        }
        let frames = match self.response.encoding.as_str() {
            "base64" => aws_frames::events(&self.body()).map(|data| Frames { data, done: false }),
            _ if wire.has_lines() => Frames::read_lines(body),
            _ => Frames::read(body),
        };
        let Some(frames) = frames else { return Recording::Broken("an event is not JSON") };
        if frames.data.iter().any(|frame| wire.is_error(frame)) || wire.is_broken_off(&frames) {
            Recording::Interrupted
        } else if frames.data.is_empty() {
            Recording::Broken("the stream holds no event")
        } else if !wire.is_complete(&frames) {
            Recording::Cut
        } else {
            Recording::Streamed(wire.whole(&frames.data))
        }
    }
}

/// Events of a stream, from a minimal parser.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    /// Data of each event.
    pub(crate) data: Vec<Value>,
    /// True if the stream ended with `[DONE]`.
    pub(crate) done: bool,
}

impl Frames {
    /// Returns `None` if an event is not JSON.
    fn read_lines(body: &str) -> Option<Self> {
        let lines = body.lines().filter(|line| !line.trim().is_empty());
        let data = lines.map(|line| serde_json::from_str(line).ok()).collect::<Option<_>>()?;
        Some(Self { data, done: false })
    }

    /// Returns `None` if an event is not JSON.
    fn read(body: &str) -> Option<Self> {
        let mut frames = Self::default();
        for event in body.replace("\r\n", "\n").split("\n\n") {
            let data: Vec<_> = event.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim).collect();
            match data.join("\n").as_str() {
                "" => {}
                "[DONE]" => frames.done = true,
                json => frames.data.push(serde_json::from_str(json).ok()?),
            }
        }
        Some(frames)
    }
}
