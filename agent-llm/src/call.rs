//! Common view of model calls and embedding calls, for the layers.

use agent_core::{EventKind, ModelRequest, ModelResponse, RunCx, TokenCounter, Usage};
use agent_retrieval::embed::{EmbedRequest, EmbedResponse};

/// A request that this crate's layers accept: a [`ModelRequest`] or an [`EmbedRequest`]. The trait
/// is sealed.
pub trait Call: Clone + Send + Sync + 'static {
    /// Response type.
    type Answer: Send + 'static;

    /// Returns the request if it is a model request, which belongs to a run and may be streamed.
    fn of_model(&self) -> Option<&ModelRequest>;

    /// Applies `change` if this is a model request; returns any other request unchanged.
    #[must_use]
    fn map_model(self, change: impl FnOnce(ModelRequest) -> ModelRequest) -> Self;

    /// Returns the maximum number of tokens that the call may use, as estimated with `counter`.
    fn tokens(&self, counter: &dyn TokenCounter) -> u64;

    /// Returns the usage that the answer reports.
    fn usage(answer: &Self::Answer) -> &Usage;

    /// Returns the run that the call belongs to, if any.
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

/// Emits an event on the run, if there is one.
pub(crate) fn tell(run: Option<&RunCx>, event: EventKind) {
    if let Some(run) = run {
        run.emit(event);
    }
}

/// Waits until the run is cancelled; never completes if there is no run.
pub(crate) async fn cancellation(run: Option<&RunCx>) {
    match run {
        Some(run) => run.cancellation().cancelled().await,
        None => std::future::pending().await,
    }
}
