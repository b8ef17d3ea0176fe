//! Built-in middleware, written against the contracts of `agent-core` alone: what is done here, a stranger's crate can do.
//!
//! | middleware | does | usual place |
//! |---|---|---|
//! | [`Events`] | sends the run's events to callbacks and sinks | anywhere |
//! | [`Logging`] | writes runs, model calls and tool calls to `tracing` | outermost |
//! | [`Limits`] | ends a run that does too much or takes too long | outside whatever asks people or costs money |
//! | [`Delegation`] | offers other agents to the model | anywhere |
//! | [`Approval`] | allows tools, denies them, or has a person decide, by [`Permissions`] | inside whatever changes arguments |
//! | [`Breakpoints`] | stops a run before a model call or tools, to look at it | outermost |
//! | [`Snapshots`] | has the application keep where a run stopped | outermost |
//! | [`ToolRetry`] | tries tools again that failed for a moment | inside whatever asks people |
//! | [`ToolErrors`] | puts tools' errors into other words | outside [`ToolRetry`] |
//! | [`RuntimeEnvironment`] | tells the model where it runs | outside [`PromptCaching`] |
//! | [`TodoList`] | gives the model a list of todos | outside [`PromptCaching`] |
//! | [`PromptCaching`] | asks providers to keep the prompt | inside whatever changes its beginning |
//! | [`Reminders`] | tells the model how far it is | innermost |
//! | [`ContextCompaction`] | keeps the conversation within the context window | outside whatever adds to a call's messages |
//! | [`LongToolOutput`] | shows long tool outputs in part, and the rest on request | outside whatever reads whole outputs |
//! | [`PatchToolCalls`] | says in your words that a call was interrupted | outermost |
//! | [`before_model_fn`] and its like | one hook of a closure | as the hook needs |
//! | [`from_fn`](from_fn()) | a tower layer of a closure | as the policy needs |
//!
//! # Order
//!
//! The first to be registered is the outermost: its `before_*` hooks run first, its `after_*` hooks last. Each middleware
//! says under *Order* what that means for it. Without special needs:
//!
//! ```
//! use agent_core::Middlewares;
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
//! Every middleware has a configuration that is data: `LimitsConfig` for [`Limits`], and so on. It has defaults for
//! everything and refuses fields that it does not know. `Limits::from(config)` makes the middleware; setters do the same in
//! code. With its defaults a middleware changes nothing.
//!
//! ```
//! use agent_middleware::{Limits, LimitsConfig};
//!
//! let config: LimitsConfig = serde_json::from_str(r#"{"model_calls": 50, "wall_time": 120, "on_tokens": "error"}"#)?;
//! let limits = Limits::from(config);
//! # drop(limits);
//! # Ok::<(), serde_json::Error>(())
//! ```
//!
//! # Writing one
//!
//! Implement [`Middleware`](agent_core::Middleware) and override the hooks that you need. One value serves all runs of its
//! agent, also at once, so what belongs to a run is kept by run id and dropped in `after_agent`. What must survive a pause or
//! a restart belongs in the run's [`globals`](agent_core::RunCx::globals), which are journalled with the step.

mod approval;
mod archive;
mod breakpoints;
mod compaction;
mod cut;
mod delegation;
mod events;
mod from_fn;
mod hook_fn;
mod kept;
mod limits;
mod logging;
mod long_tool_output;
mod patch_tool_calls;
mod permissions;
mod prompt_caching;
mod reminders;
mod runtime_environment;
mod seconds;
mod snapshots;
mod todo;
mod tool_errors;
mod tool_retry;

pub use self::{
    approval::{
        Approval, ApprovalConfig, ApprovalRequest, Approver, ConfirmationPolicy, ConfirmationStrategy, ConsoleApprover,
        Decision, DecisionKind, Remember,
    },
    archive::{Archive, Archived, Hit, MemoryArchive, SessionArchive},
    breakpoints::{Breakpoint, Breakpoints, BreakpointsConfig},
    compaction::{
        CacheAware, CachePrices, ClampMessages, ClearToolResults, CompactionConfig, ContextCompaction,
        ContextCompactionBuilder, Custom, DedupReads, Keep, OffloadToolResults, Pins, SlidingWindow, Strategy,
        StrategyConfig, Summary, SummaryConfig, Task, Tiers, Trigger, Unit, strategy_fn,
    },
    delegation::{Delegation, DelegationConfig},
    events::{Events, EventsConfig},
    from_fn::{FromFn, FromFnLayer, from_fn},
    hook_fn::{after_model_fn, after_tool_fn, before_model_fn, before_tool_fn},
    limits::{Limits, LimitsConfig, OnLimit, OnToolLimit},
    logging::{LogLevel, Logging, LoggingConfig},
    long_tool_output::{LongToolOutput, LongToolOutputBuilder, LongToolOutputConfig},
    patch_tool_calls::{PatchToolCalls, PatchToolCallsConfig},
    permissions::{Match, Permissions, Policy, Rule, RuleFile, RuleStore, Ruling},
    prompt_caching::{PromptCaching, PromptCachingConfig},
    reminders::{Reminders, RemindersConfig, Repeated},
    runtime_environment::{RuntimeEnvironment, RuntimeEnvironmentConfig},
    snapshots::Snapshots,
    todo::{Todo, TodoList, TodoListConfig, TodoStatus},
    tool_errors::ToolErrors,
    tool_retry::{ToolRetry, ToolRetryConfig},
};
