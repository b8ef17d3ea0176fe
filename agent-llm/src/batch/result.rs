//! [`BatchResults`]: stream of a batch's results.

use std::{
    collections::VecDeque,
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use agent_core::{Error, ErrorKind, ModelResponse, Result, Retry};
use futures::{
    Stream, StreamExt,
    stream::{self, BoxStream},
};
use http::{HeaderMap, StatusCode, Uri};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    ProviderError,
    provider::desk::{Desk, Lines, protocol},
};

/// Result of one request of a batch.
#[derive(Debug)]
#[non_exhaustive]
pub struct BatchResult {
    /// Custom id that the request was submitted with.
    pub custom_id: String,
    /// The answer, or the provider's error; [`Cancelled`](ErrorKind::Cancelled), or
    /// [`Timeout`](ErrorKind::Timeout) if the request expired before the batch reached it.
    pub answer: Result<ModelResponse>,
}

/// Stream of results, read from the provider on demand. It ends after the first error.
pub struct BatchResults(BoxStream<'static, Result<BatchResult>>);

/// Location of results.
pub(super) enum Place {
    /// JSON lines at a URL.
    At(Uri, HeaderMap),
    /// Lines in memory.
    Here(Vec<String>),
}

/// One result line, in any provider's format.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Line<'a> {
    custom_id: Option<String>,
    key: Option<String>,
    metadata: Option<Metadata>,
    #[serde(borrow)]
    result: Option<AtAnthropic<'a>>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    key: Option<String>,
}

#[derive(Deserialize)]
struct AtAnthropic<'a> {
    r#type: String,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// Envelope of an answer with its HTTP status, as in OpenAI's result lines.
#[derive(Deserialize)]
struct AtOpenAi<'a> {
    status_code: u16,
    #[serde(borrow)]
    body: &'a RawValue,
}

impl BatchResults {
    pub(super) fn new(desk: Arc<Desk>, places: Vec<Place>) -> Self {
        let state = Reading { desk, places: places.into(), lines: None, here: VecDeque::new() };
        let read = |mut state: Option<Reading>| async move {
            let next = state.as_mut()?.next().await?;
            // The stream stops after an error.
            let state = state.filter(|_| next.is_ok());
            Some((next, state))
        };
        Self(stream::unfold(Some(state), read).boxed())
    }
}

impl Stream for BatchResults {
    type Item = Result<BatchResult>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_next_unpin(cx)
    }
}

impl fmt::Debug for BatchResults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchResults").finish_non_exhaustive()
    }
}

struct Reading {
    desk: Arc<Desk>,
    places: VecDeque<Place>,
    lines: Option<Lines>,
    here: VecDeque<String>,
}

impl Reading {
    async fn next(&mut self) -> Option<Result<BatchResult>> {
        loop {
            if let Some(line) = self.here.pop_front() {
                return Some(self.read(&line));
            }
            if let Some(lines) = &mut self.lines {
                match lines.next().await {
                    Some(line) => return Some(line.and_then(|line| self.read(&line))),
                    None => self.lines = None,
                }
            }
            match self.places.pop_front()? {
                Place::Here(lines) => self.here = lines.into(),
                Place::At(uri, headers) => match self.desk.get_lines(uri, &headers).await {
                    Ok(lines) => self.lines = Some(lines),
                    Err(e) => return Some(Err(e)),
                },
            }
        }
    }

    fn read(&self, line: &str) -> Result<BatchResult> {
        let provider = &self.desk.provider.name;
        let foreign = |e| protocol(provider, "a line of the results is none").with_source(e);
        let line: Line<'_> = serde_json::from_str(line).map_err(foreign)?;
        let id =
            line.custom_id.clone().or(line.key.clone()).or(line.metadata.as_ref().and_then(|said| said.key.clone()));
        let custom_id = id.ok_or_else(|| protocol(provider, "a line of the results has no id"))?;
        Ok(BatchResult { custom_id, answer: self.answer(&line) })
    }

    fn answer(&self, line: &Line<'_>) -> Result<ModelResponse> {
        let failed = |json: &RawValue| {
            ProviderError::from_json(&serde_json::from_str(json.get()).unwrap_or_default())
                .into_error(&self.desk.provider.name)
        };
        let answer = |json: &RawValue| self.desk.answer(json.get().as_bytes());
        if let Some(AtAnthropic { r#type, message, error }) = &line.result {
            return match (r#type.as_str(), message, error) {
                ("succeeded", Some(message), _) => answer(message),
                (_, _, Some(error)) => Err(failed(error)),
                ("canceled", ..) => Err(ended(ErrorKind::Cancelled, "the batch was cancelled before")),
                ("expired", ..) => Err(ended(ErrorKind::Timeout, "the batch expired before")),
                _ => Err(protocol(&self.desk.provider.name, "a result is neither an answer nor an error")),
            };
        }
        match (line.error.filter(|error| error.get() != "null"), line.response) {
            (Some(error), None) => Err(self.by_code(error).unwrap_or_else(|| failed(error))),
            (_, Some(response)) => match serde_json::from_str::<AtOpenAi<'_>>(response.get()) {
                Ok(AtOpenAi { status_code, body }) if !(200..300).contains(&status_code) => {
                    let status = StatusCode::from_u16(status_code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                    Err(self.desk.model.codec().decode_error(status, &HeaderMap::new(), body.get().as_bytes()))
                }
                Ok(AtOpenAi { body, .. }) => answer(body),
                Err(_) => answer(response),
            },
            _ => Err(protocol(&self.desk.provider.name, "a result is neither an answer nor an error")),
        }
    }

    /// Maps OpenAI's error code for a request that was not processed to an error.
    fn by_code(&self, error: &RawValue) -> Option<Error> {
        let said: serde_json::Value = serde_json::from_str(error.get()).ok()?;
        match said["code"].as_str()? {
            "batch_expired" => Some(ended(ErrorKind::Timeout, "the batch expired before")),
            "batch_cancelled" => Some(ended(ErrorKind::Cancelled, "the batch was cancelled before")),
            _ => None,
        }
    }
}

fn ended(kind: ErrorKind, why: &'static str) -> Error {
    Error::new(kind, why).with_retry(Retry::Permanent)
}

/// Builds the error for a batch whose results are requested too early.
pub(super) fn not_yet() -> Error {
    Error::new(ErrorKind::Busy, "the batch has not ended: wait for it")
        .with_retry(Retry::Temporary(Some(std::time::Duration::from_secs(60))))
}
