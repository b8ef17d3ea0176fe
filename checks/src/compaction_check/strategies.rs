//! Compared strategies.

use std::sync::Arc;

use agent::{
    AssistantMessage, Model, ModelRequest, ModelResponse, Result, Usage, async_trait,
    core::{ModelInfo, TokenCounter, model::ApproximateCounter},
    middleware::compaction::{
        CacheAware, CachePrices, ClampMessages, ClearToolResults, DedupReads, OffloadToolResults, SlidingWindow,
        Strategy, Summary, Tiers,
    },
};

/// Planner, which chooses between the strategies that call no model.
pub(crate) const PLANNER: &str = "cache-aware planner";

/// Returns every strategy by name, the planner last.
pub(crate) fn all(prices: CachePrices) -> Vec<(&'static str, Arc<dyn Strategy>)> {
    let planner = CacheAware::new().prices(prices).tolerance(0.0);
    let planner = free().into_iter().fold(planner, |planner, (_, strategy)| planner.candidate(strategy));
    let summary: (_, Arc<dyn Strategy>) = ("summary", Arc::new(Summary::new(Extract).max_tokens(400)));
    free().into_iter().chain([summary, (PLANNER, Arc::new(planner) as _)]).collect()
}

/// Returns the strategies that call no model.
fn free() -> Vec<(&'static str, Arc<dyn Strategy>)> {
    let gentle = || Tiers::new().then(DedupReads::new()).then(ClearToolResults::new());
    vec![
        ("dedup reads", Arc::new(DedupReads::new())),
        ("clear tool results", Arc::new(ClearToolResults::new())),
        ("offload tool results", Arc::new(OffloadToolResults::new().over(300).preview(100))),
        ("clamp messages", Arc::new(ClampMessages::new().to(400, 200))),
        ("sliding window of 1", Arc::new(SlidingWindow::new(1))),
        ("sliding window of 3", Arc::new(SlidingWindow::new(3))),
        ("sliding window of 10", Arc::new(SlidingWindow::new(10))),
        ("tiers", Arc::new(gentle().then(SlidingWindow::new(5)))),
    ]
}

/// Summariser without a model: keeps the beginning.
struct Extract;

#[async_trait]
impl Model for Extract {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("extract")
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        let asked: String = req.messages.iter().map(agent::Message::text).collect();
        let most = usize::try_from(req.params.max_tokens.unwrap_or(400)).unwrap_or(usize::MAX);
        let said: String = asked.chars().take(asked.chars().count() / 10).take(most * 4).collect();
        let used = Usage::new(ApproximateCounter.text(&asked), ApproximateCounter.text(&said));
        Ok(ModelResponse::new(AssistantMessage::from(said.as_str())).with_usage(used))
    }
}
