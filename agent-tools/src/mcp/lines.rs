//! Line-delimited messages: the stdio transport, with a length limit.

use std::{io, sync::Arc};

use rmcp::{
    RoleClient,
    model::{ErrorCode, ErrorData, JsonRpcMessage, NumberOrString},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use tokio::{io::AsyncWriteExt, sync::Mutex};

use super::lenient;

use crate::{
    arguments::numbers,
    lines::{Line, LineReader},
    program::{Process, Reader, Writer},
};

/// Message stream of a server. An overlong or invalid line fails only its own request.
pub(super) struct Lines {
    server: Arc<str>,
    lines: LineReader,
    writer: Arc<Mutex<Option<Writer>>>,
    /// Process that ends with the connection.
    process: Option<Process>,
}

impl Line {
    /// Parses the message in the line; the error describes why it is invalid.
    pub(super) fn message(&self, limit: usize) -> Result<RxJsonRpcMessage<RoleClient>, String> {
        let (id, why) = match &self.over {
            None => match lenient::parse(&self.bytes) {
                Ok(message) => return Ok(message),
                Err(e) => (self.id_of_answer(), format!("the answer is not a message of the protocol: {e}")),
            },
            Some((length, end)) => {
                (id_at_the_beginning(&self.bytes).or_else(|| id_at_the_end(end)), too_large(*length, limit))
            }
        };
        let id = id.ok_or_else(|| why.clone())?;
        let error = ErrorData::new(ErrorCode::INTERNAL_ERROR, why, None);
        Ok(JsonRpcMessage::error(error, Some(NumberOrString::Number(id))))
    }

    fn id_of_answer(&self) -> Option<i64> {
        let Ok(answer) = lenient::value(&self.bytes) else {
            // What can still be found is enough to end its request.
            return id_at_the_beginning(&self.bytes).or_else(|| id_at_the_end(&self.bytes));
        };
        let is_answer = answer.get("result").is_some() || answer.get("error").is_some();
        answer.get("id")?.as_i64().filter(|_| is_answer)
    }
}

/// Describes why a response of `length` bytes is rejected.
pub(super) fn too_large(length: usize, limit: usize) -> String {
    format!("The answer has {length} bytes, and the limit is {limit}. Ask for less of it.")
}

/// Finds the id at the beginning of a response, before its result.
fn id_at_the_beginning(bytes: &[u8]) -> Option<i64> {
    let text = String::from_utf8_lossy(bytes);
    let head = &text[..text.find("\"result\"").or_else(|| text.find("\"error\""))?];
    number(&head[head.find("\"id\"")? + 4..]).map(|(id, _)| id)
}

/// Finds the id at the end of a response, after its result.
fn id_at_the_end(bytes: &[u8]) -> Option<i64> {
    let text = String::from_utf8_lossy(bytes);
    let (id, rest) = number(&text[text.rfind("\"id\"")? + 4..])?;
    let rest: String = rest.chars().filter(|c| !c.is_whitespace()).collect();
    matches!(&*rest, "}" | r#","jsonrpc":"2.0"}"#).then_some(id)
}

/// Parses a colon and a number; returns the rest.
fn number(text: &str) -> Option<(i64, &str)> {
    let text = text.trim_start().strip_prefix(':')?.trim_start();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

impl Lines {
    pub(super) fn new(server: Arc<str>, (reader, writer): (Reader, Writer), limit: usize) -> Self {
        let (lines, writer) = (LineReader::new(reader, limit), Arc::new(Mutex::new(Some(writer))));
        Self { server, lines, writer, process: None }
    }

    pub(super) fn of(mut self, process: Process) -> Self {
        self.process = Some(process);
        self
    }
}

impl Transport<RoleClient> for Lines {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let writer = self.writer.clone();
        async move {
            let line = numbers::to_json(&item)? + "\n";
            let mut writer = writer.lock().await;
            let writer = writer.as_mut().ok_or(io::ErrorKind::NotConnected)?;
            writer.write_all(line.as_bytes()).await?;
            writer.flush().await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let line = match self.lines.next().await {
                Ok(line) => line?,
                Err(error) => {
                    tracing::warn!(server = &*self.server, %error, "an MCP server cannot be read from");
                    return None;
                }
            };
            if line.over.is_none() && line.bytes.trim_ascii().is_empty() {
                continue;
            }
            match line.message(self.lines.limit) {
                Ok(message) => return Some(message),
                Err(why) => tracing::warn!(server = &*self.server, why, "a line of an MCP server is left out"),
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        drop(self.writer.lock().await.take());
        if let Some(process) = self.process.take() {
            process.end().await;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::ENDS;

    fn answer(text: &str, limit: usize) -> Option<i64> {
        let mut line = Line::default();
        text.as_bytes().chunks(100).for_each(|chunk| line.push(chunk, limit));
        assert!(line.bytes.len() <= limit.max(ENDS), "bounded");
        match line.message(limit) {
            Ok(JsonRpcMessage::Error(error)) => match error.id {
                Some(NumberOrString::Number(id)) => Some(id),
                _ => None,
            },
            _ => None,
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_an_error_of_its_request() {
        let long = "x".repeat(10_000);
        let first = format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"content":[{{"id":9,"text":"{long}"}}]}}}}"#);
        assert_eq!(answer(&first, 1000), Some(7));
        let last = format!(r#"{{"result":{{"content":[{{"id":9,"text":"{long}"}}]}},"jsonrpc":"2.0","id": 8}}"#);
        assert_eq!(answer(&last, 1000), Some(8));
        let none = format!(r#"{{"result":{{"text":"{long}","a":[{{"id":9}}]}}}}"#);
        assert_eq!(answer(&none, 1000), None, "an id of something else is not taken for the request's");
    }

    #[test]
    fn an_answer_that_is_none_of_the_protocol_is_an_error_of_its_request_and_other_garbage_is_left_out() {
        assert_eq!(answer(r#"{"jsonrpc":"2.0","id":3,"error":"no"}"#, 1000), Some(3));
        assert_eq!(answer(r#"{"jsonrpc":"2.0","id":4,"result":{"a":bad}}"#, 1000), Some(4), "found by scanning");
        assert_eq!(answer(r#"{"result":{"a":"bad},"jsonrpc":"2.0","id":5}"#, 1000), Some(5));
        assert_eq!(answer("Listening on port 3000", 1000), None);
        assert_eq!(answer(r#"{"id":3,"log":"hello"}"#, 1000), None);
    }
}
