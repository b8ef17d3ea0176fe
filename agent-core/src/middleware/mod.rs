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
pub(crate) mod wrap;

use std::sync::Arc;

use futures::future::BoxFuture;

pub(crate) use self::family::Family;
pub use self::{
    next::{ModelNext, ToolNext},
    placement::Placement,
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
    future::nothing,
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

    /// False promises that [`stream_chunk`](Self::stream_chunk) is left as it is: then no chunk is made for its sake. Say so
    /// in a middleware that many agents have; all others are asked about every chunk.
    fn has_chunk_hook(&self) -> bool {
        true
    }

    /// Tools that it contributes to the agent.
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        Vec::new()
    }

    /// Sub-agents that it contributes to the agent.
    fn sub_agents(&self) -> Vec<SubAgent> {
        Vec::new()
    }

    /// Once per run, outermost first.
    fn before_agent<'life0, 'life1, 'async_trait>(
        &'life0 self,
        _cx: &'life1 RunCx,
    ) -> BoxFuture<'async_trait, Result<()>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        Self: 'async_trait,
    {
        nothing()
    }

    /// Once per run, innermost first, however the run ended, for every middleware whose `before_agent` ran. May change
    /// the end.
    fn after_agent<'life0, 'life1, 'life2, 'async_trait>(
        &'life0 self,
        _cx: &'life1 RunCx,
        _end: &'life2 mut Result<RunEnd>,
    ) -> BoxFuture<'async_trait, Result<()>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        'life2: 'async_trait,
        Self: 'async_trait,
    {
        nothing()
    }

    /// Before a model call, outermost first, once however often the call is retried. May edit the request of this call.
    fn before_model<'life0, 'life1, 'life2, 'async_trait>(
        &'life0 self,
        _cx: &'life1 RunCx,
        _req: &'life2 mut ModelRequest,
    ) -> BoxFuture<'async_trait, Result<Flow<ModelResponse>>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        'life2: 'async_trait,
        Self: 'async_trait,
    {
        nothing()
    }

    /// After a model call, innermost first. May edit the response and set its verdict.
    fn after_model<'life0, 'life1, 'life2, 'async_trait>(
        &'life0 self,
        _cx: &'life1 RunCx,
        _res: &'life2 mut ModelResponse,
    ) -> BoxFuture<'async_trait, Result<()>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        'life2: 'async_trait,
        Self: 'async_trait,
    {
        nothing()
    }

    /// Around each attempt of a model call; `next` may be run zero or more times.
    fn wrap_model_call<'life0, 'life1, 'async_trait>(
        &'life0 self,
        req: ModelRequest,
        next: ModelNext<'life1>,
    ) -> BoxFuture<'async_trait, Result<ModelResponse>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        Self: 'async_trait,
    {
        next.run(req)
    }

    /// For every chunk, innermost first, before it is made part of the message or shown. `None` drops it. Must not block.
    ///
    /// # Errors
    /// Ends the call, and the error names the middleware.
    fn stream_chunk(&self, _cx: &RunCx, chunk: Chunk) -> Result<Option<Chunk>> {
        Ok(Some(chunk))
    }

    /// Once per message with calls, outermost first, before any of them runs. May reorder, edit, answer and drop calls.
    fn before_tools<'life0, 'life1, 'life2, 'async_trait>(
        &'life0 self,
        _cx: &'life1 RunCx,
        _batch: &'life2 mut ToolBatch,
    ) -> BoxFuture<'async_trait, Result<()>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        'life2: 'async_trait,
        Self: 'async_trait,
    {
        nothing()
    }

    /// Once per message with calls, innermost first, when all are answered. May edit the results.
    fn after_tools<'life0, 'life1, 'life2, 'async_trait>(
        &'life0 self,
        _cx: &'life1 RunCx,
        _results: &'life2 mut ToolResults,
    ) -> BoxFuture<'async_trait, Result<Verdict>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        'life2: 'async_trait,
        Self: 'async_trait,
    {
        nothing()
    }

    /// Before a tool call, outermost first; the calls of one message run concurrently.
    fn before_tool<'life0, 'life1, 'life2, 'async_trait>(
        &'life0 self,
        _cx: &'life1 RunCx,
        _req: &'life2 mut ToolRequest,
    ) -> BoxFuture<'async_trait, Result<Flow<ToolOutput>>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        'life2: 'async_trait,
        Self: 'async_trait,
    {
        nothing()
    }

    /// After a tool call, innermost first; a failed tool's output [is an error](ToolOutput::is_error).
    fn after_tool<'life0, 'life1, 'life2, 'life3, 'async_trait>(
        &'life0 self,
        _cx: &'life1 RunCx,
        _req: &'life2 ToolRequest,
        _out: &'life3 mut ToolOutput,
    ) -> BoxFuture<'async_trait, Result<()>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        'life2: 'async_trait,
        'life3: 'async_trait,
        Self: 'async_trait,
    {
        nothing()
    }

    /// Around each attempt of a tool call; `next` may be run zero or more times.
    fn wrap_tool_call<'life0, 'life1, 'async_trait>(
        &'life0 self,
        req: ToolRequest,
        next: ToolNext<'life1>,
    ) -> BoxFuture<'async_trait, Result<ToolOutput>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        Self: 'async_trait,
    {
        next.run(req)
    }

    /// When the run is about to finish by itself, innermost first. [`Verdict::Again`] keeps the loop going. Not called at
    /// the step limit, nor after [`RunCx::stop`].
    fn on_exit<'life0, 'life1, 'life2, 'async_trait>(
        &'life0 self,
        _cx: &'life1 RunCx,
        _exit: &'life2 mut Exit,
    ) -> BoxFuture<'async_trait, Result<Verdict>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        'life2: 'async_trait,
        Self: 'async_trait,
    {
        nothing()
    }
}
