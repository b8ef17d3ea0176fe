//! [`CalibratedCounter`].

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use agent_core::{
    BoxError, BoxFuture, Error, History, Message, ModelRequest, ModelResponse, Result, SystemMessage, TokenCounter,
    ToolSpecs, Usage, boxed,
};
use tower::{Layer, Service};

use crate::service::own;

/// How much of what was learned before counts beside a new report.
const MEMORY: f64 = 0.7;
/// How far a count may be from what the counter says, either way.
const FURTHEST: f64 = 4.0;

/// Counts as another counter does, times a factor that it learns from what the provider reports.
///
/// A tokenizer is exact for the models that it was made for and off by some constant for all others, and nobody says what
/// messages cost around their text. The provider's reports of what prompts used put both right: after the first, estimates
/// for an agent with a few thousand tokens of prompt and tools are within a few percent.
///
/// The factor belongs to one model: make one counter for each, and give its clones, which learn together, to everybody who
/// counts for it. It learns from model calls that go through its [`layer`](Self::layer), or from
/// [`learn`](Self::learn). Reports of large prompts weigh more, newer ones too, and the factor stays between 1/4 and 4.
///
/// # Example
///
/// ```
/// use agent_core::{TokenCounter, Usage};
/// use agent_llm::tokens::{ApproximateCounter, CalibratedCounter, IncrementalCounter};
///
/// let counter = CalibratedCounter::new(IncrementalCounter::new(ApproximateCounter));
/// assert_eq!(counter.text(&"word ".repeat(400)), 500);
/// counter.learn(1_000, &Usage::new(1_200, 50)); // a prompt that was estimated at 1,000
/// assert_eq!(counter.text(&"word ".repeat(400)), 600);
/// ```
#[derive(Clone)]
pub struct CalibratedCounter(Arc<Inner>);

struct Inner {
    counter: Box<dyn TokenCounter>,
    learned: Mutex<Learned>,
}

/// Sums of prompts, in which older ones weigh less and less.
#[derive(Clone, Copy, Debug, Default)]
struct Learned {
    estimated: f64,
    reported: f64,
}

impl CalibratedCounter {
    /// A counter that has learned nothing yet and counts as `counter` does.
    pub fn new(counter: impl TokenCounter) -> Self {
        Self(Arc::new(Inner { counter: Box::new(counter), learned: Mutex::default() }))
    }

    /// What the counts are multiplied with; 1 until something was learned.
    pub fn factor(&self) -> f64 {
        let Learned { estimated, reported } = *self.learned();
        if estimated > 0.0 { (reported / estimated).clamp(1.0 / FURTHEST, FURTHEST) } else { 1.0 }
    }

    /// Learns that a prompt, which the counter inside estimated at so many tokens, was reported as `usage`. Usage of no call
    /// teaches nothing.
    pub fn learn(&self, estimated: u64, usage: &Usage) {
        if usage.calls != 1 || usage.prompt() == 0 || estimated == 0 {
            return;
        }
        let mut learned = self.learned();
        learned.estimated = learned.estimated * MEMORY + estimated as f64;
        learned.reported = learned.reported * MEMORY + usage.prompt() as f64;
    }

    /// A layer that learns from the model calls that go through it: anywhere inside a cache, and around one model only.
    pub fn layer(&self) -> CalibrationLayer {
        CalibrationLayer(self.clone())
    }

    fn learned(&self) -> MutexGuard<'_, Learned> {
        self.0.learned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn times(&self, tokens: u64) -> u64 {
        (tokens as f64 * self.factor()).round() as u64
    }
}

impl TokenCounter for CalibratedCounter {
    fn text(&self, text: &str) -> u64 {
        self.times(self.0.counter.text(text))
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
        self.times(self.0.counter.prompt(system, tools, messages))
    }
}

impl fmt::Debug for CalibratedCounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CalibratedCounter").field("factor", &self.factor()).finish_non_exhaustive()
    }
}

/// Teaches a [`CalibratedCounter`] from the model calls that go through it.
#[derive(Clone, Debug)]
pub struct CalibrationLayer(CalibratedCounter);

/// The service that [`CalibrationLayer`] makes.
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
    use proptest::prelude::*;
    use serde_json::json;
    use tower::{ServiceExt, service_fn};

    use super::*;
    use crate::tokens::{ApproximateCounter, IncrementalCounter};

    fn counter() -> CalibratedCounter {
        CalibratedCounter::new(IncrementalCounter::new(ApproximateCounter))
    }

    /// A provider whose tokenizer makes more of everything, and adds something to each prompt and message.
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
    fn usage_that_is_no_report_of_one_call_teaches_nothing() {
        let counter = counter();
        counter.learn(100, &Usage::default());
        counter.learn(100, &Usage::new(0, 5));
        counter.learn(0, &Usage::new(100, 5));
        let mut two = Usage::new(300, 5);
        two += Usage::new(300, 5);
        counter.learn(100, &two);
        assert_eq!(counter.factor(), 1.0);
    }

    #[test]
    fn clones_learn_together_and_the_cache_of_the_provider_is_part_of_the_prompt() {
        let counter = counter();
        let mut usage = Usage::new(50, 5);
        (usage.cached, usage.cache_write) = (100, 50);
        counter.clone().learn(100, &usage);
        assert_eq!((counter.factor(), counter.text("eight...")), (2.0, 4));
    }

    proptest! {
        #[test]
        fn the_factor_is_bounded_and_between_the_ratios_that_were_seen(
            reports in prop::collection::vec((1_u64..100_000, 1_u64..100_000), 1..20),
        ) {
            let counter = counter();
            let mut ratios = Vec::new();
            for (estimated, prompt) in reports {
                counter.learn(estimated, &Usage::new(prompt, 1));
                ratios.push(prompt as f64 / estimated as f64);
                let least = ratios.iter().copied().fold(f64::MAX, f64::min).clamp(0.25, 4.0);
                let most = ratios.iter().copied().fold(f64::MIN, f64::max).clamp(0.25, 4.0);
                prop_assert!((least - 1e-9..=most + 1e-9).contains(&counter.factor()));
            }
        }
    }
}
