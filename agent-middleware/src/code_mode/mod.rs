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

mod check;
mod config;
mod functions;
mod history;
mod hooks;
mod interpreter;
mod memory;
mod program;
mod running;
mod screen;
mod source;
mod stubs;
mod threads;
mod tool;
mod values;
mod view;

use std::{sync::Arc, time::Duration};

use agent_core::PerRun;

pub use self::config::CodeModeConfig;
use self::view::Shared;

/// Has the model write small programs in Python that call the agent's tools, in place of one call after the other: what lies
/// between the calls needs no model, and what it does not print costs no tokens.
///
/// The model is offered one tool, `run_code`, whose description has the other tools as functions. Programs run in an
/// interpreter that has no access to the system. `run_code` is a call as any other, in a step of its own, and **each call of a program is a
/// call of the run**: hooks, approval, permissions, budgets and
/// deadlines hold for it, it has its events and its entry in the journal, and calls that a program makes at once are the calls of one
/// message. A batch of calls is a step of the run. In a run that was killed, or waits for a person, the program goes on where
/// it was: it runs again from its beginning with the results that there are, so that nothing is done twice. When it has
/// ended, the conversation has the call of `run_code` and its result in the place of all that.
///
/// A call has the id of its program's call with a number, as `c1.2`. A tool gives a program its
/// [value](agent_core::ToolOutput::as_value) or else its text. A call that failed raises `RuntimeError` with what the model would
/// have been told. Calls that cannot be right, by the names in a program and its constants, are found before it runs, and then it makes
/// none. A program that does not await anything calls tools one by one, and has their results at once.
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

impl std::fmt::Debug for CodeMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CodeMode").field("config", &self.0.config).field("views", &self.0.views).finish()
    }
}
