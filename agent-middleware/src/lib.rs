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
//! | [`DeferredTools`] | hides tools until the model looks for them | outside [`PromptCaching`] |
//! | [`RuntimeEnvironment`] | tells the model where it runs | outside [`PromptCaching`] |
//! | [`TodoList`] | gives the model a list of todos | outside [`PromptCaching`] |
//! | [`PromptCaching`] | asks providers to keep the prompt | inside whatever changes its beginning |
//! | [`ChatHistory`] | keeps conversations in a store of their own | outside whatever looks at the history |
//! | [`LongTermMemory`] | tells the model what earlier conversations left behind | innermost |
//! | [`Judge`] | has answers looked at before they are given, and sends them back | outside whatever changes answers |
//! | [`Reflection`] | has answers criticised and revised | outside whatever changes answers |
//! | [`PromptInjection`] | keeps untrusted content from giving away what is secret | inside whatever changes arguments or keeps outputs |
//! | [`Reminders`] | tells the model how far it is | innermost |
//! | [`ContextCompaction`] | keeps the conversation within the context window | outside whatever adds to a call's messages |
//! | [`LongToolOutput`] | shows long tool outputs in part, and the rest on request | outside whatever reads whole outputs |
//! | [`Guardrails`] | checks what is said, and what tools are given and give; with [`Moderation`] by categories and scores | outside [`Pii`] |
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
//! # Order
//!
//! The first to be registered is the outermost: its `before_*` hooks run first, its `after_*` hooks last. Each middleware
//! says under *Order* what that means for it, and `build()` refuses an order that cannot work. Without special needs:
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
mod chat_history;
mod compaction;
mod cut;
mod deferred_tools;
mod delegation;
mod digest;
mod events;
mod from_fn;
mod guardrails;
mod hook_fn;
mod kept;
mod limits;
mod logging;
mod long_term_memory;
mod long_tool_output;
mod moderation;
mod patch_tool_calls;
mod permissions;
mod pii;
mod prompt_caching;
mod prompt_injection;
mod reminders;
mod review;
mod runtime_environment;
mod scan;
mod seconds;
mod side_call;
mod snapshots;
#[cfg(feature = "telemetry")]
mod telemetry;
mod todo;
mod tool_emulator;
mod tool_errors;
mod tool_retry;
mod tool_selector;
mod wrap;

#[cfg(feature = "telemetry")]
pub use self::telemetry::{Capture, Telemetry, TelemetryConfig, TokenMetrics, TraceContext, TracedModel};
#[cfg(feature = "otlp")]
pub use self::telemetry::{Otlp, OtlpBuilder};
pub use self::{
    approval::{
        Approval, ApprovalConfig, ApprovalRequest, Approver, ConfirmationPolicy, ConfirmationStrategy, ConsoleApprover,
        Decision, DecisionKind, Remember,
    },
    archive::{Archive, Archived, DirectoryArchive, Hit, MemoryArchive, SessionArchive},
    breakpoints::{Breakpoint, Breakpoints, BreakpointsConfig},
    chat_history::{ChatHistory, ChatHistoryConfig},
    compaction::{
        CacheAware, CachePrices, ClampMessages, ClearToolResults, CompactionConfig, ContextCompaction,
        ContextCompactionBuilder, Custom, DedupReads, Keep, OffloadToolResults, Pins, SlidingWindow, Strategy,
        StrategyConfig, Summary, SummaryConfig, Task, Tiers, Trigger, Unit, strategy_fn,
    },
    deferred_tools::{DeferredTools, DeferredToolsConfig},
    delegation::{AskParent, AskParentConfig, Delegation, DelegationConfig},
    events::{Events, EventsConfig},
    from_fn::{FromFn, FromFnLayer, from_fn},
    guardrails::{
        Guard, GuardConfig, GuardStage, GuardSubject, GuardVerdict, Guarded, Guardrails, GuardrailsConfig, OnGuardError,
    },
    hook_fn::{after_model_fn, after_tool_fn, before_model_fn, before_tool_fn},
    limits::{Limits, LimitsConfig, OnLimit, OnToolLimit},
    logging::{LogLevel, Logging, LoggingConfig},
    long_term_memory::{KeepOfRun, LongTermMemory, LongTermMemoryConfig, MemoryScope},
    long_tool_output::{LongToolOutput, LongToolOutputBuilder, LongToolOutputConfig},
    moderation::{Moderation, ModerationConfig, Moderator, WordList},
    patch_tool_calls::{PatchToolCalls, PatchToolCallsConfig},
    permissions::{Match, Permissions, Policy, Rule, RuleFile, RuleStore, Ruling},
    pii::{Pii, PiiBuilder, PiiConfig, PiiKind, PiiPattern, PiiRule, PiiStrategy, Scope},
    prompt_caching::{PromptCaching, PromptCachingConfig},
    prompt_injection::{
        Label, Labels, Links, PromptInjection, PromptInjectionBuilder, PromptInjectionConfig, Sink, SinkWhen,
    },
    reminders::{Reminders, RemindersConfig, Repeated},
    review::{Judge, JudgeConfig, Judgement, OnRejected, Reflection, ReflectionConfig, Reviewer},
    runtime_environment::{RuntimeEnvironment, RuntimeEnvironmentConfig},
    scan::{Detector, Passage},
    snapshots::Snapshots,
    todo::{Todo, TodoList, TodoListConfig, TodoStatus},
    tool_emulator::{ToolEmulator, ToolEmulatorConfig},
    tool_errors::ToolErrors,
    tool_retry::{ToolRetry, ToolRetryConfig},
    tool_selector::{PickTools, ToolSelector, ToolSelectorConfig},
};
