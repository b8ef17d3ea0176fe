//! Tools: actions that a model can request.
//!
//! Tool authors implement [`Tool`], or [`Toolset`] if the tools are not known in advance;
//! [`ToolOptions`] configure the execution of a tool, most importantly its [`Effect`]: the
//! consequence of repeating a call. Hooks receive calls as [`ToolRequest`]s, and the calls of one
//! answer as a [`ToolBatch`].
//!
//! ```
//! use agent_core::tool::{Effect, ToolOptions, ToolOutput};
//! use serde_json::json;
//!
//! assert_eq!(ToolOptions::default().effect, Effect::AtMostOnce, "a tool that does not say is not repeated");
//! assert_eq!(ToolOutput::value(json!({"total": 3})).to_text(), r#"{"total":3}"#);
//! ```

mod batch;
mod request;

use std::sync::Arc;

use async_trait::async_trait;

pub use self::{
    batch::{BatchCall, ToolBatch},
    request::ToolRequest,
};
pub use crate::tooling::{
    CallResult, Computer, Doubt, Effect, FileSearch, Location, OutputText, Reconciled, RemoteMcp, Render, Secret,
    ServerTool, StateRead, StateWrite, ToolHints, ToolOptions, ToolOutput, ToolResults, ToolSpec, ToolSpecs, WebFetch,
    WebSearch, WireKey, portable_keys, value_to_text,
};
use crate::{cx::RunCx, error::Result, service::SharedService};

/// A composed service stack around the calls of one tool.
pub type ToolService = SharedService<ToolRequest, ToolOutput>;

/// An action that a model can request.
///
/// Most tools are written with the `#[tool]` attribute of `agent-tools`, which implements this
/// trait.
///
/// ```
/// use agent_core::{Result, Tool, ToolOutput, ToolRequest, ToolSpec, async_trait};
/// use serde_json::json;
///
/// struct Shout;
///
/// #[async_trait]
/// impl Tool for Shout {
///     fn spec(&self) -> ToolSpec {
///         let text = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
///         ToolSpec::new("shout", "Returns the text in capitals.", text)
///     }
///
///     async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
///         Ok(ToolOutput::text(req.args["text"].as_str().unwrap_or_default().to_uppercase()))
///     }
/// }
/// ```
#[async_trait]
pub trait Tool: Send + Sync + 'static {
    /// Returns the description for the model. Read once, when the agent is built.
    fn spec(&self) -> ToolSpec;

    /// Returns the execution options. Read once, when the agent is built.
    fn options(&self) -> ToolOptions {
        ToolOptions::default()
    }

    /// Executes the call. The arguments have been repaired and validated against the schema.
    ///
    /// # Errors
    /// The message of an error of kind [`Tool`](crate::ErrorKind::Tool) is sent to the model,
    /// without context or source. Panics are caught and reported as "the tool failed".
    async fn call(&self, req: ToolRequest) -> Result<ToolOutput>;

    /// Opens resources that the tool needs, such as a connection: before the first run of an agent
    /// that has the tool, or of a run that brings it. May be called again, also during calls, and
    /// must then do nothing.
    ///
    /// # Errors
    /// An error fails the run before any model call; the next run tries again.
    async fn warm_up(&self) -> Result<()> {
        Ok(())
    }

    /// Releases the resources that [`warm_up`](Self::warm_up) opened. A later run warms up again.
    ///
    /// # Errors
    /// If a resource could not be released properly; the tool counts as closed anyway.
    async fn close(&self) -> Result<()> {
        Ok(())
    }

    /// Reports the outcome of an earlier attempt whose result was lost, for a tool with
    /// [`Effect::Reconcilable`]. The request is that of the call, with the same [idempotency
    /// key](ToolRequest::idempotency_key).
    ///
    /// # Errors
    /// If the outcome cannot be determined: a person is asked, as for [`Reconciled::Unknown`].
    async fn reconcile(&self, _req: ToolRequest) -> Result<Reconciled> {
        Ok(Reconciled::Unknown)
    }
}

#[async_trait]
impl<T: Tool + ?Sized> Tool for Arc<T> {
    fn spec(&self) -> ToolSpec {
        (**self).spec()
    }

    fn options(&self) -> ToolOptions {
        (**self).options()
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        (**self).call(req).await
    }

    async fn warm_up(&self) -> Result<()> {
        (**self).warm_up().await
    }

    async fn close(&self) -> Result<()> {
        (**self).close().await
    }

    async fn reconcile(&self, req: ToolRequest) -> Result<Reconciled> {
        (**self).reconcile(req).await
    }
}

/// A set of tools that can change during a run: queried before every model call.
#[async_trait]
pub trait Toolset: Send + Sync + 'static {
    /// Returns the tools offered now. The same tool must be the same `Arc` in every call.
    ///
    /// # Errors
    /// An error ends the run.
    async fn tools(&self, cx: &RunCx) -> Result<Vec<Arc<dyn Tool>>>;

    /// Like [`Tool::warm_up`], for the whole set, which must warm up its tools.
    ///
    /// # Errors
    /// Those of [`Tool::warm_up`].
    async fn warm_up(&self) -> Result<()> {
        Ok(())
    }

    /// Like [`Tool::close`], for the whole set.
    ///
    /// # Errors
    /// Those of [`Tool::close`].
    async fn close(&self) -> Result<()> {
        Ok(())
    }
}
