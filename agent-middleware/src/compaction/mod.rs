//! Compaction: keeps a conversation within the model's context window.
//!
//! [`ContextCompaction`] shrinks a conversation when a [`Trigger`] fires, with a [`Strategy`];
//! [`LongToolOutput`] limits the size of single outputs. For code that configures compaction, and
//! for authors of strategies, which work on [`Unit`]s.
//!
//! ```
//! use agent_middleware::{ContextCompaction, compaction::{ClearToolResults, Keep, Trigger}};
//!
//! let compaction = ContextCompaction::builder()
//!     .trigger(Trigger::Tokens(100_000))
//!     .strategy(ClearToolResults::new().keep(Keep::Iterations(3)))
//!     .build()?;
//! # drop(compaction);
//! # Ok::<(), agent_core::Error>(())
//! ```

mod builder;
mod config;
mod keep;
mod long_tool_output;
mod note;
mod perform;
mod request;
mod strategies;
mod task;
mod token_count;
mod trigger;
mod unit;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use agent_core::{
    ErrorKind, EventKind, Flow, GlobalStorage, History, Key, Middleware, ModelNext, ModelRequest, ModelResponse,
    PerRun, Placement, Result, RunCx, RunEnd, TokenCounter, Tool, ToolSpec, ToolSpecs, boxed, event::CompactionMode,
    model::Spoken,
};
use async_trait::async_trait;

pub use self::{
    builder::ContextCompactionBuilder,
    config::{CompactionConfig, StrategyConfig, SummaryConfig},
    keep::Keep,
    long_tool_output::{LongToolOutput, LongToolOutputBuilder, LongToolOutputConfig},
    strategies::{
        CacheAware, CachePrices, ClampMessages, ClearToolResults, Custom, DedupReads, OffloadToolResults,
        SlidingWindow, Strategy, Summary, Tiers, strategy_fn,
    },
    task::{Pins, Task},
    trigger::Trigger,
    unit::Unit,
};
use self::{
    note::Note,
    perform::{Cause, carried},
    token_count::{Size, TokenCount},
    trigger::Situation,
};
use crate::archive::{Archive, READ_ARCHIVED, SEARCH_HISTORY};

/// Time of the model's last response, in milliseconds since 1970: for later runs of the same
/// session.
const ANSWERED: Key<u64> = Key::new("answered_at");

/// Keeps the conversation within the model's context window: counts its tokens before each model
/// call, and when the [`Trigger`] fires, the [`Strategy`] shrinks it.
///
/// By default, the trigger is three quarters of the model's known context window, and the strategy
/// is the cheaper of clearing old tool results and of a sliding window, considering the provider's
/// prompt cache ([`CacheAware`]).
///
/// * The stored history changes, not only the request: there is a journal entry and an event, and a
///   recovered run finds the compaction done.
/// * The types guarantee that a call is never separated from its results: strategies work on
///   [`Unit`]s.
/// * A compaction that does not shrink the conversation replaces nothing and reports it; it is not
///   retried until the conversation has grown by 5 %.
/// * Emergency path: a prompt that the provider refuses as too long is compacted more aggressively
///   and sent once more. Readers of chunks are notified to discard what they have shown.
/// * Below the trigger, a step only counts its new messages, and allocates nothing for the old
///   ones.
/// * With an [archive](ContextCompactionBuilder::archive), the model can search and read removed
///   messages.
///
/// | event | when |
/// |---|---|
/// | [`CompactionStarted`](agent_core::EventKind::CompactionStarted) | a trigger fires |
/// | [`Compaction`](agent_core::EventKind::Compaction) | the compaction succeeded or was unsuccessful; with the numbers |
/// | [`HistoryReplaced`](agent_core::EventKind::HistoryReplaced) | the new conversation is stored: `compact_auto`, `compact_manual`, `compact_emergency` |
///
/// # Order
///
/// Outside middleware that adds to the messages of a call, such as reminders: these are then added
/// to the compacted conversation. A middleware outside that rewrites the messages of a call, such
/// as a redactor, keeps its version for the current call, and sees the compacted conversation from
/// the next call on. Retries may be on either side: neither compacts again.
///
/// ```text
/// // right: the reminder is added to the compacted conversation, and is not compacted itself
/// builder.middleware(ContextCompaction::new()).middleware(reminder)
/// // wrong: the reminder is counted as conversation at every step
/// builder.middleware(reminder).middleware(ContextCompaction::new())
/// ```
///
/// # Example
///
/// ```
/// use agent_middleware::{
///     ContextCompaction,
///     archive::MemoryArchive,
///     compaction::{ClearToolResults, Keep, SlidingWindow, Tiers, Trigger},
/// };
///
/// // What usually does:
/// let usual = ContextCompaction::new();
/// // What else can be said:
/// let compaction = ContextCompaction::builder()
///     .trigger(Trigger::Fraction(0.8).or(Trigger::Messages(400)))
///     .strategy(
///         Tiers::new()
///             .then(ClearToolResults::new().keep(Keep::Iterations(5)).except(["read_plan"]))
///             .then(SlidingWindow::new(20)),
///     )
///     .archive(MemoryArchive::new())
///     .build()?;
/// # drop((usual, compaction));
/// # Ok::<(), agent_core::Error>(())
/// ```
pub struct ContextCompaction {
    config: CompactionConfig,
    strategy: Arc<dyn Strategy>,
    emergency: Arc<dyn Strategy>,
    counter: Arc<dyn TokenCounter>,
    archive: Option<Arc<dyn Archive>>,
    clock: Arc<dyn Fn() -> SystemTime + Send + Sync>,
    tools: Vec<Arc<dyn Tool>>,
    runs: PerRun<Mutex<TokenCount>>,
    views: PerRun<Mutex<View>>,
}

/// Tools that a run offers, and those of them that are shown before anything was archived.
#[derive(Debug, Default)]
struct View {
    offered: ToolSpecs,
    shown: ToolSpecs,
}

impl ContextCompaction {
    /// Creates the middleware with its defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a builder, to change the defaults.
    pub fn builder() -> ContextCompactionBuilder {
        ContextCompactionBuilder::default()
    }

    /// Creates the compaction that `config` describes, without model and archive.
    ///
    /// # Errors
    /// As [`ContextCompactionBuilder::build`].
    pub fn from_config(config: CompactionConfig) -> Result<Self> {
        Self::builder().config(config).build()
    }

    /// Tokens that a prompt may have: as configured, or what the context window leaves beside the answer.
    fn window(&self, req: &ModelRequest) -> Option<u64> {
        self.config.max_tokens.or_else(|| req.model.as_ref()?.prompt_window(req.params.max_tokens))
    }

    /// Returns the time since the model's last response to this agent in this session.
    fn since_answer(&self, cx: &RunCx) -> Result<Option<Duration>> {
        let answered = answers(cx).get(&ANSWERED)?;
        Ok(answered.and_then(|at| (self.clock)().duration_since(UNIX_EPOCH + Duration::from_millis(at)).ok()))
    }

    /// Replaces the stored history durably, before it is used.
    async fn keep(cx: &RunCx, history: &History, mode: CompactionMode, focused: bool) -> Result<()> {
        let reason = if focused { "compact_focused" } else { mode.reason() };
        cx.keep_history(history.clone(), reason).await
    }

    /// Hides the tools of the archive until it contains something.
    fn hide_empty_archive(&self, cx: &RunCx, req: &mut ModelRequest) -> Result<()> {
        if self.tools.is_empty() || answers(cx).get(&ARCHIVED)?.unwrap_or_default() {
            return Ok(());
        }
        let view = self.views.of(cx, Mutex::default);
        let mut view = view.lock().unwrap_or_else(PoisonError::into_inner);
        if view.offered.as_ptr() != req.tools.as_ptr() || view.offered.len() != req.tools.len() {
            let is_shown = |spec: &&ToolSpec| ![SEARCH_HISTORY, READ_ARCHIVED].contains(&spec.name.as_str());
            let shown = req.tools.iter().filter(is_shown).cloned().collect();
            *view = View { offered: req.tools.clone(), shown };
        }
        req.tools = view.shown.clone();
        Ok(())
    }

    /// Warns, once in a run, that the trigger holds whatever is removed.
    fn warn_of_trigger(&self, cx: &RunCx, run: &Mutex<TokenCount>, size: Size, window: Option<u64>) {
        let fixed = Situation { tokens: size.around, window, ..Situation::default() };
        if self.config.trigger.holds(&fixed).is_some() && lock(run).warn() {
            let tokens = size.around;
            let message = format!(
                "context_compaction: the trigger holds for the system prompt and the tools alone ({tokens} tokens); raise it"
            );
            cx.emit(EventKind::Warning { message });
        }
    }

    /// Compacts the stored history and the request.
    async fn before_call(
        &self,
        req: &mut ModelRequest,
        kept: &History,
        run: &Mutex<TokenCount>,
        size: Size,
        cause: Cause<'_>,
    ) -> Result<()> {
        let (cx, mode, focused) = (req.cx.clone(), cause.mode, cause.focus.is_some());
        let Some(smaller) = self.compact(&cx, kept, size, cause).await? else {
            lock(run).decline(true);
            return Ok(());
        };
        Self::keep(&cx, &smaller, mode, focused).await?;
        if let Some(messages) = carried(&req.messages, kept, &smaller)? {
            req.messages = messages;
        }
        let mut count = lock(run);
        count.decline(false);
        count.measure(&*self.counter, req, &cx.history());
        Ok(())
    }

    /// Returns the refused request in compacted form; `None` if it cannot be compacted.
    async fn after_refusal(
        &self,
        req: &ModelRequest,
        run: &Mutex<TokenCount>,
        refusal: &str,
    ) -> Result<Option<ModelRequest>> {
        let (cx, kept) = (&req.cx, req.cx.history());
        let size = lock(run).measure(&*self.counter, req, &kept);
        // A conversation that another middleware rewrote is compacted for this call only.
        let own = req.messages.continues(&kept);
        let of = if own { &kept } else { &req.messages };
        let trigger = format!("the provider refused {} tokens: {refusal}", size.prompt());
        let window = self.window(req);
        let cause = Cause { mode: CompactionMode::Emergency, trigger, focus: None, window };
        let Some(smaller) = self.compact(cx, of, size, cause).await? else { return Ok(None) };
        let Some(messages) = carried(&req.messages, of, &smaller)? else { return Ok(None) };
        if own {
            Self::keep(cx, &smaller, CompactionMode::Emergency, false).await?;
        }
        let mut again = req.clone();
        again.messages = messages.clone();
        let mut count = lock(run);
        count.replace(req.messages.clone(), messages);
        count.measure(&*self.counter, &again, &cx.history());
        Ok(Some(again))
    }
}

impl Default for ContextCompaction {
    fn default() -> Self {
        Self::builder().build().expect("the defaults are sound: a test builds them")
    }
}

/// True once a compaction put messages of this agent into the archive.
const ARCHIVED: Key<bool> = Key::new("archived");

/// Digest of the last input whose summary was not smaller than the messages.
const USELESS_SUMMARY: Key<String> = Key::new("useless_summary");

/// Storage of this agent's compactions in its session.
fn answers(cx: &RunCx) -> GlobalStorage {
    cx.globals().scope("context_compaction").scope(&cx.ids().agent_id)
}

fn lock(run: &Mutex<TokenCount>) -> MutexGuard<'_, TokenCount> {
    run.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl Middleware for ContextCompaction {
    fn name(&self) -> &str {
        "context_compaction"
    }

    fn placement(&self) -> Placement {
        Placement::default().unique()
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let on_request = self.config.on_request.then(request::tool);
        self.tools.iter().cloned().chain(on_request).collect()
    }

    async fn after_agent(&self, cx: &RunCx, end: &mut Result<RunEnd>) -> Result<()> {
        self.runs.end(cx);
        self.views.end(cx);
        if self.config.on_request {
            request::end(cx, end);
        }
        Ok(())
    }

    async fn before_model(&self, cx: &RunCx, req: &mut ModelRequest) -> Result<Flow<ModelResponse>> {
        self.hide_empty_archive(cx, req)?;
        let (kept, run) = (cx.history(), self.runs.of(cx, Mutex::default));
        let wish = if self.config.on_request { request::take(cx)? } else { None };
        let since_answer = if self.config.trigger.looks_at_time() { self.since_answer(cx)? } else { None };
        let (size, declined) = {
            let mut count = lock(&run);
            count.begin();
            let size = count.measure(&*self.counter, req, &kept);
            (size, count.is_declined())
        };
        let window = self.window(req);
        let now = Situation { tokens: size.prompt(), window, messages: req.messages.len(), since_answer };
        let (mode, trigger) = match (&wish, self.config.trigger.holds(&now)) {
            (Some(_), _) => (CompactionMode::Requested, "the model asked for it".to_owned()),
            (None, Some(why)) if !declined => (CompactionMode::Regular, why),
            _ => return Ok(Flow::Continue),
        };
        self.warn_of_trigger(cx, &run, size, window);
        let focus = wish.as_ref().and_then(|wish| wish.focus.as_deref());
        let cause = Cause { mode, trigger, focus, window };
        boxed(|| self.before_call(req, &kept, &run, size, cause)).await?;
        Ok(Flow::Continue)
    }

    async fn after_model(&self, cx: &RunCx, res: &mut ModelResponse) -> Result<()> {
        if let Some(run) = self.runs.get(cx) {
            lock(&run).learn(&res.usage);
        }
        if self.config.trigger.looks_at_time() {
            let now = (self.clock)().duration_since(UNIX_EPOCH).unwrap_or_default();
            answers(cx).set(&ANSWERED, &u64::try_from(now.as_millis()).unwrap_or(u64::MAX))?;
        }
        Ok(())
    }

    async fn wrap_model_call(&self, mut req: ModelRequest, next: ModelNext<'_>) -> Result<ModelResponse> {
        if !self.config.emergency {
            return next.run(req).await;
        }
        let run = self.runs.of(&req.cx, Mutex::default);
        // A retry from an outer layer still holds the messages that were refused before.
        if let Some(messages) = lock(&run).replacement(&req.messages) {
            req.messages = (*messages).clone();
        }
        let spoken = Spoken::default();
        let refusal = match next.run(spoken.listen(req.clone())).await {
            Err(e) if e.kind() == ErrorKind::ContextOverflow && lock(&run).refuse(req.cx.step()) => e,
            other => return other,
        };
        match boxed(|| self.after_refusal(&req, &run, refusal.message())).await? {
            Some(again) => {
                spoken.take_back(&again.sink)?;
                let cx = again.cx.clone();
                let answered = next.run(again).await;
                if answered.as_ref().is_err_and(|e| e.kind() == ErrorKind::ContextOverflow) {
                    let message = "the prompt is too long for the provider even after it was compacted".into();
                    cx.emit(EventKind::Warning { message });
                }
                answered
            }
            None => Err(refusal),
        }
    }
}

impl fmt::Debug for ContextCompaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContextCompaction")
            .field("config", &self.config)
            .field("strategy", &self.strategy)
            .field("archive", &self.archive)
            .field("runs", &self.runs)
            .finish_non_exhaustive()
    }
}
