//! [`CalibratedCounter`]: token counter corrected by reported usage.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use agent_core::{
    BoxError, BoxFuture, Error, History, Media, Message, ModelRequest, ModelResponse, Result, SystemMessage,
    TokenCounter, ToolSpecs, Usage, boxed,
    model::{Correction, MediaKind},
};
use tower::{Layer, Service};

use crate::service::own;

/// Token counter that corrects another counter by the usage that the provider reports.
///
/// A tokenizer is exact only for the models that it was made for, and off by a constant factor for
/// others; providers do not document the overhead of messages or the tokens that they add. Reported
/// usage corrects all of this ([`Correction`]): after the first report, estimates for an agent with
/// a few thousand tokens of prompt and tools are within a few percent.
///
/// A counter belongs to one model: make one for each, and share its clones, which learn together.
/// It learns from model calls through its [`layer`](Self::layer), or from [`learn`](Self::learn).
/// Newer reports weigh more. Counts of texts and messages are multiplied by the learned factor; a
/// whole prompt also includes the hidden tokens.
///
/// # Example
///
/// ```
/// use agent_core::{TokenCounter, Usage};
/// use agent_llm::tokens::{ApproximateCounter, CalibratedCounter, IncrementalCounter};
///
/// let counter = CalibratedCounter::new(IncrementalCounter::new(ApproximateCounter));
/// assert_eq!(counter.text(&"word ".repeat(40_000)), 50_000);
/// counter.learn(20_000, &Usage::new(24_000, 50)); // a prompt that was estimated at 20,000
/// assert!((59_000..61_000).contains(&counter.text(&"word ".repeat(40_000))));
/// ```
#[derive(Clone)]
pub struct CalibratedCounter(Arc<Inner>);

struct Inner {
    counter: Box<dyn TokenCounter>,
    learned: Mutex<Correction>,
}

impl CalibratedCounter {
    /// Creates a counter without corrections, which counts as `counter` does.
    pub fn new(counter: impl TokenCounter) -> Self {
        Self(Arc::new(Inner { counter: Box::new(counter), learned: Mutex::default() }))
    }

    /// Returns the current correction.
    pub fn correction(&self) -> Correction {
        *self.learned()
    }

    /// Returns the factor applied to counts; 1 before the first report.
    pub fn factor(&self) -> f64 {
        self.learned().factor()
    }

    /// Records that a prompt with an estimate of `estimated` tokens, by the inner counter, was
    /// reported as `usage`. Usage of zero calls is ignored.
    pub fn learn(&self, estimated: u64, usage: &Usage) {
        self.learned().learn(estimated, usage);
    }

    /// Learns from the usage that the provider reported for this request.
    pub(crate) fn learn_from(&self, req: &ModelRequest, usage: &Usage) {
        self.learn(req.tokens(&*self.0.counter), usage);
    }

    /// Returns a layer that learns from model calls. Place it anywhere inside a cache, and around
    /// one model only.
    pub fn layer(&self) -> CalibrationLayer {
        CalibrationLayer(self.clone())
    }

    fn learned(&self) -> MutexGuard<'_, Correction> {
        self.0.learned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn times(&self, tokens: u64) -> u64 {
        self.learned().part(tokens)
    }
}

impl TokenCounter for CalibratedCounter {
    fn text(&self, text: &str) -> u64 {
        self.times(self.0.counter.text(text))
    }

    fn media(&self, media: &Media, kind: MediaKind) -> u64 {
        self.times(self.0.counter.media(media, kind))
    }

    fn message(&self, message: &Message) -> u64 {
        self.times(self.0.counter.message(message))
    }

    fn tools(&self, tools: &ToolSpecs) -> u64 {
        self.times(self.0.counter.tools(tools))
    }

    fn history(&self, history: &History) -> u64 {
        self.times(self.0.counter.history(history))
    }

    fn prompt(&self, system: Option<&SystemMessage>, tools: &ToolSpecs, messages: &History) -> u64 {
        let estimated = self.0.counter.prompt(system, tools, messages);
        self.learned().prompt(estimated)
    }
}

impl fmt::Debug for CalibratedCounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (factor, hidden) = (self.factor(), self.correction().hidden());
        f.debug_struct("CalibratedCounter").field("factor", &factor).field("hidden", &hidden).finish_non_exhaustive()
    }
}

/// Layer that trains a [`CalibratedCounter`] from model calls.
#[derive(Clone, Debug)]
pub struct CalibrationLayer(CalibratedCounter);

/// Service created by [`CalibrationLayer`].
#[derive(Clone)]
pub struct Calibration<S> {
    counter: CalibratedCounter,
    inner: S,
}

impl<S> Layer<S> for CalibrationLayer {
    type Service = Calibration<S>;

    fn layer(&self, inner: S) -> Calibration<S> {
        Calibration { counter: self.0.clone(), inner }
    }
}

impl<S> Service<ModelRequest> for Calibration<S>
where
    S: Service<ModelRequest, Response = ModelResponse>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
{
    type Response = ModelResponse;
    type Error = Error;
    type Future = BoxFuture<'static, Result<ModelResponse>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.inner.poll_ready(cx).map_err(own)
    }

    fn call(&mut self, req: ModelRequest) -> Self::Future {
        let counter = self.counter.clone();
        let estimated = req.tokens(&*counter.0.counter);
        let answer = self.inner.call(req);
        boxed(|| async move {
            let response = answer.await.map_err(own)?;
            counter.learn(estimated, &response.usage);
            Ok(response)
        })
    }
}

impl<S> fmt::Debug for Calibration<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Calibration")
            .field("counter", &self.counter)
            .field("inner", &std::any::type_name::<S>())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use agent_core::{ModelService, ToolSpec, testing::detached_run};
    use serde_json::json;
    use tower::{ServiceExt, service_fn};

    use super::*;
    use crate::tokens::{ApproximateCounter, IncrementalCounter};

    fn counter() -> CalibratedCounter {
        CalibratedCounter::new(IncrementalCounter::new(ApproximateCounter))
    }

    /// Simulates a provider whose tokenizer counts more, with overhead per prompt and message.
    fn reported(req: &ModelRequest) -> Usage {
        let tokens = req.tokens(&ApproximateCounter);
        Usage::new((tokens as f64 * 1.37) as u64 + 4 * req.messages.len() as u64 + 60, 10)
    }

    fn tools() -> ToolSpecs {
        let about = "Does one of the things that an agent may want to have done.";
        (0..50).map(|n| ToolSpec::new(format!("tool_{n}"), about, json!({"type": "object"}))).collect()
    }

    #[tokio::test]
    async fn after_the_first_report_estimates_are_within_three_percent() {
        let counter = counter();
        let provider = service_fn(|req: ModelRequest| async move {
            Ok::<_, Error>(ModelResponse::new("done").with_usage(reported(&req)))
        });
        let stack = ModelService::new(counter.layer().layer(ModelService::new(provider)));
        let (mut history, tools) = (History::default(), tools());
        for turn in 0..50 {
            let words = "some words of a conversation ".repeat(20 + turn % 7);
            history.push(Message::user(words)).expect("paired");
            let run = detached_run(history.clone());
            let mut req = ModelRequest::new(run.cx().clone());
            req.tools = tools.clone();
            let (estimate, real) = (req.tokens(&counter) as f64, reported(&req).prompt() as f64);
            assert!(turn == 0 || (estimate / real - 1.0).abs() < 0.03, "turn {turn}: {estimate} for {real}");
            stack.clone().oneshot(req).await.expect("an answer");
        }
    }

    #[test]
    fn clones_learn_together_and_the_cache_of_the_provider_is_part_of_the_prompt() {
        let counter = counter();
        let mut usage = Usage::new(50_000, 5);
        (usage.cached, usage.cache_write) = (100_000, 50_000);
        (0..5).for_each(|_| counter.clone().learn(100_000, &usage));
        assert!((1.9..=2.0).contains(&counter.factor()), "{counter:?}");
        assert_eq!(counter.text(&"x".repeat(4_000)), counter.correction().part(1_000));
    }

    #[test]
    fn a_prompt_has_what_is_hidden_in_it_and_a_message_has_not() {
        let counter = counter();
        for tokens in [200, 4_000, 800, 200] {
            counter.learn(tokens, &Usage::new(tokens + 1_000, 5));
        }
        let history = History::from_messages([Message::user("x".repeat(400))]).expect("paired");
        let (prompt, alone) = (counter.prompt(None, &ToolSpecs::default(), &history), counter.history(&history));
        assert_eq!(prompt, alone + counter.correction().hidden());
        assert!((1_050..1_200).contains(&prompt), "{prompt}");
    }
}
