//! One model call: what goes in and what comes out.

use std::sync::Arc;

use crate::{
    cx::RunCx,
    history::History,
    llm::{ChunkSink, ModelInfo, ModelParams, TokenCounter},
    message::SystemMessage,
    tooling::ToolSpecs,
};

/// One model call. Cheap to clone, so that stock retry and hedge layers apply.
///
/// Everything here is the view of **this call**: a hook that edits it changes nothing that is kept. What is kept is
/// changed with [`RunCx::replace_history`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ModelRequest {
    /// The run.
    pub cx: RunCx,
    /// What is known of the model that is asked, if whoever asks knows it.
    pub model: Option<Arc<ModelInfo>>,
    /// The system prompt. It is the agent's, not part of the history.
    pub system: Option<SystemMessage>,
    /// The conversation.
    pub messages: History,
    /// The tools on offer.
    pub tools: ToolSpecs,
    /// How to answer.
    pub params: Arc<ModelParams>,
    /// Whether the provider is asked to stream. Layers see the same either way.
    pub stream: bool,
    /// Where chunks go.
    pub sink: ChunkSink,
    /// True if an earlier process, or an earlier attempt to answer a question, began this call.
    pub resumed: bool,
    /// True inside of what the run's budget set aside for this call: whoever makes a second call out of it sets that aside
    /// too.
    pub reserved: bool,
}

impl ModelRequest {
    /// A call for the run `cx` over its kept history, with nothing else set.
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
            reserved: false,
        }
    }

    /// The tokens of the prompt, as `counter` counts them.
    pub fn tokens(&self, counter: &(impl TokenCounter + ?Sized)) -> u64 {
        counter.prompt(self.system.as_ref(), &self.tools, &self.messages)
    }

    /// True if a reader of the run's events is about to fall behind: a model that streams gives way to it.
    pub fn is_crowded(&self) -> bool {
        self.cx.0.emitter.hub().is_crowded()
    }
}
