//! Transport errors.

use std::{borrow::Cow, error::Error as StdError, io};

use agent_core::{Error, ErrorKind, Retry};

/// Part of an exchange that failed; the error's context key `part`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Part {
    Name,
    Connection,
    Proxy,
    Tls,
    Head,
    Body,
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Connection => "connection",
            Self::Proxy => "proxy",
            Self::Tls => "tls",
            Self::Head => "head",
            Self::Body => "body",
        }
    }
}

/// Builds a temporary transport error.
pub(super) fn failed(part: Part, message: impl Into<Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::Transport, message).with_retry(Retry::Temporary(None)).with_context("part", part.name())
}

/// Builds the error for a server that could not be reached.
pub(super) fn unreachable(part: Part, why: impl AsRef<str>) -> Error {
    failed(part, format!("the provider could not be reached: {}", why.as_ref()))
}

/// Builds the error for a request that was sent at least partly.
pub(super) fn broken_head(e: hyper::Error) -> Error {
    let message = if e.is_parse() {
        "what the provider answered cannot be read as HTTP"
    } else {
        "the connection broke before the answer began"
    };
    failed(Part::Head, message).with_source(e)
}

/// Returns true if an HTTP/2 server states that it did not process the request: it refused the
/// stream, or closed the connection with GOAWAY before it.
pub(super) fn is_refused(e: &hyper::Error) -> bool {
    let said = e.source().and_then(|cause| cause.downcast_ref::<h2::Error>()).filter(|said| said.is_remote());
    said.is_some_and(|said| said.is_go_away() || said.reason() == Some(h2::Reason::REFUSED_STREAM))
}

pub(super) fn broken_body(e: hyper::Error) -> Error {
    if is_cut(&e) {
        return Error::new(ErrorKind::Truncated, "the answer ended before it was complete")
            .with_retry(Retry::Temporary(None))
            .with_context("part", Part::Body.name())
            .with_source(e);
    }
    failed(Part::Body, "the connection broke in the middle of the answer").with_source(e)
}

/// Returns true if the server closed the connection early, as opposed to a connection failure.
fn is_cut(e: &hyper::Error) -> bool {
    let cause = e.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    e.is_incomplete_message() || cause.is_some_and(|cause| cause.kind() == io::ErrorKind::UnexpectedEof)
}

/// Returns the innermost cause, which is the most specific.
pub(super) fn root_cause(e: &(dyn StdError + 'static)) -> String {
    chain(e).last().map_or_else(String::new, ToString::to_string)
}

/// Returns the error and its causes.
pub(super) fn chain<'a>(e: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(e), |&e: &&'a (dyn StdError + 'static)| e.source())
}
