//! Contracts of the agent framework: all traits and types for authors of tools, models, middlewares
//! and stores, without any I/O.
//!
//! An agent is a `tower::Service` from [`RunRequest`] to [`RunEnd`]. Its executor (crate
//! `agent-exec`) loops over model calls and tool calls, and runs the hooks of [`Middleware`] around
//! both as tower layers. Durable data is stored in one append-only [`Journal`].
//!
//! | to write | implement | see |
//! |---|---|---|
//! | a middleware | [`Middleware`] | [`RunCx`], [`ModelRequest`], [`ToolRequest`] |
//! | a tool | [`Tool`] | [`ToolOptions`], [`ToolOutput`] |
//! | a model | [`Model`] | [`ChunkSink`], [`ErrorKind`] |
//! | a store | [`Journal`] | [`journal::Entry`], and the conformance suite of `agent-store` |
//! | a tower layer | `tower::Layer<ModelService>` | [`ModelService`], [`ToolService`] |
//!
//! The implementations are in separate crates, so that third-party crates can depend on this crate
//! alone.

mod amounts;
mod api_key;
mod backoff;
pub mod budget;
mod cx;
mod deadlines;
pub mod engine;
pub mod error;
pub mod event;
pub mod exact;
mod flow;
mod future;
pub mod history;
pub mod journal;
mod llm;
mod log;
pub mod message;
pub mod middleware;
pub mod model;
mod request;
pub mod run;
pub mod seconds;
mod service;
mod state;
pub mod storage;
pub mod tool;
mod tooling;
mod usage;

#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use async_trait::async_trait;
pub use futures::future::BoxFuture;

pub use self::{
    budget::{Budget, Caps, Window},
    error::{BoxError, Error, ErrorKind, Result, Retry},
    event::{Event, EventKind, EventSink, EventStream},
    future::boxed,
    history::History,
    journal::{Journal, MemoryJournal},
    message::{AssistantMessage, Block, Media, Message, Part, SystemMessage, Text, ToolCall, ToolMessage, UserMessage},
    middleware::{Flow, Middleware, ModelNext, ModelService, PerRun, Placement, ToolNext, ToolService, Verdict},
    model::{
        Chunk, ChunkSink, FinishReason, Model, ModelInfo, ModelParams, ModelRequest, ModelResponse, OutputFormat,
        TokenCounter, ToolChoice, Usage,
    },
    run::{
        Answer, Ask, Deadlines, Exit, ExitReason, Finished, Question, RunCx, RunEnd, RunIds, RunRequest, SubAgent,
        WhenBusy, WhenWaiting, checkpoint::Checkpoint,
    },
    storage::{GlobalStorage, Key, Resources, State, StateField, StateSchema},
    tool::{Effect, Tool, ToolBatch, ToolOptions, ToolOutput, ToolRequest, ToolResults, ToolSpec, ToolSpecs, Toolset},
};
