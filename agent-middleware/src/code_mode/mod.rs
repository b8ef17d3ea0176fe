//! Programs that call tools: [`CodeMode`].
//!
//! ```
//! use agent_middleware::{CodeMode, code_mode::CodeModeConfig};
//!
//! let config: CodeModeConfig = serde_json::from_str(r#"{"tools": ["crm_*"], "time": 0.5, "calls": 20}"#)?;
//! let code = CodeMode::from(config);
//! # drop(code);
//! # Ok::<(), serde_json::Error>(())
//! ```

mod config;
mod functions;
mod history;
mod interpreter;
mod memory;
mod program;
mod screen;
mod source;
mod stubs;
mod tool;
mod values;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use agent_core::{
    AssistantMessage, Block, Flow, History, Message, Middleware, ModelRequest, ModelResponse, PerRun, Placement,
    Result, RunCx, RunEnd, Tool, ToolResults, ToolSpecs, Verdict,
};
use async_trait::async_trait;

pub use self::config::CodeModeConfig;
use self::{
    functions::Function,
    interpreter::{Ended, Job, Progress, run_all},
    program::{Answer, Program, UNDER_WAY},
    tool::{Args, RunCode},
};

/// Has the model write small programs in Python that call the agent's tools, in place of one call after the other: what lies
/// between the calls needs no model, and what it does not print costs no tokens.
///
/// The model is offered one tool, `run_code`, whose description has the other tools as functions. Programs run in an
/// interpreter that has no access to the system. **Each call of a program is a call of the run**: hooks, approval, permissions, budgets and
/// deadlines hold for it, it has its events and its entry in the journal, and calls that a program makes at once are the calls of one
/// message. A batch of calls is a step of the run. In a run that was killed, or waits for a person, the program goes on where
/// it was: it runs again from its beginning with the results that there are, so that nothing is done twice. When it has
/// ended, the conversation has the call of `run_code` and its result in the place of all that.
///
/// A call has the id of its program's call with a number, as `c1.2`. A tool gives a program its
/// [value](agent_core::ToolOutput::as_value) or else its text. A call that failed raises `RuntimeError` with what the model would
/// have been told. A program that does not await anything calls tools one by one, and has their results at once.
///
/// # What a program can do to the process
///
/// A program is stopped with an error at its limits of [time](Self::time), [recursion](Self::recursion),
/// [calls](Self::calls), [output](Self::output) and [memory](Self::memory). The interpreter shares the process and its heap. On Linux, memory is
/// what the process grows while the program runs, looked at every few milliseconds: a program can use more for a moment, and whatever else
/// grows meanwhile counts too. An executable that installs the interpreter's allocator has a limit that is exact. Elsewhere, only
/// single values are limited.
///
/// Nothing can interrupt one operation on an integer of a million digits: the program ends with an error two seconds after
/// its time, and its thread goes on until the operation is done. An abort inside of the interpreter would end the process; none is known.
/// Whoever runs programs of strangers gives the process limits of its own, from outside.
///
/// # Order
///
/// Outside whatever shortens or replaces the conversation: a program whose results are gone ends with an error that says so. Inside
/// whatever decides which tools there are. What stands outside sees each step of a program as an answer of the model; what stands
/// inside sees the model's own answers alone.
///
/// ```text
/// // right: compaction sees whole programs
/// builder.middleware(CodeMode::new()).middleware(compaction)
/// // wrong: compaction may take away what a program needs
/// builder.middleware(compaction).middleware(CodeMode::new())
/// ```
///
/// Tools that [end the run](agent_core::ExitReason::Tool) are best kept out of programs, with [`except`](Self::except): one that is
/// called in a program ends the run, too, but not what the program does afterwards.
///
/// # Example
///
/// ```
/// use agent_core::testing::{ScriptedModel, Turn};
/// use agent_exec::Agent;
/// use agent_middleware::CodeMode;
/// use serde_json::{Value, json};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().expect("starts").block_on(async {
/// let price = json!({"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]});
/// let price = agent_tools::from_schema("price", "What an item costs.", price, async |args: Value, _: agent_core::ToolRequest| {
///     json!({"item": args["item"], "cents": 250})
/// });
/// let program = "sum([(await price(item))['cents'] for item in ['tea', 'milk', 'bread']])";
/// let model = ScriptedModel::new([Turn::call("c1", "run_code", json!({"code": program})), Turn::text("7.50 in all.")]);
/// let agent = Agent::builder("shop", model.clone()).tool(price).middleware(CodeMode::new()).build()?;
/// let end = agent.run("What do tea, milk and bread cost?").await?.finished().expect("finishes");
/// assert_eq!(model.requests()[0].tools, ["run_code"]);
/// assert_eq!(model.requests()[1].results(), [("c1".into(), "750".into())]);
/// assert_eq!((end.tool_calls["price"], end.usage.calls), (3, 2));
/// # Ok::<(), agent_core::Error>(())
/// # }).expect("runs");
/// ```
pub struct CodeMode(Arc<Shared>);

/// What the middleware and its tool share.
struct Shared {
    config: CodeModeConfig,
    views: PerRun<Mutex<View>>,
}

/// What a run was last shown, and what its programs came to that made no call.
#[derive(Default)]
struct View {
    offered: ToolSpecs,
    shown: ToolSpecs,
    functions: Vec<Function>,
    ended: Vec<(Arc<str>, String, Ended)>,
}

impl CodeMode {
    /// Programs that call all tools.
    pub fn new() -> Self {
        Self::from(CodeModeConfig::default())
    }

    /// Has programs call the tools of this name, in place of all; `*` stands for any characters. Others stay the model's own.
    #[must_use]
    pub fn tools(self, name: impl Into<String>) -> Self {
        self.edit(|config| {
            config.tools.remove("*");
            config.tools.insert(name.into());
        })
    }

    /// Leaves the tools of this name to the model; `*` stands for any characters.
    #[must_use]
    pub fn except(self, name: impl Into<String>) -> Self {
        self.edit(|config| {
            config.except.insert(name.into());
        })
    }

    /// Sets what the tool that runs programs is called.
    #[must_use]
    pub fn tool_name(self, name: impl Into<String>) -> Self {
        self.edit(|config| config.tool = name.into())
    }

    /// Sets how long a program may compute.
    #[must_use]
    pub fn time(self, time: Duration) -> Self {
        self.edit(|config| config.time = time)
    }

    /// Sets how deep functions of a program may call each other, up to 2,000.
    #[must_use]
    pub fn recursion(self, deepest: usize) -> Self {
        self.edit(|config| config.recursion = deepest)
    }

    /// Sets the most calls of tools in one program.
    #[must_use]
    pub fn calls(self, most: usize) -> Self {
        self.edit(|config| config.calls = most)
    }

    /// Sets the most bytes of what a program prints and gives back.
    #[must_use]
    pub fn output(self, bytes: usize) -> Self {
        self.edit(|config| config.output = bytes)
    }

    /// Sets about how many bytes a program may use.
    #[must_use]
    pub fn memory(self, bytes: usize) -> Self {
        self.edit(|config| config.memory = bytes)
    }

    fn edit(self, edit: impl FnOnce(&mut CodeModeConfig)) -> Self {
        let mut config = self.0.config.clone();
        edit(&mut config);
        Self::from(config)
    }

    /// Goes on with the programs that are under way: the next calls, if there are any.
    async fn go_on(&self, cx: &RunCx, req: &mut ModelRequest) -> Result<Option<ModelResponse>> {
        let Some(mut answer) = UNDER_WAY.update(cx, |under_way| under_way.clone())? else { return Ok(None) };
        let messages: Vec<Message> = cx.history().iter().cloned().collect();
        // An answer of this very step was not taken, since the process died before; a closed one is done with.
        if answer.step >= cx.step() || history::is_closed(&answer, &messages) {
            UNDER_WAY.update(cx, |under_way| *under_way = None)?;
            return Ok(None);
        }
        let ended = match self.run_on(&mut answer, &messages, req.tools.is_empty()).await {
            Ok(ended) => ended,
            Err(calls) => {
                UNDER_WAY.update(cx, |under_way| *under_way = Some(answer.clone()))?;
                return Ok(Some(ModelResponse::new(AssistantMessage::new(calls))));
            }
        };
        let mut kept = cx.history();
        history::close(&answer, &ended, &self.0.config.tool, &mut kept)?;
        // Hooks outside may have made another view of the conversation.
        if history::close(&answer, &ended, &self.0.config.tool, &mut req.messages).is_err() {
            req.messages = kept.clone();
        }
        cx.keep_history(kept, "code_mode").await?;
        UNDER_WAY.update(cx, |under_way| *under_way = None)?;
        Ok(None)
    }

    /// What the programs ended with, or the calls that they need next.
    async fn run_on(&self, answer: &mut Answer, history: &[Message], no_tools: bool) -> Result<Vec<Ended>, Vec<Block>> {
        let stopped = |program: &Program, why: &str| Ended::error(format!("{why} {}", program.done()));
        if no_tools {
            let why = "The program was stopped: the run can call no more tools.";
            return Ok(answer.programs.iter().map(|program| stopped(program, why)).collect());
        }
        let results = history::results(answer, history);
        let jobs: Vec<_> = answer.programs.iter().map(|program| program.job(&results)).collect();
        let mut ran = run_all(&self.0.config, jobs.iter().flatten().cloned().collect()).await.into_iter();
        let (mut ended, mut calls) = (Vec::new(), Vec::new());
        for (program, job) in answer.programs.iter_mut().zip(jobs) {
            match job.and_then(|_| ran.next()) {
                // What was done before an error must not be done again by the next program.
                Some(Progress::Ended(mut end)) => {
                    if end.is_error && program.has_called() {
                        end.text = format!("{}\n[{}]", end.text, program.done());
                    }
                    ended.push(end);
                }
                Some(Progress::Needs(next)) => calls.extend(program.take_on(next)),
                None => {
                    let why = "The program was stopped: the conversation was shortened meanwhile, and results that it needs \
                               are gone. Do what is left in another program.";
                    ended.push(stopped(program, why));
                }
            }
        }
        if calls.is_empty() { Ok(ended) } else { Err(calls) }
    }
}

impl Default for CodeMode {
    fn default() -> Self {
        Self::new()
    }
}

impl From<CodeModeConfig> for CodeMode {
    fn from(config: CodeModeConfig) -> Self {
        Self(Arc::new(Shared { config, views: PerRun::default() }))
    }
}

impl Shared {
    fn with_view<R>(&self, cx: &RunCx, look: impl FnOnce(&mut View) -> R) -> R {
        let view = self.views.of(cx, Mutex::default);
        let mut view: MutexGuard<'_, View> = view.lock().unwrap_or_else(PoisonError::into_inner);
        look(&mut view)
    }

    /// What the model is shown of the tools that there are: programs, and what they do not call.
    fn show(&self, cx: &RunCx, offered: &ToolSpecs) -> ToolSpecs {
        self.with_view(cx, |view| {
            if view.offered.as_ptr() != offered.as_ptr() || view.shown.is_empty() {
                let (functions, stubs) = tool::offered(&self.config, offered);
                let others = offered.iter().filter(|tool| !self.config.is_callable(tool));
                let shown = others.map(|other| match other.name == self.config.tool {
                    true => tool::spec(&self.config, &stubs),
                    false => other.clone(),
                });
                view.shown = shown.collect();
                (view.offered, view.functions) = (offered.clone(), functions);
            }
            view.shown.clone()
        })
    }

    /// What this program came to, if it was run when the model answered.
    fn take_ended(&self, cx: &RunCx, id: &str, code: &str) -> Option<Ended> {
        self.with_view(cx, |view| {
            let at = view.ended.iter().position(|(of, source, _)| **of == *id && source == code)?;
            Some(view.ended.swap_remove(at).2)
        })
    }
}

#[async_trait]
impl Middleware for CodeMode {
    fn name(&self) -> &str {
        "code_mode"
    }

    fn placement(&self) -> Placement {
        let placement = Placement::default().outside("context_compaction").outside("prompt_caching");
        placement.inside("tool_search").unique()
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        vec![Arc::new(RunCode(self.0.clone()))]
    }

    async fn before_model(&self, cx: &RunCx, req: &mut ModelRequest) -> Result<Flow<ModelResponse>> {
        if UNDER_WAY.is_set(cx)
            && let Some(calls) = self.go_on(cx, req).await?
        {
            return Ok(Flow::Answer(calls));
        }
        // Where the run does not offer programs, its tools are the model's.
        if req.tools.iter().any(|tool| tool.name == self.0.config.tool) {
            req.tools = self.0.show(cx, &req.tools);
        }
        Ok(Flow::Continue)
    }

    async fn after_model(&self, cx: &RunCx, res: &mut ModelResponse) -> Result<()> {
        let is_program = |block: &Block| matches!(block, Block::ToolCall(call) if *call.name == *self.0.config.tool);
        if !res.message.blocks().iter().any(is_program) {
            return Ok(());
        }
        let message = {
            let mut message = res.message.clone();
            agent_core::engine::unique_ids(&mut message);
            message
        };
        let functions = self.0.with_view(cx, |view| view.functions.clone());
        let programs = message.calls().filter(|call| *call.name == *self.0.config.tool).filter_map(|call| {
            let Args { code } = serde_json::from_str(&call.arguments).ok()?;
            let named = functions.iter().filter(|function| code.contains(&function.name)).cloned().collect();
            Some((call.id.clone(), Job { code, functions: named, known: Vec::new() }))
        });
        let programs: Vec<_> = programs.collect();
        let ran = run_all(&self.0.config, programs.iter().map(|(_, job)| job.clone()).collect()).await;
        let (mut answer, mut ended, mut calls) = (Vec::new(), Vec::new(), Vec::new());
        for ((id, job), progress) in programs.into_iter().zip(ran) {
            match progress {
                Progress::Ended(end) => ended.push((id, job.code, end)),
                Progress::Needs(next) => {
                    let mut program = Program::new(id.clone(), job);
                    calls.push((id, program.take_on(next)));
                    answer.push(program);
                }
            }
        }
        self.0.with_view(cx, |view| view.ended = ended);
        if answer.is_empty() {
            return Ok(());
        }
        let blocks = message.blocks().iter().flat_map(|block| match block {
            Block::ToolCall(call) => match calls.iter().position(|(id, _)| *id == call.id) {
                Some(at) => std::mem::take(&mut calls[at].1),
                None => vec![block.clone()],
            },
            other => vec![other.clone()],
        });
        res.message = AssistantMessage::new(blocks.collect());
        let first = res.message.calls().map(|call| call.id.clone()).collect();
        let answer = Answer { step: cx.step(), message, first, programs: answer };
        UNDER_WAY.update(cx, |under_way| *under_way = Some(answer.clone()))
    }

    async fn after_tools(&self, cx: &RunCx, results: &mut ToolResults) -> Result<Verdict> {
        if UNDER_WAY.is_set(cx) {
            UNDER_WAY.update(cx, |under_way| {
                if let Some(answer) = under_way {
                    results.results.iter().for_each(|result| answer.note(&result.call_id, &result.output));
                }
            })?;
        }
        Ok(Verdict::Proceed)
    }

    async fn after_agent(&self, cx: &RunCx, end: &mut Result<RunEnd>) -> Result<()> {
        if let Ok(RunEnd::Finished(finished)) = end
            && UNDER_WAY.is_set(cx)
            && let Some(answer) = UNDER_WAY.update(cx, |under_way| under_way.clone())?
        {
            let mut kept: History = cx.history();
            let messages: Vec<_> = kept.iter().cloned().collect();
            if history::is_there(&answer, &messages) {
                let stopped = |program: &Program| {
                    Ended::error(format!("The program was stopped: the run was over. {}", program.done()))
                };
                let ended: Vec<_> = answer.programs.iter().map(stopped).collect();
                history::close(&answer, &ended, &self.0.config.tool, &mut kept)?;
                cx.replace_history(kept.clone(), "code_mode");
                finished.history = kept;
            }
        }
        self.0.views.end(cx);
        UNDER_WAY.end(cx, end);
        Ok(())
    }
}

impl std::fmt::Debug for CodeMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CodeMode").field("config", &self.0.config).field("views", &self.0.views).finish()
    }
}
