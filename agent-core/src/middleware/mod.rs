//! Middlewares: what authors write around runs, model calls and tool calls.
//!
//! [`Middleware`] is the trait, [`Flow`] and [`Verdict`] are what its hooks say, and a [`Placement`] is where one has to stand.
//! What a middleware keeps for a run is in a [`PerRun`]. Whoever writes a tower layer instead wraps the erased services:
//! [`ModelService`], [`ToolService`], [`AgentService`].
//!
//! ```
//! use agent_core::{
//!     Middleware, Result, RunCx, ToolOutput, ToolRequest, async_trait,
//!     middleware::{Flow, Placement},
//! };
//!
//! /// Lets no tool delete anything.
//! struct NoDeletes;
//!
//! #[async_trait]
//! impl Middleware for NoDeletes {
//!     fn name(&self) -> &str {
//!         "no_deletes"
//!     }
//!
//!     fn placement(&self) -> Placement {
//!         Placement::default().inside("approval")
//!     }
//!
//!     async fn before_tool(&self, _: &RunCx, req: &mut ToolRequest) -> Result<Flow<ToolOutput>> {
//!         Ok(match req.call.name.starts_with("delete") {
//!             true => Flow::Answer(ToolOutput::error("Nothing is deleted here.")),
//!             false => Flow::Continue,
//!         })
//!     }
//! }
//! # let _: &dyn Middleware = &NoDeletes;
//! ```

/// `Debug` that prints the names of the middlewares inside.
macro_rules! debug_by_name {
    ($layer:ident, $service:ident, $($list:tt)+) => {
        impl std::fmt::Debug for $layer {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(stringify!($layer))?;
                f.debug_list().entries(self.0.iter().map(|m| m.name())).finish()
            }
        }

        impl std::fmt::Debug for $service {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(stringify!($service))?;
                f.debug_list().entries(self.$($list)+.iter().map(|m| m.name())).finish()
            }
        }
    };
}
use debug_by_name;

mod family;
pub(crate) mod hooks;
mod next;
mod placement;
#[macro_use]
mod signatures;
pub(crate) mod wrap;

use std::sync::Arc;

pub(crate) use self::family::Family;
pub use self::{
    next::{ModelNext, ToolNext},
    placement::Placement,
};
#[cfg(not(doc))]
use crate::{
    BoxFuture,
    future::{boxed, nothing},
};
pub use crate::{
    cx::PerRun,
    flow::{Flow, Verdict},
    model::ModelService,
    request::AgentService,
    service::SharedService,
    tool::ToolService,
};
use crate::{
    cx::RunCx,
    error::Result,
    llm::{Chunk, ModelResponse},
    model::ModelRequest,
    request::SubAgent,
    state::{Exit, RunEnd},
    tool::{Tool, ToolBatch, ToolRequest},
    tooling::{ToolOutput, ToolResults},
};

/// A list of middlewares, outermost first.
pub type Middlewares = Arc<[Arc<dyn Middleware>]>;

/// Hooks around the run, its model calls and its tool calls. Override what you need; every method has a default that does
/// nothing and costs nothing.
///
/// # Order
///
/// `before_*` run outermost first and `after_*` innermost first, exactly **once per call**. `wrap_*` are an onion entered
/// **once per attempt**: a retry outside re-enters what is inside it and never re-runs `before_*`.
///
/// After [`Flow::Answer`] from one middleware, only those outside it see `after_*`. On an error no `after_model` or
/// `after_tool` runs (a `wrap_*` sees the error); `after_agent` runs for every middleware whose `before_agent` ran.
///
/// ```text
/// // right: the redactor is inside, so the logger sees redacted text
/// builder.middleware(Logging::default()).middleware(redactor)
/// // wrong: the logger is inside and writes the secret down
/// builder.middleware(redactor).middleware(Logging::default())
/// ```
///
/// # Errors
///
/// A hook that fails fails the run, and the error's context key `middleware` names it. A middleware that only watches says
/// so with [`observer`](Self::observer): its errors are reported as an event and the run goes on.
///
/// # Example
///
/// Hooks are written as they stand here, as `async fn` in an impl with `#[async_trait]`. Whoever holds a `dyn Middleware` calls them
/// all the same.
///
/// ```
/// use agent_core::{Flow, Middleware, ModelRequest, ModelResponse, Result, RunCx, async_trait};
///
/// /// Says what day it is, in this call only.
/// struct Today(String);
///
/// #[async_trait]
/// impl Middleware for Today {
///     fn name(&self) -> &str {
///         "today"
///     }
///
///     async fn before_model(&self, _: &RunCx, req: &mut ModelRequest) -> Result<Flow<ModelResponse>> {
///         req.messages.push(agent_core::Message::user(format!("Today is {}.", self.0)))?;
///         Ok(Flow::Continue)
///     }
/// }
/// ```
pub trait Middleware: Send + Sync + 'static {
    /// Names it in errors, in `explain()` and in the [`Placement`] of others. Default: the type's path.
    fn name(&self) -> &str {
        std::any::type_name::<Self>()
    }

    /// Where it must stand among others; checked when the agent is built.
    fn placement(&self) -> Placement {
        Placement::default()
    }

    /// True if its failures must not fail the run.
    fn observer(&self) -> bool {
        false
    }

    /// Gives the hook for the chunks of an answer. A middleware without one costs a stream nothing.
    fn chunk_hook(&self) -> Option<&dyn ChunkHook> {
        None
    }

    /// Tools that it contributes to the agent.
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        Vec::new()
    }

    /// Sub-agents that it contributes to the agent.
    fn sub_agents(&self) -> Vec<SubAgent> {
        Vec::new()
    }

    hooks! {
        /// Once per run, outermost first.
        async fn before_agent(&self, cx: &RunCx) -> Result<()>;

        /// Once per run, innermost first, however the run ended, for every middleware whose `before_agent` ran. May change
        /// the end.
        async fn after_agent(&self, cx: &RunCx, end: &mut Result<RunEnd>) -> Result<()>;

        /// Before a model call, outermost first, once however often the call is retried. May edit the request of this call.
        async fn before_model(&self, cx: &RunCx, req: &mut ModelRequest) -> Result<Flow<ModelResponse>>;

        /// After a model call, innermost first. May edit the response and set its verdict.
        async fn after_model(&self, cx: &RunCx, res: &mut ModelResponse) -> Result<()>;

        /// Around each attempt of a model call; `next` may be run zero or more times.
        async fn wrap_model_call(&self, req: ModelRequest, next: ModelNext<'_>) -> Result<ModelResponse> {
            next.run(req).await
        }

        /// Once per message with calls, outermost first, before any of them runs. May reorder, edit, answer and drop calls.
        async fn before_tools(&self, cx: &RunCx, batch: &mut ToolBatch) -> Result<()>;

        /// Once per message with calls, innermost first, when all are answered. May edit the results.
        async fn after_tools(&self, cx: &RunCx, results: &mut ToolResults) -> Result<Verdict>;

        /// Before a tool call, outermost first; the calls of one message run concurrently.
        async fn before_tool(&self, cx: &RunCx, req: &mut ToolRequest) -> Result<Flow<ToolOutput>>;

        /// After a tool call, innermost first; a failed tool's output [is an error](ToolOutput::is_error).
        async fn after_tool(&self, cx: &RunCx, req: &ToolRequest, out: &mut ToolOutput) -> Result<()>;

        /// Around each attempt of a tool call; `next` may be run zero or more times.
        async fn wrap_tool_call(&self, req: ToolRequest, next: ToolNext<'_>) -> Result<ToolOutput> {
            next.run(req).await
        }

        /// When the run is about to finish by itself, innermost first. [`Verdict::Again`] keeps the loop going. Not called at
        /// the step limit, nor after [`RunCx::stop`].
        async fn on_exit(&self, cx: &RunCx, exit: &mut Exit) -> Result<Verdict>;
    }
}

/// What a middleware does with the chunks of an answer: [`Middleware::chunk_hook`].
///
/// ```
/// use agent_core::{Chunk, Middleware, Result, RunCx, middleware::ChunkHook};
///
/// /// Keeps what a model thinks from whoever watches the run.
/// struct Discreet;
///
/// impl Middleware for Discreet {
///     fn chunk_hook(&self) -> Option<&dyn ChunkHook> {
///         Some(self)
///     }
/// }
///
/// impl ChunkHook for Discreet {
///     fn stream_chunk(&self, _: &RunCx, chunk: Chunk) -> Result<Option<Chunk>> {
///         Ok((!matches!(chunk, Chunk::Reasoning { .. })).then_some(chunk))
///     }
/// }
/// ```
pub trait ChunkHook: Send + Sync {
    /// For every chunk, innermost first, before it is made part of the message or shown. `None` drops it. Must not block.
    ///
    /// # Errors
    /// Ends the call, and the error names the middleware.
    fn stream_chunk(&self, cx: &RunCx, chunk: Chunk) -> Result<Option<Chunk>>;
}
