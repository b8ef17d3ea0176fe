//! Incoming responses.

use std::time::Duration;

use agent_core::{Error, ErrorKind, Result, Retry};
use bytes::{Buf, Bytes};
use futures::StreamExt;
use http::{HeaderMap, header};
use tokio::time::{Instant, timeout_at};

use super::idle_timeout::IdleTimeout;
use crate::{Body, error::web_page, framing::BYTE_ORDER_MARK};

/// Maximum number of bytes read from an error response.
const MOST_OF_AN_ERROR: usize = 64 << 10;

/// Maximum wait for details after a complete answer, and for the body of an error response.
pub(super) const DETAILS: Duration = Duration::from_secs(10);

/// Form of a successful response.
pub(super) enum Form {
    Stream,
    Whole,
    /// Compressed with an encoding that the transport does not support.
    Encoded(String),
    WebPage,
}

impl Form {
    pub(super) fn of(headers: &HeaderMap, asked_to_stream: bool) -> Self {
        let is = |name, value: &[u8]| {
            headers
                .get(name)
                .is_some_and(|v| v.as_bytes().get(..value.len()).is_some_and(|v| v.eq_ignore_ascii_case(value)))
        };
        let encoding = headers.get(header::CONTENT_ENCODING).map(|how| String::from_utf8_lossy(how.as_bytes()));
        if let Some(how) = encoding.filter(|how| !how.eq_ignore_ascii_case("identity")) {
            Self::Encoded(how.chars().take(40).collect())
        } else if is(header::CONTENT_TYPE, b"text/event-stream") {
            Self::Stream
        } else if is(header::CONTENT_TYPE, b"text/html") {
            Self::WebPage
        } else if asked_to_stream && !is(header::CONTENT_TYPE, b"application/json") {
            Self::Stream
        } else {
            Self::Whole
        }
    }

    /// Returns true if the answer comes whole, false if it is a stream.
    ///
    /// # Errors
    /// [`ErrorKind::Protocol`], permanent.
    pub(super) fn comes_whole(self, provider: &str) -> Result<bool> {
        match self {
            Self::Stream => Ok(false),
            Self::Whole => Ok(true),
            Self::Encoded(how) => Err(Error::new(
                ErrorKind::Protocol,
                format!("the answer is compressed as '{how}', which cannot be read"),
            )
            .with_retry(Retry::Permanent)),
            Self::WebPage => Err(web_page(provider)),
        }
    }
}

/// A body with an idle timeout and a size limit.
pub(crate) struct Incoming {
    pub(super) body: Body,
    pub(super) idle_timeout: IdleTimeout,
    pub(super) left: usize,
}

impl Incoming {
    /// Removes the size limit.
    #[must_use]
    pub(crate) fn unbounded(mut self) -> Self {
        self.left = usize::MAX;
        self
    }

    pub(crate) async fn next(&mut self) -> Option<Result<Bytes>> {
        let next = self.idle_timeout.wait(self.body.next()).await;
        self.idle_timeout.heard();
        match next {
            Ok(Some(Ok(bytes))) => match self.left.checked_sub(bytes.len()) {
                Some(left) => {
                    self.left = left;
                    Some(Ok(bytes))
                }
                None => Some(Err(Error::new(ErrorKind::Protocol, "the answer is longer than max_answer allows")
                    .with_retry(Retry::Permanent))),
            },
            Ok(end_or_error) => end_or_error,
            Err(silent) => Some(Err(silent)),
        }
    }

    /// Reads the body as text.
    pub(crate) async fn whole(&mut self) -> Result<Bytes> {
        Ok(without_mark(self.all().await?))
    }

    /// Reads all bytes of the body.
    pub(crate) async fn all(&mut self) -> Result<Bytes> {
        let Some(first) = self.next().await.transpose()? else { return Ok(Bytes::new()) };
        let Some(second) = self.next().await.transpose()? else { return Ok(first) };
        let mut all = [first, second].concat();
        while let Some(more) = self.next().await.transpose()? {
            all.extend_from_slice(&more);
        }
        Ok(all.into())
    }

    /// Reads the beginning of the body, as far as it arrives in time.
    pub(super) async fn start(&mut self) -> Bytes {
        let (mut all, until) = (Vec::new(), Instant::now() + DETAILS);
        while all.len() < MOST_OF_AN_ERROR
            && let Ok(Some(Ok(more))) = timeout_at(until, self.next()).await
        {
            all.extend_from_slice(&more);
        }
        without_mark(all.into())
    }
}

/// Removes the byte order mark that some gateways prepend.
fn without_mark(mut text: Bytes) -> Bytes {
    if text.starts_with(BYTE_ORDER_MARK) {
        text.advance(BYTE_ORDER_MARK.len());
    }
    text
}
