//! [`Reminders`]: informs a model of its remaining steps and tokens.

use agent_core::{Flow, Message, Middleware, ModelRequest, ModelResponse, PerRun, Placement, Result, RunCx, RunEnd};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Configuration of `Reminders`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct RemindersConfig {
    /// Maximum number of steps of a run, to report how many are left. Default: unset, which reports
    /// no steps.
    pub steps: Option<u32>,
    /// Reports how many tokens of the context are left. Default: false.
    pub tokens: bool,
    /// Size of the context in tokens, if it differs from the model's own
    /// [`context_window`](agent_core::ModelInfo::context_window).
    pub context_window: Option<u64>,
    /// Tokens to leave for an answer: with less than three times as many left, the model is asked
    /// to finish. Default: 16,384.
    pub room: Option<u64>,
    /// Texts that are repeated at an interval of steps.
    pub every: Vec<Repeated>,
}

/// A text that is repeated at an interval of steps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Repeated {
    /// Interval in steps; at least one.
    pub steps: u32,
    /// The text.
    pub text: String,
}

const ROOM: u64 = 16_384;

/// Informs a model how many steps and tokens it has left, and repeats other reminders.
///
/// The reminder is the last message of the call and not part of the conversation, so reminders do
/// not accumulate. It appears once the model has responded, and grows more urgent towards the end.
/// The remaining context is derived from the provider's usage report of the previous call.
///
/// # Order
///
/// ```text
/// // right: the newest stored message has the cache mark, and the reminder follows it
/// builder.middleware(PromptCaching::new()).middleware(Reminders::new().steps(20))
/// // wrong: the cache mark is on the reminder, which changes in each call
/// builder.middleware(Reminders::new().steps(20)).middleware(PromptCaching::new())
/// ```
///
/// # Example
///
/// ```
/// use agent_middleware::Reminders;
///
/// let reminders = Reminders::new().steps(20).tokens().every(5, "Keep the list of todos up to date.");
/// # drop(reminders);
/// ```
#[derive(Debug, Default)]
pub struct Reminders {
    config: RemindersConfig,
    /// Tokens of the context after the last response.
    used: PerRun<AtomicU64>,
}

impl Reminders {
    /// Creates the middleware without reminders.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reports how many of these steps are left: the agent's `max_steps`.
    #[must_use]
    pub fn steps(mut self, most: u32) -> Self {
        self.config.steps = Some(most);
        self
    }

    /// Reports how many tokens of the model's context are left.
    #[must_use]
    pub fn tokens(mut self) -> Self {
        self.config.tokens = true;
        self
    }

    /// Sets the size of the context in tokens, if it differs from the model's own.
    #[must_use]
    pub fn context_window(mut self, tokens: u64) -> Self {
        self.config.context_window = Some(tokens);
        self
    }

    /// Adds `text` every `steps` steps.
    #[must_use]
    pub fn every(mut self, steps: u32, text: impl Into<String>) -> Self {
        self.config.every.push(Repeated { steps, text: text.into() });
        self
    }

    fn of_steps(&self, cx: &RunCx) -> Option<String> {
        let most = self.config.steps?;
        let left = most.saturating_sub(cx.step()).saturating_add(1); // the current one counts
        Some(match left {
            0 | 1 => "This is your last step: give your answer now, without calling a tool.".into(),
            2 | 3 => format!("You have {left} steps left of {most}: come to an end."),
            _ => format!("Step {} of {most}.", cx.step()),
        })
    }

    fn of_tokens(&self, cx: &RunCx, req: &ModelRequest) -> Option<String> {
        let window = req.model.as_ref().and_then(|model| model.context_window);
        let window = self.config.context_window.or(window).filter(|_| self.config.tokens)?;
        let used = self.used.get(cx)?.load(Relaxed);
        let left = window.saturating_sub(used);
        let room = self.config.room.unwrap_or(ROOM);
        Some(match left < room.saturating_mul(3) {
            true => format!("Only {left} tokens of your context are left: finish soon and write little."),
            false => format!("{left} tokens of your context of {window} are left."),
        })
    }
}

impl From<RemindersConfig> for Reminders {
    fn from(config: RemindersConfig) -> Self {
        Self { config, used: PerRun::default() }
    }
}

#[async_trait]
impl Middleware for Reminders {
    fn name(&self) -> &str {
        "reminders"
    }

    fn placement(&self) -> Placement {
        Placement::default().inside("context_compaction").inside("prompt_caching")
    }

    async fn before_model(&self, cx: &RunCx, req: &mut ModelRequest) -> Result<Flow<ModelResponse>> {
        if !req.messages.iter().rev().any(|message| message.as_assistant().is_some()) {
            return Ok(Flow::Continue);
        }
        let due = |repeated: &&Repeated| cx.step().is_multiple_of(repeated.steps.max(1));
        let repeated = self.config.every.iter().filter(due).map(|repeated| repeated.text.clone());
        let all: Vec<_> = self.of_steps(cx).into_iter().chain(self.of_tokens(cx, req)).chain(repeated).collect();
        if !all.is_empty() {
            req.messages.push(Message::user(all.join("\n")))?;
        }
        Ok(Flow::Continue)
    }

    async fn after_model(&self, cx: &RunCx, res: &mut ModelResponse) -> Result<()> {
        if self.config.tokens {
            self.used.of(cx, AtomicU64::default).store(res.usage.total(), Relaxed);
        }
        Ok(())
    }

    async fn after_agent(&self, cx: &RunCx, _: &mut Result<RunEnd>) -> Result<()> {
        self.used.end(cx);
        Ok(())
    }
}
