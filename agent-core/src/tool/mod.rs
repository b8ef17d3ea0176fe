//! Tools: what a model may ask to be done.
//!
//! Authors of tools implement [`Tool`], or [`Toolset`] where the tools are not known before; [`ToolOptions`] say how the
//! executor is to run one, above all what repeating it would do ([`Effect`]). Hooks see calls as [`ToolRequest`]s, and those of
//! one answer as a [`ToolBatch`].
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
    WebSearch, WireKey, value_to_text,
};
use crate::{cx::RunCx, error::Result, service::SharedService};

/// A composed stack around the calls of one tool.
pub type ToolService = SharedService<ToolRequest, ToolOutput>;

/// Something that a model may ask to be done.
///
/// Most tools are written with the `#[tool]` attribute of `agent-tools`; this is what it implements.
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
    /// What the model is told of the tool. Read once, when the agent is built.
    fn spec(&self) -> ToolSpec;

    /// How the executor is to run it. Read once, when the agent is built.
    fn options(&self) -> ToolOptions {
        ToolOptions::default()
    }

    /// Does it. The arguments have been repaired and checked against the schema.
    ///
    /// # Errors
    /// An error of kind [`Tool`](crate::ErrorKind::Tool) is told to the model by its message, without context or cause.
    /// Panics are caught and told as "the tool failed".
    async fn call(&self, req: ToolRequest) -> Result<ToolOutput>;

    /// Opens what the tool needs, such as a connection: before the first run of an agent that has it, or of a run that brings
    /// it. May be called again, also while calls are under way, and then does nothing.
    ///
    /// # Errors
    /// Fails the run, before any model is called; the next run tries again.
    async fn warm_up(&self) -> Result<()> {
        Ok(())
    }

    /// Gives back what [`warm_up`](Self::warm_up) opened. A later run warms up again.
    ///
    /// # Errors
    /// If something could not be given back properly; the tool counts as closed all the same.
    async fn close(&self) -> Result<()> {
        Ok(())
    }

    /// Says what became of an earlier attempt whose result was lost, for a tool whose effect is [`Effect::Reconcilable`].
    /// The request is that of the call, with the same [idempotency key](ToolRequest::idempotency_key).
    ///
    /// # Errors
    /// If it cannot be found out: a person is asked, as for [`Reconciled::Unknown`].
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

/// Tools that can change while a run is under way: asked before every model call.
#[async_trait]
pub trait Toolset: Send + Sync + 'static {
    /// The tools on offer now. The same tool must be the same `Arc` from call to call.
    ///
    /// # Errors
    /// Ends the run.
    async fn tools(&self, cx: &RunCx) -> Result<Vec<Arc<dyn Tool>>>;

    /// As [`Tool::warm_up`], for the set; it warms up its tools itself.
    ///
    /// # Errors
    /// As there.
    async fn warm_up(&self) -> Result<()> {
        Ok(())
    }

    /// As [`Tool::close`], for the set.
    ///
    /// # Errors
    /// As there.
    async fn close(&self) -> Result<()> {
        Ok(())
    }
}
