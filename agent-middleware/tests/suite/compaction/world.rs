//! Conversations, and an agent's model calls with them.

use std::sync::{Arc, Mutex};

use agent_core::{
    AssistantMessage, Block, Event, EventKind, History, Message, Middleware, ModelInfo, ModelRequest, ModelResponse,
    ModelService, Result, RunCx, TokenCounter, ToolMessage, Usage,
    engine::{RunDriver, RunParts},
    event::Compaction,
    middleware::Middlewares,
    model::ApproximateCounter,
};
use agent_middleware::compaction::{Strategy, Task, Unit};
use tower::ServiceExt;

use super::common::{alone, model_stack, root};

/// Returns a call of `tool` with its result.
pub(crate) fn turn(id: &str, tool: &str, result: &str) -> [Message; 2] {
    let call = AssistantMessage::new(vec![Block::tool_call(id, tool, format!(r#"{{"of":"{id}"}}"#))]);
    [Message::Assistant(call), Message::Tool(ToolMessage::text(id, tool, result, false))]
}

/// Returns a user's task and `n` iterations, each with a result of this many characters.
pub(crate) fn long(n: usize, characters: usize) -> History {
    let turns = (0..n).flat_map(|at| turn(&format!("c{at}"), "look", &format!("{at}:{}", "x".repeat(characters))));
    History::from_messages([Message::user("Do it.")].into_iter().chain(turns)).expect("paired")
}

pub(crate) fn tokens(history: &History) -> u64 {
    ApproximateCounter.history(history)
}

/// Applies `strategy` to `history`.
pub(crate) async fn compacted(strategy: &impl Strategy, history: &History, edit: fn(Task<'_>) -> Task<'_>) -> History {
    compacted_in(root(|_| {}).cx(), strategy, history, edit).await
}

/// Compacts a history of this run's session.
pub(crate) async fn compacted_in(
    cx: &RunCx,
    strategy: &impl Strategy,
    history: &History,
    edit: fn(Task<'_>) -> Task<'_>,
) -> History {
    let task = edit(Task::new(cx, &ApproximateCounter, 0));
    let units = strategy.compact(&task, Unit::split(history)).await.expect("compacts");
    Unit::join(units).expect("paired")
}

pub(crate) fn texts(history: &History) -> Vec<String> {
    history.iter().map(Message::text).collect()
}

/// A run with this history and one middleware, which records its events.
pub(crate) struct World {
    pub(crate) list: Middlewares,
    pub(crate) run: RunDriver,
    pub(crate) events: Arc<Mutex<Vec<EventKind>>>,
    /// Histories sent to the provider.
    pub(crate) sent: Arc<Mutex<Vec<History>>>,
    /// Known context window of the model.
    pub(crate) window: Option<u64>,
    /// Tokens that requests reserve for the answer.
    pub(crate) reserved: u64,
}

impl World {
    pub(crate) fn new(middleware: impl Middleware, history: History) -> Self {
        Self::with(alone(middleware), history, |_| {})
    }

    pub(crate) fn with(list: Middlewares, history: History, edit: impl FnOnce(&mut RunParts)) -> Self {
        let run = root(|parts| {
            parts.log.seed(history);
            edit(parts);
        });
        Self::of(list, run)
    }

    pub(crate) fn of(list: Middlewares, run: RunDriver) -> Self {
        let events = Arc::new(Mutex::new(Vec::new()));
        let noted = events.clone();
        run.cx().attach(Arc::new(move |event: &Event| noted.lock().expect("free").push(event.kind.clone())));
        Self { list, run, events, sent: Arc::default(), window: Some(1_000), reserved: 0 }
    }

    /// Makes a step's model call, answered by a provider that accepts prompts of up to `fits`
    /// tokens.
    pub(crate) async fn step(&self, fits: u64) -> Result<ModelResponse> {
        self.run.next_step();
        let sent = self.sent.clone();
        let model = model_stack(&self.list, move |req: ModelRequest| {
            sent.lock().expect("free").push(req.messages.clone());
            async move {
                let size = tokens(&req.messages);
                if size > fits {
                    return Err(overflow());
                }
                let message = req.sink.collect(AssistantMessage::from("ok"))?;
                Ok(ModelResponse::new(message).with_usage(Usage::new(size, 1)))
            }
        });
        self.call(model).await
    }

    pub(crate) async fn call(&self, model: ModelService) -> Result<ModelResponse> {
        let mut req = ModelRequest::new(self.run.cx().clone());
        let info = |window| ModelInfo::new("m").with_context_window(window).with_reserved_output(self.reserved);
        req.model = self.window.map(|window| Arc::new(info(window)));
        model.oneshot(req).await
    }

    pub(crate) fn kept(&self) -> History {
        self.run.cx().history()
    }

    pub(crate) fn sent(&self) -> Vec<History> {
        self.sent.lock().expect("free").clone()
    }

    pub(crate) fn compactions(&self) -> Vec<Compaction> {
        let events = self.events.lock().expect("free");
        let of = |kind: &EventKind| match kind {
            EventKind::Compaction(compaction) => Some(compaction.clone()),
            _ => None,
        };
        events.iter().filter_map(of).collect()
    }

    pub(crate) async fn replaced(&self) -> Vec<String> {
        self.run.engine().log().commit().await.expect("kept");
        let events = self.events.lock().expect("free");
        let of = |kind: &EventKind| match kind {
            EventKind::HistoryReplaced { reason, .. } => Some(reason.clone()),
            _ => None,
        };
        events.iter().filter_map(of).collect()
    }
}

pub(crate) fn overflow() -> agent_core::Error {
    agent_core::Error::new(agent_core::ErrorKind::ContextOverflow, "prompt is too long")
}
