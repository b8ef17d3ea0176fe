//! HTTP+SSE transport of servers that predate streamable HTTP.

use std::{io, sync::Arc, time::Duration};

use futures::TryStreamExt;
use http::{
    HeaderMap,
    header::{ACCEPT, CONTENT_TYPE},
};
use reqwest::Url;
use rmcp::{
    RoleClient,
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use tokio_util::io::StreamReader;

use super::{Http, http::client};
use crate::{
    arguments::numbers,
    lines::{Event, Line, LineReader},
};

/// Time that the server has to announce its message endpoint.
const HELLO: Duration = Duration::from_secs(5);

/// Connection that receives messages as events and sends each in a request.
pub(super) struct Sse {
    server: Arc<str>,
    lines: LineReader,
    event: Event,
    client: reqwest::Client,
    headers: HeaderMap,
    /// Message endpoint.
    to: Url,
}

impl Sse {
    /// Connects, if the server supports this transport.
    pub(super) async fn open(name: Arc<str>, server: &Http, limit: usize) -> Option<Self> {
        let (client, url) = (client().ok()?, Url::parse(&server.url).ok()?);
        let headers: HeaderMap = server.headers().ok()?.into_iter().collect();
        let request = client.get(url.clone()).headers(headers.clone()).header(ACCEPT, "text/event-stream");
        let answer = tokio::time::timeout(HELLO, request.send()).await.ok()?.ok()?.error_for_status().ok()?;
        let kind = answer.headers().get(CONTENT_TYPE)?.to_str().ok()?;
        if !kind.starts_with("text/event-stream") {
            return None;
        }
        let body = StreamReader::new(Box::pin(answer.bytes_stream().map_err(io::Error::other)));
        let lines = LineReader::new(Box::new(body), limit);
        let mut sse = Self { server: name, lines, event: Event::default(), client, headers, to: url.clone() };
        let hello = tokio::time::timeout(HELLO, sse.next()).await.ok()?;
        let Read::Event(event) = hello? else { return None };
        let to = url.join(std::str::from_utf8(&event.data).ok()?).ok()?;
        // The headers of this server must not be sent to another origin.
        (event.name == "endpoint" && to.origin() == url.origin()).then(|| Self { to, ..sse })
    }

    /// Returns the next event or overlong line; `None` at the end.
    async fn next(&mut self) -> Option<Read> {
        loop {
            let line = match self.lines.next().await {
                Ok(line) => line?,
                Err(error) => {
                    tracing::warn!(server = &*self.server, %error, "an MCP server cannot be read from");
                    return None;
                }
            };
            if line.over.is_some() {
                self.event = Event::default();
                return Some(Read::TooLong(line));
            }
            if self.event.push(&line.bytes, self.lines.limit) && !self.event.data.is_empty() {
                return Some(Read::Event(std::mem::take(&mut self.event)));
            }
        }
    }
}

enum Read {
    Event(Event),
    TooLong(Line),
}

impl Transport<RoleClient> for Sse {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let request = self.client.post(self.to.clone()).headers(self.headers.clone());
        let body = numbers::to_json(&item);
        async move {
            let request = request.header(CONTENT_TYPE, "application/json").body(body?);
            let answer = request.send().await.and_then(reqwest::Response::error_for_status);
            // The address may hold a secret.
            answer.map(drop).map_err(|e| io::Error::other(e.without_url()))
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let line = match self.next().await? {
                Read::Event(event) if matches!(&*event.name, "" | "message") => Line { bytes: event.data, over: None },
                Read::Event(_) => continue,
                Read::TooLong(line) => line,
            };
            match line.message(self.lines.limit) {
                Ok(message) => return Some(message),
                Err(why) => tracing::warn!(server = &*self.server, why, "an event of an MCP server is left out"),
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Event;

    #[test]
    fn an_event_ends_at_an_empty_line_and_comments_are_left_out() {
        let mut event = Event::default();
        for line in ["event: message", ": ping", "data: {\"a\":", "data: 1}", "id: 7"] {
            assert!(!event.push(line.as_bytes(), 100), "{line}");
        }
        assert!(event.push(b"\r", 100));
        assert_eq!((&*event.name, &*event.data), ("message", &b"{\"a\":\n1}"[..]));
        let mut long = Event::default();
        long.push(b"data: 0123456789", 4);
        assert_eq!(long.data, b"0123", "bounded");
    }
}
