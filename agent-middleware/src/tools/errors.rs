//! [`ToolErrors`]: error messages of tools for the model.

use std::fmt;

use agent_core::{Error, Middleware, Placement, Result, ToolNext, ToolOutput, ToolRequest};
use async_trait::async_trait;

type Format = dyn Fn(&ToolRequest, &Error) -> Option<String> + Send + Sync;

/// Rewrites the error messages of failed tools for the model. Without it, the model receives the
/// error's message.
///
/// The closure receives the call and the error; `None` leaves the error unchanged. Errors that
/// suspend, cancel or end the run are not tool failures and are never passed to it.
///
/// # Order
///
/// ```text
/// // right: the error of the last attempt is rewritten
/// builder.middleware(ToolErrors::new(words)).middleware(ToolRetry::new())
/// // wrong: a rewritten error is an answer, so nothing is retried
/// builder.middleware(ToolRetry::new()).middleware(ToolErrors::new(words))
/// ```
///
/// # Example
///
/// ```
/// use agent_core::ErrorKind;
/// use agent_middleware::ToolErrors;
///
/// let errors = ToolErrors::new(|req, e| match e.kind() {
///     ErrorKind::Timeout => Some(format!("{} took too long. Ask for less.", req.call.name)),
///     _ => None,
/// });
/// # drop(errors);
/// ```
pub struct ToolErrors(Box<Format>);

impl ToolErrors {
    /// Rewrites errors with this function.
    pub fn new(words: impl Fn(&ToolRequest, &Error) -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Box::new(words))
    }
}

#[async_trait]
impl Middleware for ToolErrors {
    fn name(&self) -> &str {
        "tool_errors"
    }

    fn placement(&self) -> Placement {
        Placement::default().outside("tool_retry")
    }

    async fn wrap_tool_call(&self, req: ToolRequest, next: ToolNext<'_>) -> Result<ToolOutput> {
        let call = req.clone();
        match next.run(req).await {
            Err(e) if e.kind().is_model_visible() => match (self.0)(&call, &e) {
                Some(words) => Ok(ToolOutput::error(words)),
                None => Err(e),
            },
            answered => answered,
        }
    }
}

impl fmt::Debug for ToolErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolErrors").finish_non_exhaustive()
    }
}
