//! Requests of model calls.

use std::sync::Arc;

use crate::{
    cx::{Hook, RunCx},
    history::History,
    llm::{ChunkSink, ModelInfo, ModelParams, TokenCounter},
    message::SystemMessage,
    tooling::ToolSpecs,
};

/// One model call. Cheap to clone, so that standard retry and hedge layers work.
///
/// All fields belong to **this call**: a hook that edits them changes no persisted data. Use
/// [`RunCx::replace_history`] to change the persisted history.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ModelRequest {
    /// The run that makes the call.
    pub cx: RunCx,
    /// Info of the called model, if the caller knows it.
    pub model: Option<Arc<ModelInfo>>,
    /// System prompt. It belongs to the agent and is not part of the history.
    pub system: Option<SystemMessage>,
    /// The conversation.
    pub messages: History,
    /// The tools offered.
    pub tools: ToolSpecs,
    /// Parameters of the answer.
    pub params: Arc<ModelParams>,
    /// True if the provider is asked to stream. Layers see the same either way.
    pub stream: bool,
    /// Destination of the chunks.
    pub sink: ChunkSink,
    /// True if an earlier process, or an attempt before a question was answered, began this call.
    pub resumed: bool,
}

impl ModelRequest {
    /// Creates a call for the run `cx` with its persisted history; the other fields have their
    /// defaults.
    pub fn new(cx: RunCx) -> Self {
        let messages = cx.history();
        Self {
            cx,
            model: None,
            system: None,
            messages,
            tools: ToolSpecs::default(),
            params: ModelParams::unset(),
            stream: false,
            sink: ChunkSink::default(),
            resumed: false,
        }
    }

    /// The request as a `wrap_model_call` hook has it, `at` middlewares away from the model.
    pub(crate) fn in_wrap(mut self, at: usize) -> Self {
        self.cx = self.cx.in_hook(Hook::WrapModel, at, None);
        self
    }

    /// True once a budget has reserved this call. A layer that issues another call must reserve for
    /// it.
    pub fn is_reserved(&self) -> bool {
        self.cx.is_in_reserved_call()
    }

    /// Returns the number of prompt tokens according to `counter`.
    pub fn tokens(&self, counter: &(impl TokenCounter + ?Sized)) -> u64 {
        counter.prompt(self.system.as_ref(), &self.tools, &self.messages)
    }

    /// True if a reader of the run's events is about to fall behind: a streaming model then yields.
    pub fn is_crowded(&self) -> bool {
        self.cx.0.emitter.hub().is_crowded()
    }
}
