//! The error type of this crate. Callers branch on [`ErrorKind`] and [`Retry`], never on message
//! text.
//!
//! ```
//! use agent_core::{
//!     Error,
//!     error::{ErrorKind, Retry},
//! };
//!
//! let error = Error::new(ErrorKind::Overloaded, "the provider is busy").with_context("provider", "acme");
//! assert_eq!((error.kind(), error.context("provider")), (ErrorKind::Overloaded, Some("acme")));
//! assert!(error.is_retryable() && !error.with_retry(Retry::Permanent).is_retryable());
//! ```

use std::{any::Any, borrow::Cow, fmt, time::Duration};

use serde::{Deserialize, Serialize};

/// Error type of tower layers: any error, boxed.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// `std::result::Result` with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Class of an error, on which callers and layers act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    // --- the model's side ---
    /// The conversation exceeds the model's context window. Triggers compaction.
    ContextOverflow,
    /// The provider limits the rate of calls; [`Error::retry`] contains the requested delay, if
    /// there is one.
    RateLimited,
    /// The provider, or a standard `load_shed` layer, has no capacity now.
    Overloaded,
    /// The credentials were rejected.
    Authentication,
    /// The account has no credit or quota left.
    Quota,
    /// The provider rejected the request; repeating it unchanged cannot succeed.
    InvalidRequest,
    /// The provider withheld the answer for its content, or a middleware blocked content.
    ContentFiltered,
    /// The stream ended before its terminal event.
    Truncated,
    /// A timeout expired: of a call, of a standard `timeout` layer, or between two chunks.
    Timeout,
    /// The connection failed or broke.
    Transport,
    /// The provider's answer violates its protocol.
    Protocol,
    /// The provider failed internally (HTTP 5xx).
    Provider,
    /// The model's answer does not have the required form, even after a correction was requested.
    InvalidAnswer,

    // --- the agent's side ---
    /// A tool failed; the model receives the error.
    Tool,
    /// Arguments of a call do not match the tool's schema; the model receives the error.
    InvalidArguments,
    /// No sub-agent is registered under that key; the message lists the registered ones.
    SubAgentNotFound,
    /// A hook or a layer panicked, or a hook failed. The context key `middleware` contains the name
    /// of the hook's middleware.
    Middleware,
    /// The configuration is invalid; the message describes the required change.
    Config,
    /// A history would contain an unpaired call or result.
    History,
    /// A limit or a budget is exhausted.
    Limit,
    /// The run was requested to stop; the message is the reason.
    Stopped,
    /// The run was cancelled.
    Cancelled,
    /// Not a failure: the run is suspended until a question is answered.
    Interrupted,
    /// An answer was refused; [`Refusal::of`](crate::run::Refusal::of) returns the reason. The run
    /// keeps waiting.
    AnswerRefused,
    /// Another run holds this (session, agent) pair.
    Busy,
    /// The checkpoint is older than the run's state in its session's journal, or a run with this id
    /// already exists.
    Stale,
    /// The journal or another store failed.
    Store,
    /// A replayed run diverged from its journal.
    NonDeterminism,
    /// A bug, or an error of a foreign layer.
    Unexpected,
}

/// Retry advice of an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Retry {
    /// Repeating cannot succeed.
    Permanent,
    /// Repeating may succeed, after the delay if there is one.
    Temporary(Option<Duration>),
    /// Unknown.
    #[default]
    Unknown,
}

/// Error type of this framework; one word in size.
///
/// ```
/// use agent_core::{Error, ErrorKind, Retry};
///
/// let e = Error::new(ErrorKind::RateLimited, "slow down")
///     .with_retry(Retry::Temporary(Some(std::time::Duration::from_secs(7))))
///     .with_context("provider", "acme");
/// assert!(e.is_retryable());
/// assert_eq!(e.context("provider"), Some("acme"));
/// assert_eq!(e.to_string(), "rate limited: slow down (provider: acme)");
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    message: Cow<'static, str>,
    retry: Retry,
    context: Vec<(Cow<'static, str>, String)>,
    /// Suspension of the run; opaque except to `state::suspension`.
    suspension: Option<Box<dyn Any + Send + Sync>>,
    source: Option<BoxError>,
}

impl Error {
    /// Creates an error of `kind` with the [retry advice](ErrorKind::retry) of that kind. `message`
    /// is for people and models: it must not contain secrets or stack traces.
    pub fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            retry: kind.retry(),
            context: Vec::new(),
            suspension: None,
            source: None,
        }))
    }

    /// Creates the error of a panic in `who`. The panic message becomes the source: for logs, not
    /// for models.
    pub fn from_panic(kind: ErrorKind, who: &str, panic: Box<dyn Any + Send>) -> Self {
        let e = Self::new(kind, format!("{who} panicked"));
        match panic.downcast::<String>() {
            Ok(said) => e.with_source(*said),
            Err(panic) => match panic.downcast::<&str>() {
                Ok(said) => e.with_source(*said),
                Err(_) => e,
            },
        }
    }

    /// Creates a tool error, whose message the model receives.
    pub fn tool(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::Tool, message)
    }

    /// Creates an error for an invalid configuration.
    pub fn config(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::Config, message)
    }

    /// Sets the retry advice.
    #[must_use]
    pub fn with_retry(mut self, retry: Retry) -> Self {
        self.0.retry = retry;
        self
    }

    /// Changes the message and keeps everything else.
    #[must_use]
    pub fn map_message(mut self, change: impl FnOnce(&str) -> String) -> Self {
        self.0.message = change(&self.0.message).into();
        self
    }

    /// Adds context. Context is for people and logs and never sent to a model; it must not contain
    /// secrets either.
    #[must_use]
    pub fn with_context(mut self, key: impl Into<Cow<'static, str>>, value: impl Into<String>) -> Self {
        self.0.context.push((key.into(), value.into()));
        self
    }

    /// Sets the source error.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Converts the error of a tower layer back to this type.
    ///
    /// An [`Error`] passes unchanged. `tower::timeout` becomes [`ErrorKind::Timeout`],
    /// `tower::load_shed` becomes [`ErrorKind::Overloaded`], both temporary; anything else is
    /// [`ErrorKind::Unexpected`].
    pub fn from_boxed(error: BoxError) -> Self {
        let error = match error.downcast::<Self>() {
            Ok(own) => return *own,
            Err(other) => other,
        };
        // A `buffer` layer returns the service's error behind a shared pointer, so the kind is
        // copied.
        if let Some(own) = std::iter::successors(Some(&*error as &(dyn std::error::Error + 'static)), |e| e.source())
            .find_map(|e| e.downcast_ref::<Self>())
        {
            return Self::new(own.kind(), own.0.message.clone()).with_retry(own.retry()).with_source(error);
        }
        let (kind, retry) = if error.is::<tower::timeout::error::Elapsed>() {
            (ErrorKind::Timeout, Retry::Temporary(None))
        } else if error.is::<tower::load_shed::error::Overloaded>() {
            (ErrorKind::Overloaded, Retry::Temporary(None))
        } else {
            (ErrorKind::Unexpected, Retry::Unknown)
        };
        Self::new(kind, error.to_string()).with_retry(retry).with_source(error)
    }

    /// The kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The retry advice of the error.
    pub fn retry(&self) -> Retry {
        self.0.retry
    }

    /// True if repeating the operation may succeed, according to [`retry`](Self::retry).
    pub fn is_retryable(&self) -> bool {
        matches!(self.0.retry, Retry::Temporary(_))
    }

    /// The message without context and source: the text that a model receives.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The newest context value under `key`.
    pub fn context(&self, key: &str) -> Option<&str> {
        self.0.context.iter().rev().find(|(k, _)| *k == key).map(|(_, v)| v.as_str())
    }

    /// All context values, oldest first.
    pub(crate) fn contexts(&self) -> &[(Cow<'static, str>, String)] {
        &self.0.context
    }

    /// The suspension of the run, if there is one.
    pub(crate) fn suspension(&self) -> Option<&(dyn Any + Send + Sync)> {
        self.0.suspension.as_deref()
    }

    /// Like [`suspension`](Self::suspension), mutable.
    pub(crate) fn suspension_mut(&mut self) -> &mut Option<Box<dyn Any + Send + Sync>> {
        &mut self.0.suspension
    }
}

impl ErrorKind {
    /// The retry advice of an error of this kind that states none: [`Retry::Temporary`] for rate
    /// limits, overload, timeouts, failed connections, cut streams and failures of the provider,
    /// otherwise [`Retry::Unknown`].
    ///
    /// ```
    /// use agent_core::{Error, ErrorKind};
    ///
    /// assert!(Error::new(ErrorKind::Timeout, "no answer within 5 s").is_retryable());
    /// assert!(!Error::new(ErrorKind::InvalidRequest, "unknown model").is_retryable());
    /// ```
    pub fn retry(self) -> Retry {
        match self {
            Self::RateLimited
            | Self::Overloaded
            | Self::Truncated
            | Self::Timeout
            | Self::Transport
            | Self::Provider => Retry::Temporary(None),
            _ => Retry::Unknown,
        }
    }

    /// True if the model receives a tool's error of this kind and can handle it. Errors of other
    /// kinds end or suspend the run: layers must return them unchanged.
    pub fn is_model_visible(self) -> bool {
        !matches!(
            self,
            Self::Interrupted
                | Self::Cancelled
                | Self::Stopped
                | Self::Middleware
                | Self::Config
                | Self::History
                | Self::Limit
                | Self::Busy
                | Self::Store
                | Self::NonDeterminism
        )
    }

    /// False for errors that suspend, stop or cancel the run: layers must return them unchanged.
    pub fn is_failure(self) -> bool {
        !matches!(self, Self::Interrupted | Self::Cancelled | Self::Stopped)
    }

    /// The kind in words, with which [`Error`]'s `Display` output begins.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ContextOverflow => "context overflow",
            Self::RateLimited => "rate limited",
            Self::Overloaded => "overloaded",
            Self::Authentication => "authentication",
            Self::Quota => "quota",
            Self::InvalidRequest => "invalid request",
            Self::ContentFiltered => "content filtered",
            Self::Truncated => "truncated stream",
            Self::Timeout => "timeout",
            Self::Transport => "transport",
            Self::Protocol => "protocol",
            Self::Provider => "provider",
            Self::InvalidAnswer => "invalid answer",
            Self::Tool => "tool",
            Self::InvalidArguments => "invalid arguments",
            Self::SubAgentNotFound => "sub-agent not found",
            Self::Middleware => "middleware",
            Self::Config => "configuration",
            Self::History => "history",
            Self::Limit => "limit",
            Self::Stopped => "stopped",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
            Self::AnswerRefused => "answer refused",
            Self::Busy => "busy",
            Self::Stale => "out of date",
            Self::Store => "store",
            Self::NonDeterminism => "non-determinism",
            Self::Unexpected => "unexpected",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.kind, self.0.message)?;
        for (i, (key, value)) in self.0.context.iter().enumerate() {
            write!(f, "{}{key}: {value}", if i == 0 { " (" } else { ", " })?;
        }
        if self.0.context.is_empty() { Ok(()) } else { f.write_str(")") }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)?;
        let mut source = std::error::Error::source(self);
        while let Some(cause) = source {
            write!(f, "\n  caused by: {cause}")?;
            source = cause.source();
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|e| e as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_word_wide() {
        assert_eq!(size_of::<Error>(), size_of::<usize>());
    }

    #[test]
    fn an_own_error_survives_boxing_with_everything_it_carries() {
        let e = Error::new(ErrorKind::Quota, "no credit").with_context("account", "7");
        let back = Error::from_boxed(Box::new(e));
        assert_eq!((back.kind(), back.context("account")), (ErrorKind::Quota, Some("7")));
    }
}
