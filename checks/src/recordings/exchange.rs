//! Recorded exchanges, and what can be said of one without any codec.

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

/// One request and its answer, as a line of the file holds it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Exchange {
    /// Names the exchange.
    pub(crate) id: String,
    /// The project that recorded it.
    #[serde(default)]
    pub(crate) source: String,
    /// Who answered.
    pub(crate) provider: String,
    /// The wire that was spoken.
    pub(crate) api: String,
    /// Whether the answer came as events.
    #[serde(default)]
    pub(crate) stream: bool,
    /// The model that was asked.
    #[serde(default)]
    pub(crate) model: Option<String>,
    pub(crate) request: Asked,
    pub(crate) response: Answered,
}

/// The recorded request.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Asked {
    pub(crate) path: String,
    /// The body; none if it was not recorded, or is not JSON.
    pub(crate) json: Option<Value>,
}

/// The recorded answer.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Answered {
    status: u16,
    #[serde(default)]
    headers: Map<String, Value>,
    /// `text`, or `base64` for a body that is not text.
    #[serde(default)]
    encoding: String,
    pub(crate) body: String,
}

/// What an answer is, by the recording alone.
#[derive(Debug)]
pub(crate) enum Recording {
    /// A refusal: the status says so.
    Refused(StatusCode),
    /// A body with a good status that is an error all the same.
    Error,
    /// A whole body.
    Whole(Value),
    /// A complete stream, put together by the wire's naive fold into the body that would have come whole.
    Streamed(Value),
    /// A stream with an error in it.
    Interrupted,
    /// A stream that ends before its answer is complete.
    Cut,
    /// Nothing can be asked of a codec but to refuse it.
    Broken(&'static str),
}

/// The lines of a file that are not empty; it may be compressed with gzip.
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
    /// The exchanges of a file of JSON lines, which may be compressed with gzip.
    pub(crate) fn read(path: &Path) -> io::Result<impl Iterator<Item = io::Result<Self>>> {
        Ok(lines(path)?.map(|line| Ok(serde_json::from_str(&line?)?)))
    }

    /// The model's name, as far as it was recorded.
    pub(crate) fn model(&self) -> &str {
        self.model.as_deref().filter(|model| !model.is_empty()).unwrap_or("unknown")
    }

    /// The answer's headers, as far as they are headers.
    pub(crate) fn headers(&self) -> HeaderMap {
        let header = |(name, value): (&String, &Value)| {
            Some((HeaderName::try_from(name).ok()?, HeaderValue::try_from(value.as_str()?).ok()?))
        };
        self.response.headers.iter().filter_map(header).collect()
    }

    /// The status with which the answer came.
    pub(crate) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.response.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// The bytes of the answer's body.
    pub(crate) fn body(&self) -> Vec<u8> {
        let Answered { encoding, body, .. } = &self.response;
        match encoding.as_str() {
            "base64" => BASE64_STANDARD.decode(body).unwrap_or_default(),
            _ => body.clone().into_bytes(),
        }
    }

    /// What the answer is.
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
        if frames.data.iter().any(|frame| wire.is_error(frame)) {
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

/// The events of a stream, read in the plainest way.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    /// The data of each event.
    pub(crate) data: Vec<Value>,
    /// `[DONE]` stood at the end.
    pub(crate) done: bool,
}

impl Frames {
    /// None if an event is not JSON.
    fn read_lines(body: &str) -> Option<Self> {
        let lines = body.lines().filter(|line| !line.trim().is_empty());
        let data = lines.map(|line| serde_json::from_str(line).ok()).collect::<Option<_>>()?;
        Some(Self { data, done: false })
    }

    /// None if an event is not JSON.
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
