//! Errors of a server, with secrets redacted.

use std::{error::Error as StdError, time::Duration};

use agent_core::{Error, ErrorKind, Result, Retry, RunCx, run::RunDeadline};
use rmcp::{ServiceError, service::ClientInitializeError};
use tokio::time::Instant;

use super::{calls::Progress, endpoint::Kind, settings::Settings};

/// Maximum length of a server's error message, in characters.
const LONGEST: usize = 2000;

/// Converts the error of a request.
pub(super) fn of_request(settings: &Settings, error: ServiceError) -> Error {
    let name = &settings.name;
    let failed = match error {
        ServiceError::McpError(said) => Error::tool(short(&said.message)).with_context("code", said.code.0.to_string()),
        ServiceError::TransportClosed => Error::tool(format!(
            "The server '{name}' went away before it answered. Whether it did what was asked is not known."
        )),
        ServiceError::TransportSend(cause) => {
            // Over HTTP, this includes a response that was lost in transit.
            let failed = Error::tool(format!(
                "The server '{name}' could not be asked, or its answer was lost. Whether it did what was asked is not known."
            ));
            failed.with_context("cause", hidden(settings, &cause))
        }
        other => {
            let failed = Error::tool(format!("The server '{name}' gave no proper answer."));
            failed.with_context("cause", hidden(settings, &other))
        }
    };
    failed.with_context("server", &**name)
}

/// Converts the error of a connection attempt. A program that ended often says why in the last
/// lines of its standard error.
pub(super) fn of_connection(settings: &Settings, error: &ClientInitializeError, last_words: Option<String>) -> Error {
    let message = match (error, last_words) {
        (ClientInitializeError::LegacyFallbackFailed { fallback, .. }, last_words) => {
            return of_connection(settings, fallback, last_words);
        }
        (ClientInitializeError::JsonRpcError(said), _) => format!("the server refused: {}", short(&said.message)),
        _ if wants_to_know_who_asks(error) => {
            "the server wants to know who asks: set OAuth, a bearer token or another header".to_owned()
        }
        (_, Some(last_words)) => format!("the program ended; it wrote last: {last_words}"),
        (ClientInitializeError::ConnectionClosed(_), None) => "the connection was closed before an answer".to_owned(),
        (other, None) => hidden(settings, other),
    };
    Error::new(ErrorKind::Transport, message).with_retry(Retry::Temporary(None))
}

/// Returns true if the server requires authentication.
pub(super) fn wants_to_know_who_asks(error: &ClientInitializeError) -> bool {
    error.is_authorization_required() || error.auth_challenge().is_some()
}

/// Returns the error of an unavailable server, for the model.
pub(super) fn away(settings: &Settings, why: &str, left: Option<Duration>) -> Error {
    let again = left.map(|left| format!(" It is tried again in {} seconds.", left.as_secs() + 1)).unwrap_or_default();
    let message = format!("The server '{}' cannot be reached: {why}.{again}", settings.name);
    Error::tool(message).with_context("server", &*settings.name).with_retry(Retry::Temporary(left))
}

/// Runs a request with the timeout `most`, until the run is cancelled or past its deadline.
pub(super) async fn within<T>(
    settings: &Settings,
    cx: Option<&RunCx>,
    most: Duration,
    request: impl Future<Output = Result<T>>,
) -> Result<T> {
    within_progress(settings, cx, most, &Progress::default(), request).await
}

/// Longest time of a request with progress, in timeouts.
const TIMEOUTS: u32 = 10;

/// As [`within`]; each report of progress starts the time anew, up to ten times `most` in all.
pub(super) async fn within_progress<T>(
    settings: &Settings,
    cx: Option<&RunCx>,
    most: Duration,
    progress: &Progress,
    request: impl Future<Output = Result<T>>,
) -> Result<T> {
    let left = cx.and_then(RunCx::deadline).map(RunDeadline::left);
    let longest = most.saturating_mul(TIMEOUTS);
    let longest = left.map_or(longest, |left| left.min(longest));
    let cancelled = async {
        match cx {
            Some(cx) => cx.cancellation().cancelled().await,
            None => std::future::pending().await,
        }
    };
    let began = Instant::now();
    let late = async {
        let (mut waits, mut is_extended) = (most.min(longest), false);
        // Each report starts the time anew, and may come before it is waited for.
        while tokio::time::timeout(waits, progress.0.notified()).await.is_ok() {
            waits = most.min(longest.saturating_sub(began.elapsed()));
            is_extended = true;
        }
        is_extended
    };
    tokio::select! {
        answer = request => answer,
        () = cancelled => Err(Error::new(ErrorKind::Cancelled, "the run was cancelled")),
        is_extended = late => {
            let tenths = Duration::from_millis(u64::try_from(began.elapsed().as_millis() / 100 * 100).unwrap_or(u64::MAX));
            let seconds = if is_extended { tenths } else { most.min(longest) }.as_secs_f64();
            let message = format!("The server '{}' did not answer within {seconds} seconds.", settings.name);
            Err(Error::tool(message).with_context("server", &*settings.name))
        }
    }
}

/// Formats an error with its causes, without the secret parts of the server's address.
fn hidden(settings: &Settings, error: &(dyn StdError + 'static)) -> String {
    let (mut text, mut next) = (error.to_string(), error.source());
    while let Some(error) = next {
        let said = error.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        next = error.source();
    }
    if let Kind::Http(server) = &settings.endpoint.0
        && let Ok(url) = reqwest::Url::parse(&server.url)
    {
        let secret = [url.query(), url.password(), Some(url.username()).filter(|name| !name.is_empty())];
        text = secret.into_iter().flatten().fold(text, |text, secret| text.replace(secret, "..."));
    }
    short(plain(&text))
}

/// Removes what the client library puts around an error: `Send message error Transport [types]
/// error: ..., when send initialize request`.
fn plain(text: &str) -> &str {
    let inner = text
        .split_once("] error: ")
        .filter(|(before, _)| before.contains("Transport ["))
        .map_or(text, |(_, rest)| rest);
    inner.rsplit_once(", when ").map_or(inner, |(before, _)| before)
}

/// Truncates a text.
pub(super) fn short(text: &str) -> String {
    cut(text, LONGEST)
}

/// Returns the first `most` characters of a text.
pub(super) fn cut(text: &str, most: usize) -> String {
    text.char_indices().nth(most).map_or_else(|| text.to_owned(), |(end, _)| format!("{}..", &text[..end]))
}
