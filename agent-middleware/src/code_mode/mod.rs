//! [`CodeMode`]: programs that call tools.
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

/// Lets the model write small Python programs that call the agent's tools, instead of calling them
/// one by one: the logic between the calls needs no model, and values that the program does not
/// print cost no tokens.
///
/// The model is offered one tool, `run_code`, whose description lists the other tools as functions.
/// Programs run in an interpreter without access to the system. `run_code` is a call like any
/// other, in its own step, and **each call of a program is a call of the run**: hooks, approval,
/// permissions, budgets and deadlines apply to it, it has its events and its entry in the journal,
/// and concurrent calls of a program are the calls of one message. A batch of calls is a step of
/// the run. In a run that was killed, or waits for a person, the program resumes where it was: it
/// runs again from its beginning with the recorded results, so that nothing is repeated. When it
/// has ended, the call of `run_code` and its result replace all these steps in the conversation.
///
/// The id of a call is the id of its program's call with a number, such as `c1.2`. A tool returns
/// its [value](agent_core::ToolOutput::as_value) to the program, or else its text. A failed call
/// raises `RuntimeError` with the text that the model would have received. Calls that cannot be
/// valid, judging by the names and constants in a program, are found before it runs, and then it
/// makes no call. A program that does not await anything calls tools one by one, and receives their
/// results at once.
///
/// # What a program can do to the process
///
/// A program is stopped with an error at its limits of [time](Self::time),
/// [recursion](Self::recursion), [calls](Self::calls), [output](Self::output) and
/// [memory](Self::memory). The interpreter shares the process and its heap. On Linux, memory is the
/// growth of the process while the program runs, sampled every few milliseconds: a program can
/// exceed it for a moment, and other allocations of the process count too. An executable that
/// installs the interpreter's allocator has an exact limit. On other platforms, only single values
/// are limited.
///
/// A single operation on an integer of a million digits cannot be interrupted: the program ends
/// with an error two seconds after its time limit, and its thread continues until the operation is
/// done. An abort inside of the interpreter would end the process; none is known. To run untrusted
/// programs, set external limits on the process.
///
/// # Order
///
/// Outside middleware that shortens or replaces the conversation: a program whose results are gone
/// ends with an error that says so. Inside middleware that selects the available tools. Outer
/// middleware sees each step of a program as a model response; inner middleware sees only the
/// model's own responses.
///
/// ```text
/// // right: compaction sees whole programs
/// builder.middleware(CodeMode::new()).middleware(compaction)
/// // wrong: compaction may remove results that a program needs
/// builder.middleware(compaction).middleware(CodeMode::new())
/// ```
///
/// Exclude tools that [end the run](agent_core::ExitReason::Tool) from programs, with
/// [`except`](Self::except): such a call in a program ends the run, too, but not the rest of the
/// program.
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
    /// Creates the middleware with its defaults: programs call all tools.
    pub fn new() -> Self {
        Self::from(CodeModeConfig::default())
    }

    /// Selects the tools with this name for programs, instead of all; `*` matches any characters.
    /// Others remain the model's own.
    #[must_use]
    pub fn tools(self, name: impl Into<String>) -> Self {
        self.edit(|config| {
            config.tools.remove("*");
            config.tools.insert(name.into());
        })
    }

    /// Leaves the tools with this name to the model; `*` matches any characters.
    #[must_use]
    pub fn except(self, name: impl Into<String>) -> Self {
        self.edit(|config| {
            config.except.insert(name.into());
        })
    }

    /// Sets the name of the tool that runs programs. Default: `run_code`.
    #[must_use]
    pub fn tool_name(self, name: impl Into<String>) -> Self {
        self.edit(|config| config.tool = name.into())
    }

    /// Sets the maximum compute time of a program. Default: 1 second.
    #[must_use]
    pub fn time(self, time: Duration) -> Self {
        self.edit(|config| config.time = time)
    }

    /// Sets the maximum recursion depth of a program, up to 2,000. Default: 500.
    #[must_use]
    pub fn recursion(self, deepest: usize) -> Self {
        self.edit(|config| config.recursion = deepest)
    }

    /// Sets the maximum number of tool calls of one program. Default: 100.
    #[must_use]
    pub fn calls(self, most: usize) -> Self {
        self.edit(|config| config.calls = most)
    }

    /// Sets the maximum number of bytes of a program's output and result. Default: 20,000.
    #[must_use]
    pub fn output(self, bytes: usize) -> Self {
        self.edit(|config| config.output = bytes)
    }

    /// Sets the approximate memory limit of a program in bytes. Default: 128 MiB.
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
