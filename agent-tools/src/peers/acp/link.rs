//! Connection to a program: line-delimited messages over its standard streams.

use std::{sync::Arc, time::Duration};

use agent_core::{Error, ErrorKind, Result};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt, time::timeout};

use super::{
    super::failure::Failure,
    wire::{AUTH_REQUIRED, Envelope, NO_METHOD},
};
use crate::{
    Stdio,
    lines::LineReader,
    program::{Process, Writer},
    text::cut,
};

/// Number of invalid lines that are skipped before the program counts as broken. Package runners
/// write some.
const GARBAGE: usize = 100;

/// Timeout for writing a message to a program.
const WRITE_TIME: Duration = Duration::from_secs(30);

/// Connection to a program, which is killed when this is dropped.
pub(super) struct Link {
    name: Arc<str>,
    lines: LineReader,
    writer: Writer,
    process: Process,
    requests: u64,
    garbage: usize,
}

/// Message from the program.
pub(super) enum Incoming {
    Answer { id: u64, result: Result<Value, Failure> },
    Request { id: Value, method: String, params: Value },
    Notice { method: String, params: Value },
}

impl Link {
    pub(super) fn start(name: &str, program: &Stdio, limit: usize) -> Result<Self> {
        let name: Arc<str> = name.into();
        let (process, (reader, writer)) = Process::start(&name, program)?;
        Ok(Self { name, lines: LineReader::new(reader, limit), writer, process, requests: 0, garbage: 0 })
    }

    pub(super) fn is_alive(&mut self) -> bool {
        self.process.is_running()
    }

    /// Sends a request; returns its id.
    pub(super) async fn request(&mut self, method: &str, params: impl Serialize) -> Result<u64> {
        self.requests += 1;
        let id = self.requests;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await?;
        Ok(id)
    }

    pub(super) async fn notify(&mut self, method: &str, params: impl Serialize) -> Result<()> {
        self.write(&json!({"jsonrpc": "2.0", "method": method, "params": params})).await
    }

    pub(super) async fn answer(&mut self, id: &Value, result: Result<Value, (i64, String)>) -> Result<()> {
        let message = match result {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err((code, message)) => {
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
            }
        };
        self.write(&message).await
    }

    /// Rejects a request of an unknown method.
    pub(super) async fn refuse(&mut self, id: &Value, method: &str) -> Result<()> {
        self.answer(id, Err((NO_METHOD, format!("'{}' is not offered", cut(method, 100))))).await
    }

    /// Sends a request and waits for its response. Notifications meanwhile are discarded, and
    /// requests are rejected.
    pub(super) async fn call<T: DeserializeOwned>(&mut self, method: &str, params: impl Serialize) -> Result<T> {
        let own = self.request(method, params).await?;
        loop {
            match self.next().await? {
                Incoming::Answer { id, result } if id == own => {
                    let result = result.map_err(|e| self.refused(&e))?;
                    return self.read(result);
                }
                Incoming::Request { id, method, .. } => self.refuse(&id, &method).await?,
                _ => {}
            }
        }
    }

    /// Returns the next message. Cancellation safe: a cancelled read loses no data.
    pub(super) async fn next(&mut self) -> Result<Incoming> {
        loop {
            let line = self.lines.next().await.map_err(|e| self.gone(Some(e)))?.ok_or_else(|| self.gone(None))?;
            if line.over.is_some() {
                let message =
                    format!("the agent '{}' sent a message of more than {} bytes", self.name, self.lines.limit);
                return Err(Error::new(ErrorKind::Limit, message));
            }
            match serde_json::from_slice(&line.bytes).ok().and_then(incoming) {
                Some(message) => return Ok(message),
                None if line.bytes.trim_ascii().is_empty() => {}
                None if self.garbage < GARBAGE => self.garbage += 1,
                None => return Err(self.garbled("it writes what is no message of it")),
            }
        }
    }

    /// Deserialises a result of the program.
    pub(super) fn read<T: DeserializeOwned>(&self, value: Value) -> Result<T> {
        serde_json::from_value(value).map_err(|e| self.garbled("an answer has another form").with_source(e))
    }

    /// Returns the error of a request that the program rejected.
    pub(super) fn refused(&self, failure: &Failure) -> Error {
        let (name, said) = (&self.name, cut(&failure.message, 1000));
        match failure.code {
            AUTH_REQUIRED => {
                let message = format!("the agent '{name}' wants to be logged in to first: {said}");
                Error::new(ErrorKind::Authentication, message)
            }
            code => Error::tool(format!("the agent '{name}' failed: {said} ({code})")),
        }
    }

    pub(super) fn garbled(&self, how: &str) -> Error {
        Error::new(ErrorKind::Protocol, format!("the agent '{}' does not keep to its protocol: {how}", self.name))
    }

    fn gone(&self, e: Option<std::io::Error>) -> Error {
        let error = Error::new(ErrorKind::Transport, format!("the agent '{}' ended before it answered", self.name));
        match e {
            Some(e) => error.with_source(e),
            None => error,
        }
    }

    async fn write(&mut self, message: &Value) -> Result<()> {
        let line = format!("{message}\n");
        let write = async {
            self.writer.write_all(line.as_bytes()).await?;
            self.writer.flush().await
        };
        match timeout(WRITE_TIME, write).await {
            Ok(written) => written.map_err(|e| self.gone(Some(e))),
            Err(_) => {
                let message = format!("the agent '{}' does not read what it is sent", self.name);
                Err(Error::new(ErrorKind::Timeout, message))
            }
        }
    }
}

fn incoming(message: Envelope) -> Option<Incoming> {
    Some(match message {
        Envelope { id: Some(id), method: Some(method), params, .. } => Incoming::Request { id, method, params },
        Envelope { id: None, method: Some(method), params, .. } => Incoming::Notice { method, params },
        Envelope { id: Some(id), error: Some(e), .. } => Incoming::Answer { id: id.as_u64()?, result: Err(e) },
        Envelope { id: Some(id), result, .. } => {
            Incoming::Answer { id: id.as_u64()?, result: Ok(result.unwrap_or_default()) }
        }
        _ => return None,
    })
}
