//! What the layers see of a call, be it a model's or an embedder's.

use agent_core::{
    EventKind, ModelRequest, ModelResponse, RunCx, TokenCounter, Usage,
    embed::{EmbedRequest, EmbedResponse},
};

/// A request that this crate's layers take: a [`ModelRequest`] or an [`EmbedRequest`]. No other type can be one.
pub trait Call: Clone + Send + Sync + 'static {
    /// What it is answered with.
    type Answer: Send + 'static;

    /// The request, if it is a model's: it belongs to a run, and its answer may be heard before it is complete.
    fn of_model(&self) -> Option<&ModelRequest>;

    /// The request, changed if it is a model's.
    #[must_use]
    fn map_model(self, change: impl FnOnce(ModelRequest) -> ModelRequest) -> Self;

    /// The most tokens that it may use, as far as `counter` knows.
    fn tokens(&self, counter: &dyn TokenCounter) -> u64;

    /// What the answer says that was used.
    fn usage(answer: &Self::Answer) -> &Usage;

    /// The run of which the call is, if it is of one.
    fn run(&self) -> Option<&RunCx> {
        self.of_model().map(|req| &req.cx)
    }
}

impl Call for ModelRequest {
    type Answer = ModelResponse;

    fn of_model(&self) -> Option<&ModelRequest> {
        Some(self)
    }

    fn map_model(self, change: impl FnOnce(Self) -> Self) -> Self {
        change(self)
    }

    fn tokens(&self, counter: &dyn TokenCounter) -> u64 {
        Self::tokens(self, counter).saturating_add(self.params.max_tokens.unwrap_or(0))
    }

    fn usage(answer: &ModelResponse) -> &Usage {
        &answer.usage
    }
}

impl Call for EmbedRequest {
    type Answer = EmbedResponse;

    fn of_model(&self) -> Option<&ModelRequest> {
        None
    }

    fn map_model(self, _: impl FnOnce(ModelRequest) -> ModelRequest) -> Self {
        self
    }

    fn tokens(&self, counter: &dyn TokenCounter) -> u64 {
        self.texts.iter().map(|text| counter.text(text)).sum()
    }

    fn usage(answer: &EmbedResponse) -> &Usage {
        &answer.usage
    }
}

/// Tells the readers of the run's events, if there is a run.
pub(crate) fn tell(run: Option<&RunCx>, event: EventKind) {
    if let Some(run) = run {
        run.emit(event);
    }
}

/// Waits until the run is cancelled: for ever, if there is none.
pub(crate) async fn cancellation(run: Option<&RunCx>) {
    match run {
        Some(run) => run.cancellation().cancelled().await,
        None => std::future::pending().await,
    }
}
