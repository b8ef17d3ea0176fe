//! The middleware that turns an agent into a solver: it replaces the conversation by each role's
//! prompt, and a model's calls by the worker's plans. The executor provides the loop, the tools and
//! the journal.

use std::{
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use agent_core::{
    AssistantMessage, Block, Error, ErrorKind, EventKind, Exit, Flow, History, Message, Middleware, ModelInfo,
    ModelNext, ModelRequest, ModelResponse, Part, PerRun, Result, RunCx, ToolNext, ToolOutput, ToolRequest, ToolSpecs,
    UserMessage, Verdict, async_trait,
};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::{
    QueryCache,
    ask::Ask,
    progress::Progress,
    script::{Next, Script, TOO_LATE},
};

/// Text of an empty answer.
const SILENT: &str = "(nothing was said)";

pub(crate) struct Conductor {
    /// Set when the agent is built, because it needs the tools.
    pub(crate) script: Arc<OnceLock<Script>>,
    pub(crate) infos: [Option<Arc<ModelInfo>>; 4],
    pub(crate) max_time: Duration,
    pub(crate) output_time: Duration,
    pub(crate) cache: Option<PathBuf>,
    pub(crate) runs: PerRun<Mutex<Live>>,
}

/// Timing of a run in this process.
pub(crate) struct Live {
    since: Instant,
    /// Active time of the run in earlier processes.
    before: Duration,
    /// Timeout of the current role's answer.
    patience: Duration,
    /// True if nothing follows the current role's answer.
    last: bool,
}

impl Live {
    fn elapsed(&self) -> Duration {
        self.before + self.since.elapsed()
    }
}

impl Conductor {
    fn script(&self) -> Result<&Script> {
        self.script.get().ok_or_else(|| Error::config("the solver was not built"))
    }

    fn with_live<T>(&self, cx: &RunCx, f: impl FnOnce(&mut Live) -> T) -> Result<T> {
        let before = Progress::of(cx)?.elapsed();
        let now = || Mutex::new(Live { since: Instant::now(), before, patience: self.max_time, last: false });
        let live = self.runs.of(cx, now);
        let mut live: MutexGuard<'_, Live> = live.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(f(&mut live))
    }

    /// Replaces the conversation by a role's prompt.
    fn put(&self, ask: Ask, req: &mut ModelRequest) -> Result<()> {
        let info = self.infos[ask.method.slot() as usize].clone();
        let native = info.as_ref().is_some_and(|info| info.json_schema);
        let params = Arc::make_mut(&mut req.params);
        params.output = ask.format.filter(|_| native);
        params.max_tokens = ask.max_tokens.or(params.max_tokens);
        let parts = std::iter::once(Part::text(ask.prompt)).chain(ask.attachments).collect();
        req.messages = History::from_messages([Message::User(UserMessage::new(parts))])?;
        req.tools = ToolSpecs::default();
        req.model = info;
        Ok(())
    }
}

#[async_trait]
impl Middleware for Conductor {
    fn name(&self) -> &str {
        "flow"
    }

    async fn before_agent(&self, cx: &RunCx) -> Result<()> {
        let start = async {
            let history = cx.history();
            let after = history.iter().rev().position(|message| matches!(message, Message::User(_)));
            Ok(json!(after.map(|after| history.len() - 1 - after)))
        };
        let Value::Number(start) = cx.decide("flow/start", start).await? else {
            return Err(Error::new(ErrorKind::InvalidRequest, "there is no query: begin the run with a user message"));
        };
        let mut progress = Progress::of(cx)?;
        progress.start = start.as_u64().unwrap_or_default() as usize;
        progress.keep(cx)?;
        if let Some(root) = &self.cache {
            QueryCache::create(root, cx)?;
        }
        Ok(())
    }

    async fn before_model(&self, cx: &RunCx, req: &mut ModelRequest) -> Result<Flow<ModelResponse>> {
        let (script, history) = (self.script()?, cx.history());
        let mut progress = Progress::of(cx)?;
        let messages: Vec<_> = history.iter().skip(progress.start).collect();
        progress.set_elapsed(self.with_live(cx, |live| live.elapsed())?);
        if progress.cut.is_none() && progress.elapsed() >= self.max_time {
            progress.cut = Some(messages.len());
        }
        progress.keep(cx)?;
        let play = script.play(&messages, &progress);
        match play.next {
            Next::Ask(ask) => {
                let (method, step) = (ask.method, ask.step);
                let last =
                    play.outputs.len() + 1 == script.outputs.len() && (method.is_output() || !script.has_steps());
                let left = self.max_time.saturating_sub(progress.elapsed());
                self.with_live(cx, |live| {
                    live.patience = if method.is_output() { self.output_time } else { left };
                    live.last = last;
                })?;
                let value = json!({"role": method.role(), "method": method, "step": step});
                cx.emit(EventKind::Custom { name: "flow".into(), value });
                self.put(*ask, req)?;
                Ok(Flow::Continue)
            }
            Next::Act(calls) => Ok(Flow::Answer(ModelResponse::new(AssistantMessage::new(calls)))),
            Next::Done => {
                let mut done = ModelResponse::new(AssistantMessage::new(Vec::new()));
                done.verdict = Verdict::Finish;
                Ok(Flow::Answer(done))
            }
        }
    }

    async fn wrap_model_call(&self, req: ModelRequest, next: ModelNext<'_>) -> Result<ModelResponse> {
        let patience = self.with_live(&req.cx, |live| live.patience)?;
        match timeout(patience, next.run(req)).await {
            Ok(answered) => answered,
            Err(_) => Ok(ModelResponse::new(TOO_LATE)),
        }
    }

    async fn after_model(&self, cx: &RunCx, res: &mut ModelResponse) -> Result<()> {
        // Roles have no tools: drop any calls.
        if res.message.has_calls() {
            res.message.blocks_mut().retain(|block| !matches!(block, Block::ToolCall(_)));
        }
        if !res.message.has_text() {
            res.message.blocks_mut().push(Block::text(SILENT));
        }
        let (last, elapsed) = self.with_live(cx, |live| (live.last, live.elapsed()))?;
        res.verdict = if last { Verdict::Proceed } else { Verdict::Again };
        let mut progress = Progress::of(cx)?;
        progress.set_elapsed(elapsed);
        progress.keep(cx)
    }

    async fn wrap_tool_call(&self, req: ToolRequest, next: ToolNext<'_>) -> Result<ToolOutput> {
        let left = self.with_live(&req.cx, |live| self.max_time.saturating_sub(live.elapsed()))?;
        match timeout(left, next.run(req)).await {
            Ok(output) => output,
            Err(_) => Ok(ToolOutput::error("Not finished: the solver's time was up.")),
        }
    }

    async fn on_exit(&self, cx: &RunCx, exit: &mut Exit) -> Result<Verdict> {
        let solution = self.script()?.solution(&cx.history(), &Progress::of(cx)?);
        if let Some(answer) = solution.answer() {
            exit.answer = answer.to_owned();
        }
        Ok(Verdict::Proceed)
    }

    async fn after_agent(&self, cx: &RunCx, _: &mut Result<agent_core::RunEnd>) -> Result<()> {
        self.runs.end(cx);
        Ok(())
    }
}

impl fmt::Debug for Conductor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conductor").field("max_time", &self.max_time).finish_non_exhaustive()
    }
}
