//! Middlewares: extensions around runs, model calls and tool calls.
//!
//! [`Middleware`] is the trait, [`Flow`] and [`Verdict`] are the results of its hooks, and a
//! [`Placement`] constrains its position. A [`PerRun`] holds a middleware's values per run. A tower
//! layer wraps the type-erased services instead: [`ModelService`], [`ToolService`],
//! [`AgentService`].
//!
//! ```
//! use agent_core::{
//!     Middleware, Result, RunCx, ToolOutput, ToolRequest, async_trait,
//!     middleware::{Flow, Placement},
//! };
//!
//! /// Answers every call of a deleting tool with an error.
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

/// `Debug` implementation that prints the names of the middlewares.
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

mod exclusive;
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
    exclusive::{Exclusive, ExclusiveService},
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
    error::{Error, Result},
    llm::{Chunk, ModelResponse},
    model::ModelRequest,
    request::SubAgent,
    state::{Exit, RunEnd},
    storage::StateSchema,
    tool::{Tool, ToolBatch, ToolRequest},
    tooling::{ToolOutput, ToolResults},
};

/// A list of middlewares, outermost first.
pub type Middlewares = Arc<[Arc<dyn Middleware>]>;

/// Hooks around the run, its model calls and its tool calls. Override the hooks you need; every
/// hook has a default that does nothing and costs nothing.
///
/// # Order
///
/// `before_*` hooks run outermost first and `after_*` hooks innermost first, exactly **once per
/// call**. `wrap_*` hooks are nested and entered **once per attempt**: a retry in an outer
/// middleware re-enters the inner ones and never reruns `before_*`.
///
/// After [`Flow::Answer`] from one middleware, only the middlewares outside it run `after_*`. A
/// failed call runs `on_model_error` or `on_tool_error` instead of `after_model` or `after_tool`; if
/// one of them answers, the middlewares outside it run `after_*`. `after_agent` runs for every
/// middleware whose `before_agent` ran.
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
/// An error of a hook fails the run, and the error's context key `middleware` contains the
/// middleware's name. A middleware that only observes returns `true` from
/// [`observer`](Self::observer): its errors are reported as events and the run continues.
///
/// # Examples
///
/// Implement hooks as `async fn`, with the signatures shown here, in an impl with `#[async_trait]`.
/// They can also be called on a `dyn Middleware`.
///
/// ```
/// use agent_core::{Flow, Middleware, ModelRequest, ModelResponse, Result, RunCx, async_trait};
///
/// /// Adds the current date to each model call.
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
    /// Name used in errors, in `explain()` and in the [`Placement`] of others. Default: the type's
    /// path.
    fn name(&self) -> &str {
        std::any::type_name::<Self>()
    }

    /// Constraints on the position among other middlewares; checked when the agent is built.
    fn placement(&self) -> Placement {
        Placement::default()
    }

    /// Checks its configuration when the agent is built. Default: accepts it.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for a configuration that is wrong, or that would do nothing.
    fn validate(&self) -> Result<()> {
        Ok(())
    }

    /// True if errors of this middleware must not fail the run. Default: false.
    fn observer(&self) -> bool {
        false
    }

    /// Returns the hook for the chunks of an answer. A middleware without one adds no cost to
    /// streams.
    fn chunk_hook(&self) -> Option<&dyn ChunkHook> {
        None
    }

    /// Tools that the middleware contributes to the agent.
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        Vec::new()
    }

    /// State keys that the middleware contributes to the agent: what it keeps for each run.
    ///
    /// ```
    /// use agent_core::{
    ///     Flow, Middleware, ModelRequest, ModelResponse, Result, RunCx, StateField, StateSchema, async_trait,
    /// };
    ///
    /// struct CountSteps;
    ///
    /// #[async_trait]
    /// impl Middleware for CountSteps {
    ///     fn state(&self) -> StateSchema {
    ///         StateSchema::default().key("steps_seen", StateField::of::<u32>().default_value(0.into()))
    ///     }
    ///
    ///     async fn before_model(&self, cx: &RunCx, _: &mut ModelRequest) -> Result<Flow<ModelResponse>> {
    ///         cx.state().set_value("steps_seen", cx.step().into(), None)?;
    ///         Ok(Flow::Continue)
    ///     }
    /// }
    /// ```
    fn state(&self) -> StateSchema {
        StateSchema::default()
    }

    /// Sub-agents that the middleware contributes to the agent.
    fn sub_agents(&self) -> Vec<SubAgent> {
        Vec::new()
    }

    hooks! {
        /// Called once per attempt at the run, outermost first: also when the run is resumed after a
        /// question, a pause or a restart ([`RunCx::is_resumed`]). Work that must happen once per run
        /// belongs into [`decide`](RunCx::decide).
        async fn before_agent(&self, cx: &RunCx) -> Result<()>;

        /// Called once per attempt, innermost first, for every kind of end and every middleware whose
        /// `before_agent` ran. May change the end.
        async fn after_agent(&self, cx: &RunCx, end: &mut Result<RunEnd>) -> Result<()>;

        /// Called before a model call, outermost first; once per call, regardless of retries. May
        /// edit the request of this call.
        async fn before_model(&self, cx: &RunCx, req: &mut ModelRequest) -> Result<Flow<ModelResponse>>;

        /// Called after a model call, innermost first. May edit the response and set its verdict.
        async fn after_model(&self, cx: &RunCx, res: &mut ModelResponse) -> Result<()>;

        /// Called when a model call failed, innermost first; once per call, after all retries inside
        /// it. [`Flow::Answer`] replaces the failure by a response, an error replaces it by another
        /// one. Not called when the run is suspended, stopped or cancelled: see
        /// [`ErrorKind::is_failure`](crate::ErrorKind::is_failure).
        ///
        /// ```
        /// use agent_core::{Error, Flow, Middleware, ModelResponse, Result, RunCx, async_trait};
        ///
        /// /// Answers with an apology when the provider fails.
        /// struct Apology;
        ///
        /// #[async_trait]
        /// impl Middleware for Apology {
        ///     async fn on_model_error(&self, _: &RunCx, error: &Error) -> Result<Flow<ModelResponse>> {
        ///         Ok(match error.is_retryable() {
        ///             true => Flow::Answer(ModelResponse::new("Our assistant is not available. Please try again later.")),
        ///             false => Flow::Continue,
        ///         })
        ///     }
        /// }
        /// # let _: &dyn Middleware = &Apology;
        /// ```
        async fn on_model_error(&self, cx: &RunCx, error: &Error) -> Result<Flow<ModelResponse>>;

        /// Wraps each attempt of a model call; `next` may run zero or more times.
        async fn wrap_model_call(&self, req: ModelRequest, next: ModelNext<'_>) -> Result<ModelResponse> {
            next.run(req).await
        }

        /// Called once per message with calls, outermost first, before any of the calls runs. May
        /// reorder, edit, answer and drop calls.
        async fn before_tools(&self, cx: &RunCx, batch: &mut ToolBatch) -> Result<()>;

        /// Called once per message with calls, innermost first, when all calls are answered. May
        /// edit the results.
        async fn after_tools(&self, cx: &RunCx, results: &mut ToolResults) -> Result<Verdict>;

        /// Called before a tool call, outermost first; the calls of one message run concurrently.
        async fn before_tool(&self, cx: &RunCx, req: &mut ToolRequest) -> Result<Flow<ToolOutput>>;

        /// Called after a tool call, innermost first; a failed tool's output [is an
        /// error](ToolOutput::is_error).
        async fn after_tool(&self, cx: &RunCx, req: &ToolRequest, out: &mut ToolOutput) -> Result<()>;

        /// Called when a tool call failed with an error, innermost first; once per call, after all
        /// retries inside it, and before the error becomes an output for the model. The return value
        /// acts as in [`on_model_error`](Self::on_model_error). An output that a tool
        /// [marks as an error](ToolOutput::is_error) is a result: `after_tool` receives it.
        async fn on_tool_error(&self, cx: &RunCx, req: &ToolRequest, error: &Error) -> Result<Flow<ToolOutput>>;

        /// Wraps each attempt of a tool call; `next` may run zero or more times.
        async fn wrap_tool_call(&self, req: ToolRequest, next: ToolNext<'_>) -> Result<ToolOutput> {
            next.run(req).await
        }

        /// Called when the run is about to finish normally, innermost first. [`Verdict::Again`]
        /// continues the loop. Not called at the step limit, nor after [`RunCx::stop`].
        async fn on_exit(&self, cx: &RunCx, exit: &mut Exit) -> Result<Verdict>;
    }
}

/// Hook for the chunks of an answer: see [`Middleware::chunk_hook`].
///
/// ```
/// use agent_core::{Chunk, Middleware, Result, RunCx, middleware::ChunkHook};
///
/// /// Hides the model's reasoning from the readers of the run's events.
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
    /// Called for every chunk, innermost first, before it is added to the message or published.
    /// `None` drops the chunk. Must not block.
    ///
    /// # Errors
    /// An error ends the call, and names the middleware.
    fn stream_chunk(&self, cx: &RunCx, chunk: Chunk) -> Result<Option<Chunk>>;
}
