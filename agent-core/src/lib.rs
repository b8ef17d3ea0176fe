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

mod api_key;
mod backoff;
mod budget;
mod deadlines;
mod error;
mod event;
mod future;
mod history;
mod journal;
mod memory;
mod message;
mod middleware;
mod model;
mod run;
pub mod search;
mod service;
mod storage;
mod tool;
mod usage;

#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use async_trait::async_trait;
pub use futures::future::BoxFuture;

pub use self::{
    api_key::API_KEY_PREFIXES,
    backoff::Backoff,
    budget::{Amounts, Balance, Budget, BudgetBuilder, Caps, Ledger, MemoryLedger, Reservation, Window},
    deadlines::{DeadlineKind, Deadlines, RunDeadline},
    error::{BoxError, Error, ErrorKind, Result, Retry},
    event::{
        CircuitState, Compaction, CompactionMode, Emitter, Event, EventHub, EventKind, EventSink, EventStream, Position,
    },
    future::{boxed, catch_panic},
    history::{History, NO_RESULT, Repair, ReplaceReason, unique_ids},
    journal::{
        Ack, Divergence, Durable, EDITED, Entry, EntryBody, IndexCache, Journal, JournalWriter, Liveness,
        MemoryJournal, RecordedBeginning, Recording, RunLog, RunRecord, RunStatus, SessionIndex, SessionInfo,
        SessionView, SharedIndex, Step, StepBody, StepResult, SubAgentRecord, diff, each_entry, fork_at,
    },
    memory::{
        ChatMessage, ChatMessageStore, ChatQuery, Comparison, Filter, Memory, MemoryQuery, MemoryStore, RoundCounter,
        ScoredMemory, select_rounds,
    },
    message::{
        AssistantMessage, Block, Cache, Citation, Media, MediaSource, Message, MessageBuilder, Origin, Part, Raw,
        Reasoning, SystemMessage, Text, ToolCall, ToolMessage, UserMessage,
    },
    middleware::{
        Flow, Middleware, Middlewares, ModelHooks, ModelHooksLayer, ModelNext, ModelWrap, ModelWrapLayer, Placement,
        ToolHooks, ToolHooksLayer, ToolNext, ToolWrap, ToolWrapLayer, Verdict,
    },
    model::{
        ApproximateCounter, Chunk, ChunkSink, Collector, Effort, FinishReason, Model, ModelInfo, ModelParams,
        ModelRequest, ModelResponse, OutputFormat, PriceTable, Spoken, TokenCounter, ToolChoice,
    },
    run::{
        Answer, Ask, BackgroundRun, Begun, Booking, CallState, Checkpoint, Clock, Exit, ExitReason, Finished, Inbox,
        Parent, Pause, PendingCall, PendingTurn, PerRun, Phase, Question, Refusal, RunCx, RunDriver, RunEnd, RunIds,
        RunInput, RunParts, RunRequest, RunState, SubAgent, SubAgentCall, SubAgents, SubRun, SubRunHandle, ToolChoices,
        UsageMeter, WhenBusy, WhenWaiting, canonical_json, new_id,
    },
    service::{AgentService, ModelService, SharedService, ToolService},
    storage::{GlobalStorage, Key, Merge, Resources, State, StateField, StateSchema, Transaction},
    tool::{
        BatchCall, CallResult, Doubt, Effect, IN_DOUBT, OutputText, Reconciled, Render, StateRead, StateWrite, Tool,
        ToolBatch, ToolOptions, ToolOutput, ToolRequest, ToolResults, ToolSpec, ToolSpecs, Toolset, WireKey,
        value_to_text,
    },
    usage::Usage,
};
