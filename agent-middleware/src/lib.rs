//! Built-in middleware, implemented only with the public API of `agent-core`: third-party crates
//! can do the same.
//!
//! | middleware | purpose | usual position |
//! |---|---|---|
//! | [`Events`] | sends the run's events to callbacks and sinks | anywhere |
//! | [`Logging`] | writes runs, model calls and tool calls to `tracing` | outermost |
//! | [`Limits`] | limits calls, tokens and duration of a run | outside middleware that asks people or costs money |
//! | [`Delegation`] | offers other agents to the model | anywhere |
//! | [`AskParent`] | lets a sub-agent ask its caller | anywhere |
//! | [`Approval`] | allows tools, denies them, or has a person decide, by [`Permissions`] | inside middleware that changes arguments |
//! | [`Breakpoints`] | stops a run before a model call or tool calls, for inspection | outermost |
//! | [`Snapshots`] | lets the application store checkpoints of stopped runs | outermost |
//! | [`ToolRetry`] | retries tools after temporary errors | inside middleware that asks people |
//! | [`ToolErrors`] | rewrites tools' error messages | outside [`ToolRetry`] |
//! | [`ToolEmulator`] | answers on behalf of tools, for tests and dry runs | innermost |
//! | [`ToolSelector`] | selects the few tools that a call needs | outside [`PromptCaching`] |
//! | [`ToolSearch`] | hides tools until the model searches for them | outside [`PromptCaching`] |
//! | `CodeMode` (feature `code`) | lets the model write programs that call tools | outside middleware that shortens the conversation |
//! | [`RuntimeEnvironment`] | describes the environment to the model | outside [`PromptCaching`] |
//! | [`TodoList`] | gives the model a todo list | outside [`PromptCaching`] |
//! | [`PromptCaching`] | asks providers to cache the prompt | inside middleware that changes its beginning |
//! | [`ChatHistory`] | stores conversations in a separate store | outside middleware that reads the history |
//! | [`LongTermMemory`] | recalls memories of earlier conversations | innermost |
//! | [`Knowledge`] | retrieves document passages about the question | innermost |
//! | [`Judge`] | reviews answers before the run ends, and sends them back | outside middleware that changes answers |
//! | [`PromptInjection`] | prevents untrusted content from leaking secrets | inside middleware that changes arguments or stores outputs |
//! | [`Reminders`] | reports remaining steps and tokens to the model | innermost |
//! | [`ContextCompaction`] | keeps the conversation within the context window | outside middleware that adds to a call's messages |
//! | [`LongToolOutput`] | truncates long tool outputs, and shows the rest on request | outside middleware that reads whole outputs |
//! | [`Guardrails`] | checks messages, tool arguments and tool outputs; [`Moderation`](guardrails::Moderation) uses categories and scores | outside [`Pii`] |
//! | [`Pii`] | redacts, masks, hashes or blocks personal and secret data | inside middleware that stores or shows content |
//! | [`PatchToolCalls`] | sets the result text of interrupted calls | outermost |
//! | `Telemetry` (feature `telemetry`) | OpenTelemetry's spans, metrics and events | innermost, inside [`Logging`] |
//! | [`before_model_fn`] and similar | a single hook from a closure | as the hook needs |
//! | [`from_fn`](from_fn()) | a tower layer from a closure | as the policy needs |
//!
//! Features that need no hook are elsewhere: `Skills` are a tool set of `agent-tools`;
//! `ModelRouter`, `Failover` and retries of model calls are models and layers of `agent-llm`;
//! timeouts of tools are in [`ToolOptions`](agent_core::ToolOptions) and
//! [`Deadlines`](agent_core::Deadlines). For a plan that the model maintains, use a [`TodoList`].
//!
//! The middlewares are at the root of the crate. Their configurations, traits and data types are in
//! a module per topic.
//!
//! # Order
//!
//! The middleware registered first is the outermost: its `before_*` hooks run first, its `after_*`
//! hooks last. The section *Order* of each middleware describes its requirements, and `build()`
//! refuses an order that cannot work. The recommended order:
//!
//! ```
//! use agent_core::middleware::Middlewares;
//! use agent_middleware::{Approval, Delegation, Events, Limits, Logging};
//! use std::sync::Arc;
//!
//! let usual: Middlewares = Arc::new([
//!     Arc::new(Logging::new()),
//!     Arc::new(Events::new()),
//!     Arc::new(Limits::new().model_calls(50)),
//!     Arc::new(Delegation::new()),
//!     Arc::new(Approval::new().ask("send_mail")),
//! ]);
//! # assert_eq!(usual.len(), 5);
//! ```
//!
//! # Configuration
//!
//! Every middleware has a serialisable configuration: [`LimitsConfig`](limits::LimitsConfig) for
//! [`Limits`], and so on. All fields have defaults, and unknown fields are refused.
//! `Limits::from(config)` creates the middleware; setters do the same in code. With its defaults a
//! middleware changes nothing.
//!
//! ```
//! use agent_middleware::{Limits, limits::LimitsConfig};
//!
//! let config: LimitsConfig = serde_json::from_str(r#"{"model_calls": 50, "wall_time": 120, "on_tokens": "error"}"#)?;
//! let limits = Limits::from(config);
//! # drop(limits);
//! # Ok::<(), serde_json::Error>(())
//! ```
//!
//! [`Builtin`] lists them by name, for agents that are read from files. With the feature `schema`,
//! each configuration has a JSON Schema.
//!
//! # Writing one
//!
//! Implement [`Middleware`](agent_core::Middleware) and override the hooks that you need. One value
//! serves all runs of its agent, also concurrently, so store state of a run by run id and drop it
//! in `after_agent`. State that must survive a pause or a restart belongs in the run's
//! [`globals`](agent_core::RunCx::globals), which are journalled with the step.

pub mod approval;
pub mod archive;
pub mod breakpoints;
mod builtin;
#[cfg(feature = "code")]
pub mod code_mode;
pub mod compaction;
mod cut;
pub mod delegation;
mod digest;
pub mod from_fn;
pub mod guardrails;
pub mod limits;
pub mod memory;
pub mod permissions;
pub mod pii;
pub mod prompt;
pub mod prompt_injection;
pub mod review;
mod run_value;
mod scan;
mod setters;
mod side_call;
mod tags;
pub mod telemetry;
pub mod tools;
mod wrap;

#[cfg(feature = "code")]
#[doc(inline)]
pub use self::code_mode::CodeMode;
#[cfg(feature = "telemetry")]
#[doc(inline)]
pub use self::telemetry::Telemetry;
#[doc(inline)]
pub use self::{
    approval::Approval,
    breakpoints::{Breakpoints, Snapshots},
    builtin::Builtin,
    compaction::{ContextCompaction, LongToolOutput},
    delegation::{AskParent, Delegation},
    from_fn::{after_model_fn, after_tool_fn, before_model_fn, before_tool_fn, from_fn},
    guardrails::Guardrails,
    limits::Limits,
    memory::{ChatHistory, Knowledge, LongTermMemory},
    permissions::Permissions,
    pii::Pii,
    prompt::{PromptCaching, Reminders, RuntimeEnvironment, TodoList},
    prompt_injection::PromptInjection,
    review::Judge,
    telemetry::{Events, Logging},
    tools::{PatchToolCalls, ToolEmulator, ToolErrors, ToolRetry, ToolSearch, ToolSelector},
};
