//! HTTP client of an A2A agent.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use agent_core::{Error, ErrorKind, Result, Retry};
use reqwest::{
    Method,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use tokio::time::timeout;
use url::Url;

use super::{
    binding::{Binding, Operation, Request, Target, Version},
    wire::{Reply, Told},
};
use crate::{
    http::{Call, Exchange, Http, TooMuch, host, redacted},
    lines::{Event, LineReader},
    text::cut,
};

/// JSON-RPC error code of an unknown task.
const NO_TASK: i64 = -32001;

/// HTTP client of an A2A agent.
#[derive(Clone, Debug)]
pub(super) struct Client {
    pub(super) http: Http,
    pub(super) headers: HeaderMap,
    /// Timeout of one request, and between two events of a stream.
    pub(super) patience: Duration,
    /// Maximum size in bytes of a response, and of all events of a stream.
    pub(super) bytes: usize,
    /// Header values, redacted in everything that the agent sends.
    pub(super) secrets: Secrets,
}

/// Values that are redacted wherever they appear.
#[derive(Clone, Default)]
pub(super) struct Secrets(pub(super) Arc<[String]>);

impl Secrets {
    /// Parses JSON, with the secrets redacted.
    fn parse<T: DeserializeOwned>(&self, host: &str, bytes: &[u8]) -> Result<T> {
        let secrets: Vec<_> = self.0.iter().map(String::as_str).collect();
        let parsed = match secrets.is_empty() {
            true => serde_json::from_slice(bytes),
            false => serde_json::from_str(&redacted(&String::from_utf8_lossy(bytes), &secrets)),
        };
        parsed.map_err(|e| garbage(host, e))
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} values", self.0.len())
    }
}

/// Events of an agent's stream.
pub(super) struct Events {
    target: Target,
    operation: Operation,
    host: String,
    lines: LineReader,
    over: Arc<AtomicBool>,
    event: Event,
    secrets: Secrets,
}

/// Response: a single result or a stream.
pub(super) enum Answer {
    Whole(Told),
    Events(Events),
}

impl Client {
    /// Returns a client whose requests carry this trace context.
    pub(super) fn in_trace(&self, trace: Option<&str>) -> Self {
        let mut client = self.clone();
        if let Some(trace) = trace.and_then(|trace| HeaderValue::from_str(trace).ok()) {
            client.headers.insert("traceparent", trace);
        }
        client
    }

    /// Fetches a document of the agent.
    pub(super) async fn get<T: DeserializeOwned>(&self, url: &Url) -> Result<T> {
        let read = async {
            let request = Request { method: Method::GET, url: url.clone(), body: None };
            let exchange = self.send(request, None, "application/json").await?;
            self.json(exchange).await
        };
        self.in_time(url, read).await
    }

    /// Calls an operation and waits for its result. `None` if the agent does not know the task.
    pub(super) async fn call<T: DeserializeOwned>(
        &self,
        target: &Target,
        operation: Operation,
        params: Value,
    ) -> Result<Option<T>> {
        let called = async {
            let request = target.request(operation, params)?;
            match self.known(target, request, "application/json").await? {
                Some(exchange) => self.result(target, operation, exchange).await,
                None => Ok(None),
            }
        };
        self.in_time(&target.endpoint, called).await
    }

    /// Calls an operation with a streaming response. An agent may still respond with a single result.
    pub(super) async fn stream(&self, target: &Target, operation: Operation, params: Value) -> Result<Option<Answer>> {
        let url = &target.endpoint;
        let called = async {
            let request = target.request(operation, params)?;
            let Some(exchange) = self.known(target, request, "text/event-stream").await? else { return Ok(None) };
            if !exchange.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream")) {
                return Ok(self.result(target, operation, exchange).await?.map(Answer::Whole));
            }
            let (reader, over) = exchange.body.reader(self.bytes).map_err(|e| unread(url, e, self.bytes))?;
            let lines = LineReader::new(Box::new(reader), self.bytes);
            Ok(Some(Answer::Events(Events {
                target: target.clone(),
                operation,
                host: host(url),
                lines,
                over,
                event: Event::default(),
                secrets: self.secrets.clone(),
            })))
        };
        self.in_time(url, called).await
    }

    /// Sends a request; `None` if the agent does not know what its path names.
    async fn known(&self, target: &Target, request: Request, accept: &'static str) -> Result<Option<Exchange>> {
        match self.send(request, Some(target), accept).await {
            Err(error) if target.binding == Binding::Http && is_not_found(&error) => Ok(None),
            sent => sent.map(Some),
        }
    }

    async fn send(&self, request: Request, target: Option<&Target>, accept: &'static str) -> Result<Exchange> {
        let mut headers = self.headers.clone();
        let over_http = target.is_some_and(|target| target.binding == Binding::Http);
        let kind = if over_http { "application/a2a+json" } else { "application/json" };
        let accept = if over_http && accept == "application/json" { kind } else { accept };
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        if target.is_some_and(|target| target.version == Version::V10) {
            headers.insert("a2a-version", HeaderValue::from_static("1.0"));
        }
        let Request { method, url, body } = request;
        let body = body.map(|body| body.to_string().into_bytes());
        let exchange = self.http.send(Call { method, url: url.clone(), headers, body }).await?;
        if exchange.status.is_success() {
            return Ok(exchange);
        }
        let (status, retry) = (exchange.status, exchange.retry());
        let kind = match status.as_u16() {
            401 | 403 => ErrorKind::Authentication,
            _ => ErrorKind::Tool,
        };
        // The response body is not repeated, since it may contain the secret that was sent.
        let message = format!("the agent at '{}' answered {status}", host(&url));
        Err(Error::new(kind, message).with_retry(retry).with_context(STATUS, status.as_str()))
    }

    /// Reads the result of an operation.
    async fn result<T: DeserializeOwned>(
        &self,
        target: &Target,
        operation: Operation,
        exchange: Exchange,
    ) -> Result<Option<T>> {
        let host = host(&exchange.url);
        read(&host, target, operation, self.json(exchange).await?)
    }

    async fn json<T: DeserializeOwned>(&self, exchange: Exchange) -> Result<T> {
        let url = exchange.url;
        let bytes = exchange.body.read(self.bytes).await.map_err(|e| unread(&url, e, self.bytes))?;
        self.secrets.parse(&host(&url), &bytes)
    }

    async fn in_time<T>(&self, url: &Url, work: impl Future<Output = Result<T>>) -> Result<T> {
        let late = |_| {
            let message = format!("the agent at '{}' gave no answer within {:?}", host(url), self.patience);
            Err(Error::new(ErrorKind::Timeout, message).with_retry(Retry::Temporary(None)))
        };
        timeout(self.patience, work).await.unwrap_or_else(late)
    }
}

impl Events {
    /// Returns the next event; `None` at the end.
    pub(super) async fn next(&mut self, patience: Duration) -> Result<Option<Told>> {
        let read = timeout(patience, self.read()).await;
        read.unwrap_or_else(|_| {
            let message = format!("the agent at '{}' said nothing for {patience:?}", self.host);
            Err(Error::new(ErrorKind::Timeout, message))
        })
    }

    async fn read(&mut self) -> Result<Option<Told>> {
        loop {
            let line = match self.lines.next().await {
                Ok(Some(line)) => line,
                Ok(None) => return Ok(None),
                Err(_) if self.over.load(Ordering::Relaxed) => return Err(too_large(&self.host, self.lines.limit)),
                Err(e) => {
                    let message = format!("the agent at '{}' broke its stream off", self.host);
                    return Err(Error::new(ErrorKind::Transport, message).with_source(e));
                }
            };
            if line.over.is_some() {
                return Err(too_large(&self.host, self.lines.limit));
            }
            if self.event.push(&line.bytes, self.lines.limit) && !self.event.data.is_empty() {
                let data = std::mem::take(&mut self.event).data;
                return read(&self.host, &self.target, self.operation, self.secrets.parse(&self.host, &data)?);
            }
        }
    }
}

/// Reads an answer or an event of a stream.
fn read<T: DeserializeOwned>(host: &str, target: &Target, operation: Operation, answer: Value) -> Result<Option<T>> {
    let answer = match target.binding {
        Binding::Http => answer,
        Binding::JsonRpc => match Reply::deserialize(answer).map_err(|e| garbage(host, e))? {
            Reply { error: Some(error), .. } if error.code == NO_TASK => return Ok(None),
            Reply { error: Some(error), .. } => {
                let message = format!("the agent at '{host}' refused: {} ({})", cut(&error.message, 500), error.code);
                return Err(Error::tool(message));
            }
            Reply { result, .. } => result.unwrap_or_default(),
        },
    };
    T::deserialize(target.normal(operation, answer)).map(Some).map_err(|e| garbage(host, e))
}

/// Name of the context of an error that holds the HTTP status.
const STATUS: &str = "status";

fn is_not_found(error: &Error) -> bool {
    error.context(STATUS) == Some("404")
}

fn garbage(host: &str, e: serde_json::Error) -> Error {
    Error::new(ErrorKind::Protocol, format!("what the agent at '{host}' sent is not of its protocol")).with_source(e)
}

fn too_large(host: &str, most: usize) -> Error {
    Error::new(ErrorKind::Limit, format!("the agent at '{host}' sent more than {most} bytes"))
}

fn unread(url: &Url, e: TooMuch, most: usize) -> Error {
    let broken =
        |how: &str| Error::new(ErrorKind::Transport, format!("the answer of the agent at '{}' {how}", host(url)));
    match e {
        TooMuch::Large => too_large(&host(url), most),
        TooMuch::Broken(e) => broken("broke off").with_source(e),
        TooMuch::Encoding(name) => broken(&format!("is encoded as '{name}', which cannot be read")),
    }
}
