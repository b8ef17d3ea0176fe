#![doc = include_str!("../../README.md")]
//!
//! # This crate
//!
//! One dependency for applications. The most used items are at the root and in the [`prelude`]; each
//! crate is re-exported whole, as a module:
//!
//! | module | content | feature |
//! |---|---|---|
//! | [`core`](mod@core) | every contract: messages, hooks, storage, events, the journal | |
//! | [`dispatch`] | contracts of queues and workers | |
//! | [`embed`], [`rank`], [`retrieval`], [`memory`], [`search`] | contracts of retrieval | |
//! | [`exec`] | the agent, its builder and the executor | |
//! | [`flow`] | four roles that solve a query together | `flow` |
//! | [`llm`] | models, embedders and rerankers by name, providers, wires, layers, tokens and prices | `http`, `images`, `offline`, `tokens` |
//! | [`tools`] | `#[tool]`, tool sets, structured answers, tools for files, commands, the web, APIs and servers of tools (MCP), agents elsewhere | `a2a`, `acp`, `container`, `e2b`, `macros`, `json-schema`, `mcp`, `openapi`, `plugins`, `sandbox`, `skills`, `web`, `workspace` |
//! | [`middleware`] | built-in middleware | `middleware`, `code`, `telemetry`, `otlp`, `otlp-tls` |
//! | [`store`] | durable journals | `sqlite`, `postgres` |
//! | [`team`] | teams: a leader, members, a task board, messages; patterns over agents | `team` |
//! | `config` | agents as files | `files` |
//! | `testing` | a scripted model and a recorded hook trace | `testing` |
//!
//! # Where names live
//!
//! | look for | in |
//! |---|---|
//! | the names of nearly every file | [`prelude`] |
//! | types that an application names | this module |
//! | contracts for authors of parts | [`core`](mod@core) |
//! | details of one contract | its module in [`core`](mod@core), such as [`model`] or [`storage`] |
//! | a built-in part | the module of its crate |
//!
//! Every module of [`core`](mod@core) is also a module of this crate under its own name ([`message`],
//! [`model`], [`mod@tool`], [`run`], [`storage`], [`event`], [`journal`], [`budget`], ..), except [`core::middleware`](mod@core::middleware): the module `middleware` of
//! this crate holds the built-in middlewares.
//!
//! # Features
//!
//! `http` and `macros` are enabled by default; the guide lists all features, and those that `full`
//! enables. Without `json-schema`, a tool or an answer whose schema has a keyword that [schemas of
//! types do not use](agent_tools#what-is-checked) is refused when the agent is built. A library that
//! provides tools, middlewares, models or stores depends on `agent-core` alone.

pub use agent_core as core;
pub use agent_exec as exec;
#[cfg(feature = "flow")]
pub use agent_flow as flow;
pub use agent_llm as llm;
#[cfg(feature = "middleware")]
pub use agent_middleware as middleware;
pub use agent_store as store;
#[cfg(feature = "team")]
pub use agent_team as team;
pub use agent_tools as tools;

/// The page of `agent_core` shows the hooks as authors write them.
#[doc(no_inline)]
pub use agent_core::Middleware;
pub use agent_core::{
    AssistantMessage, Block, Budget, Caps, Checkpoint, Deadlines, Effect, Error, ErrorKind, Event, EventKind,
    EventStream, ExitReason, Finished, Flow, GlobalStorage, Key, Message, Model, ModelParams, ModelRequest,
    ModelResponse, Part, Question, Result, Retry, RunCx, RunEnd, RunRequest, State, StateField, StateSchema, Tool,
    ToolOptions, ToolOutput, ToolRequest, Usage, Verdict, WhenBusy, WhenWaiting, Window, async_trait,
};
pub use agent_core::{budget, engine, error, event, history, journal, message, model, run, storage, tool};
pub use agent_dispatch as dispatch;
pub use agent_exec::{
    Agent, AgentBuilder, AgentDefinition, Drain, Registry, RequiredVariables, Run, RunHandle, SessionId, TypedAgent,
    Worker, WorkerBuilder, WorkerHooks,
    handoff::{Handoff, Handoffs},
    shutdown_signal,
};
pub use agent_retrieval::{embed, memory, rank, retrieval, search};
#[cfg(feature = "postgres")]
pub use agent_store::{PostgresJournal, PostgresQueue, PostgresRelay};
#[cfg(feature = "sqlite")]
pub use agent_store::{SqliteJournal, SqliteLedger};
#[cfg(feature = "macros")]
pub use agent_tools::tool;
pub use agent_tools::{InvalidAnswer, Json, Resource, Structured, ToolSet, Typed};

#[cfg(feature = "testing")]
pub use agent_core::testing;

#[cfg(feature = "files")]
pub mod config;
pub mod prelude;

/// The guides, compiled and run.
#[cfg(all(doctest, feature = "full", feature = "testing"))]
mod guide {
    macro_rules! document {
        ($($name:ident: $path:literal,)*) => {$(
            #[doc = include_str!(concat!("../../docs/", $path, ".md"))]
            mod $name {}
        )*};
    }

    document! {
        index: "index",
        start: "start",
        cookbook: "cookbook",
        errors: "errors",
        code_mode: "guide/code-mode",
        compaction: "guide/compaction",
        compile_errors: "guide/compile-errors",
        custom_models: "guide/custom-models",
        definitions: "guide/definitions",
        delegation: "guide/delegation",
        handoff: "guide/handoff",
        embeddings: "guide/embeddings",
        events: "guide/events",
        extend: "guide/extend",
        files: "guide/files",
        flow: "guide/flow",
        interrupts: "guide/interrupts",
        limits: "guide/limits",
        mcp: "guide/mcp",
        hooks: "guide/hooks",
        middleware: "guide/middleware",
        models: "guide/models",
        abilities: "guide/abilities",
        batches: "guide/batches",
        network: "guide/network",
        openapi: "guide/openapi",
        peers: "guide/peers",
        permissions: "guide/permissions",
        plugins: "guide/plugins",
        prompts: "guide/prompts",
        providers: "guide/providers",
        reliability: "guide/reliability",
        retrieval: "guide/retrieval",
        runs: "guide/runs",
        safety: "guide/safety",
        sandbox: "guide/sandbox",
        sessions: "guide/sessions",
        structured: "guide/structured",
        teams: "guide/teams",
        telemetry: "guide/telemetry",
        testing: "guide/testing",
        threat_model: "guide/threat-model",
        tools: "guide/tools",
        tools_and_models: "guide/tools-and-models",
        web: "guide/web",
        wires: "guide/wires",
        workers: "guide/workers",
        porting_agentflow: "porting/agentflow",
        porting_haystack: "porting/haystack",
        porting_langchain: "porting/langchain",
        porting_nexau: "porting/nexau",
        rfc_0000: "rfcs/0000-template",
        rfc_0002: "rfcs/0002-erased-stacks",
        rfc_0004: "rfcs/0004-model-calls-complete",
        rfc_0005: "rfcs/0005-messages-and-history",
        rfc_0007: "rfcs/0007-typed-steps",
        rfc_0008: "rfcs/0008-interrupts-and-checkpoints",
        rfc_0014: "rfcs/0014-answers-and-permissions",
        rfc_0018: "rfcs/0018-telemetry",
        rfc_0026: "rfcs/0026-futures-are-made-in-their-boxes",
        rfc_0033: "rfcs/0033-what-a-call-changes",
        rfc_0034: "rfcs/0034-engines",
        rfc_0036: "rfcs/0036-a-provider-is-data",
        rfc_0037: "rfcs/0037-anchors",
    }
}
