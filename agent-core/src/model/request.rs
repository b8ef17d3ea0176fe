//! Requests of model calls.

use std::{fmt, sync::Arc};

use crate::{
    cx::{Hook, RunCx},
    history::History,
    llm::{ChunkSink, ModelInfo, ModelParams, TokenCounter},
    message::SystemMessage,
    model::Model,
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
    /// The model that a hook chose for this call.
    chosen: Option<Chosen>,
}

/// A model without a `Debug` bound.
#[derive(Clone)]
struct Chosen(Arc<dyn Model>);

impl fmt::Debug for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.info().name)
    }
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
            chosen: None,
        }
    }

    /// Makes this call with another model than the agent's: for a hook that routes by step, size or
    /// task. Layers, budget and journal treat it as every call. The model must be opened and closed
    /// by its owner.
    ///
    /// ```
    /// use agent_core::{Flow, Middleware, Model, ModelRequest, ModelResponse, Result, RunCx, async_trait};
    /// use std::sync::Arc;
    ///
    /// /// Uses a small model after the first step.
    /// struct SmallLater(Arc<dyn Model>);
    ///
    /// #[async_trait]
    /// impl Middleware for SmallLater {
    ///     async fn before_model(&self, cx: &RunCx, req: &mut ModelRequest) -> Result<Flow<ModelResponse>> {
    ///         if cx.step() > 1 {
    ///             req.use_model(self.0.clone());
    ///         }
    ///         Ok(Flow::Continue)
    ///     }
    /// }
    /// # let _: Option<SmallLater> = None;
    /// ```
    pub fn use_model(&mut self, model: Arc<dyn Model>) {
        self.model = Some(Arc::new(model.info()));
        self.chosen = Some(Chosen(model));
    }

    /// Takes the model that a hook chose with [`use_model`](Self::use_model), for the code that makes
    /// the call.
    pub fn take_chosen_model(&mut self) -> Option<Arc<dyn Model>> {
        self.chosen.take().map(|chosen| chosen.0)
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
