//! The contracts of the agent framework: everything that an author of a tool, a model, a middleware or a store needs, and
//! nothing that does I/O.
//!
//! An agent is a `tower::Service` from [`RunRequest`] to [`RunEnd`]. Its executor (crate `agent-exec`) loops over model
//! calls and tool calls, and runs the hooks of [`Middleware`] around both as tower layers. What must survive goes through one
//! append-only [`Journal`].
//!
//! | to write | implement | see |
//! |---|---|---|
//! | a middleware | [`Middleware`] | [`RunCx`], [`ModelRequest`], [`ToolRequest`] |
//! | a tool | [`Tool`] | [`ToolOptions`], [`ToolOutput`] |
//! | a model | [`Model`] | [`ChunkSink`], [`ErrorKind`] |
//! | a store | [`Journal`] | [`Entry`], and the conformance suite of `agent-store` |
//! | a tower layer | `tower::Layer<ModelService>` | [`ModelService`], [`ToolService`] |
//!
//! This crate changes rarely, and apart from the implementations, so that strangers' crates can depend on it alone.

mod budget;
mod error;
mod event;
mod history;
mod journal;
mod message;
mod middleware;
mod model;
mod run;
mod service;
mod storage;
mod tool;
mod usage;

#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use async_trait::async_trait;
pub use futures::future::BoxFuture;

pub use self::{
    budget::{Amounts, Budget, Caps, Reservation},
    error::{BoxError, Error, ErrorKind, Result, Retry},
    event::{CircuitState, Emitter, Event, EventHub, EventKind, EventSink, EventStream, Position},
    history::{History, Repair, WireKey, unique_ids},
    journal::{
        Ack, Divergence, Durable, Entry, EntryBody, Fold, Journal, JournalWriter, MemoryJournal, OpenTurn,
        RecordedBeginning, Recording, RunLog, RunStatus, SessionView, Standing, Step, StepBody, StepResult, diff,
        fold_session, fork_at, recover, standing,
    },
    message::{
        AssistantMessage, Block, Cache, Citation, Media, MediaSource, Message, MessageBuilder, Origin, Part, Raw,
        Reasoning, SystemMessage, Text, ToolCall, ToolMessage, UserMessage,
    },
    middleware::{
        Flow, Middleware, Middlewares, ModelHooks, ModelHooksLayer, ModelNext, ModelWrap, ModelWrapLayer, Ordering,
        ToolHooks, ToolHooksLayer, ToolNext, ToolWrap, ToolWrapLayer, Verdict,
    },
    model::{
        Chunk, ChunkSink, Collector, Effort, FinishReason, Model, ModelInfo, ModelParams, ModelRequest, ModelResponse,
        OutputFormat, PriceTable, TokenCounter, ToolChoice,
    },
    run::{
        Begun, CallState, Checkpoint, Exit, ExitReason, Finished, Inbox, Parent, PendingCall, PendingTurn, Phase,
        Question, RunCx, RunDriver, RunEnd, RunIds, RunInput, RunParts, RunRequest, SubAgent, SubAgents, ToolChoices,
        UsageMeter, new_id,
    },
    service::{AgentService, ModelService, SharedService, ToolService},
    storage::{GlobalStorage, Key, Merge, Resources, State, StateField, StateSchema, Transaction},
    tool::{
        BatchCall, CallResult, Doubt, Effect, IN_DOUBT, OutputText, Reconciled, Render, StateRead, StateWrite, Tool,
        ToolBatch, ToolOptions, ToolOutput, ToolRequest, ToolResults, ToolSpec, ToolSpecs, Toolset, value_to_text,
    },
    usage::Usage,
};
