//! What a line of a cassette holds.

use std::collections::BTreeMap;

use agent_core::{Error, ErrorKind, Result};
use bytes::Bytes;
use http::{Request, Response, response};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Body, redact::Redactor};

/// Headers of an answer that say something to a codec and nothing about the account.
const KEPT_HEADERS: [&str; 6] = ["content-type", "date", "request-id", "retry-after", "retry-after-ms", "x-request-id"];

/// A request and its answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Exchange {
    pub(super) request: Asked,
    pub(super) response: Answered,
}

/// A request, without its headers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Asked {
    pub(super) method: String,
    /// With the query.
    pub(super) path: String,
    /// JSON; a text if it was none.
    pub(super) body: Value,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Answered {
    pub(super) status: u16,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: String,
    /// The body was dropped or broke before its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) cut: bool,
}

impl Asked {
    pub(super) fn of(request: &Request<Bytes>, redactor: &Redactor) -> Self {
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        let body = String::from_utf8_lossy(request.body());
        let body = redactor.redact(&body);
        Self {
            method: request.method().to_string(),
            path: without_key(&redactor.redact(path)),
            body: serde_json::from_str(&body).unwrap_or_else(|_| Value::String(body.into_owned())),
        }
    }
}

/// The path with the value of a `key` in its query taken out.
fn without_key(path: &str) -> String {
    let Some((path, query)) = path.split_once('?') else { return path.to_owned() };
    let fields = query.split('&').map(|field| match field.split_once('=') {
        Some((name @ ("key" | "api_key" | "api-key"), _)) => format!("{name}=redacted"),
        _ => field.to_owned(),
    });
    format!("{path}?{}", fields.collect::<Vec<_>>().join("&"))
}

impl Answered {
    pub(super) fn new(head: &response::Parts, body: &[u8], cut: bool, redactor: &Redactor) -> Self {
        let header = |name: &str| Some((name.to_owned(), head.headers.get(name)?.to_str().ok()?.to_owned()));
        Self {
            status: head.status.as_u16(),
            headers: KEPT_HEADERS.into_iter().filter_map(header).collect(),
            body: redactor.redact(&String::from_utf8_lossy(body)).into_owned(),
            cut,
        }
    }

    pub(super) fn respond(&self) -> Result<Response<Body>> {
        let whole = Ok(Bytes::from(self.body.clone()));
        let broken = Error::new(ErrorKind::Transport, "the recorded answer breaks off here");
        let end = self.cut.then_some(Err(broken));
        let mut response = Response::builder().status(self.status);
        for (name, value) in &self.headers {
            response = response.header(name, value);
        }
        let body = Body::new(futures::stream::iter([whole].into_iter().chain(end)));
        response.body(body).map_err(|e| {
            Error::new(ErrorKind::Store, "the cassette holds a head that HTTP does not allow").with_source(e)
        })
    }
}
