//! Built-in middleware, written against the contracts of `agent-core` alone: what is done here, a stranger's crate can do.
//!
//! | middleware | does | usual place |
//! |---|---|---|
//! | [`Events`] | sends the run's events to callbacks and sinks | anywhere |
//! | [`Logging`] | writes runs, model calls and tool calls to `tracing` | outermost |
//! | [`Limits`] | ends a run that does too much or takes too long | outside whatever asks people or costs money |
//! | [`Delegation`] | offers other agents to the model | anywhere |
//! | [`AskParent`] | lets a sub-agent ask whoever called it | anywhere |
//! | [`Approval`] | allows tools, denies them, or has a person decide, by [`Permissions`] | inside whatever changes arguments |
//! | [`Breakpoints`] | stops a run before a model call or tools, to look at it | outermost |
//! | [`Snapshots`] | has the application keep where a run stopped | outermost |
//! | [`ToolRetry`] | tries tools again that failed for a moment | inside whatever asks people |
//! | [`ToolErrors`] | puts tools' errors into other words | outside [`ToolRetry`] |
//! | [`ToolEmulator`] | answers in the place of tools, for tests and dry runs | innermost |
//! | [`ToolSelector`] | picks the few tools that a call needs | outside [`PromptCaching`] |
//! | [`ToolSearch`] | hides tools until the model looks for them | outside [`PromptCaching`] |
//! | `CodeMode` (feature `code`) | has the model write programs that call tools | outside whatever shortens the conversation |
//! | [`RuntimeEnvironment`] | tells the model where it runs | outside [`PromptCaching`] |
//! | [`TodoList`] | gives the model a list of todos | outside [`PromptCaching`] |
//! | [`PromptCaching`] | asks providers to keep the prompt | inside whatever changes its beginning |
//! | [`ChatHistory`] | keeps conversations in a store of their own | outside whatever looks at the history |
//! | [`LongTermMemory`] | tells the model what earlier conversations left behind | innermost |
//! | [`Knowledge`] | tells the model what documents say about the question | innermost |
//! | [`Judge`] | has answers judged or criticised before they are given, and sends them back | outside whatever changes answers |
//! | [`PromptInjection`] | keeps untrusted content from giving away what is secret | inside whatever changes arguments or keeps outputs |
//! | [`Reminders`] | tells the model how far it is | innermost |
//! | [`ContextCompaction`] | keeps the conversation within the context window | outside whatever adds to a call's messages |
//! | [`LongToolOutput`] | shows long tool outputs in part, and the rest on request | outside whatever reads whole outputs |
//! | [`Guardrails`] | checks what is said, and what tools are given and give; with [`Moderation`](guardrails::Moderation) by categories and scores | outside [`Pii`] |
//! | [`Pii`] | redacts, masks, hashes or blocks what is personal or secret | inside whatever keeps or shows what is said |
//! | [`PatchToolCalls`] | says in your words that a call was interrupted | outermost |
//! | `Telemetry` (feature `telemetry`) | OpenTelemetry's spans, metrics and events | innermost, inside [`Logging`] |
//! | [`before_model_fn`] and its like | one hook of a closure | as the hook needs |
//! | [`from_fn`](from_fn()) | a tower layer of a closure | as the policy needs |
//!
//! What needs no hook is elsewhere: `Skills` are a tool set of `agent-tools`; `ModelRouter`, `Failover` and retries of model calls are
//! models and layers of `agent-llm`; how long a tool may take is in [`ToolOptions`](agent_core::ToolOptions) and
//! [`Deadlines`](agent_core::Deadlines). A plan that the model keeps is a [`TodoList`].
//!
//! The middlewares are here at the root. What belongs to a subject beside them is in the module of that subject:
//! configurations, traits to implement, what is asked and answered.
//!
//! # Order
//!
//! The first to be registered is the outermost: its `before_*` hooks run first, its `after_*` hooks last. Each middleware
//! says under *Order* what that means for it, and `build()` refuses an order that cannot work. Without special needs:
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
//! Every middleware has a configuration that is data: [`LimitsConfig`](limits::LimitsConfig) for [`Limits`], and so on. It has defaults for
//! everything and refuses fields that it does not know. `Limits::from(config)` makes the middleware; setters do the same in
//! code. With its defaults a middleware changes nothing.
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
//! [`Builtin`] has them by their names, for agents that are read from files. With the feature `schema` each configuration has a
//! JSON Schema.
//!
//! # Writing one
//!
//! Implement [`Middleware`](agent_core::Middleware) and override the hooks that you need. One value serves all runs of its
//! agent, also at once, so what belongs to a run is kept by run id and dropped in `after_agent`. What must survive a pause or
//! a restart belongs in the run's [`globals`](agent_core::RunCx::globals), which are journalled with the step.

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
