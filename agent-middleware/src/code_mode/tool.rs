//! The tool that a model writes programs for.

use std::sync::Arc;

use agent_core::{Effect, Result, Tool, ToolOptions, ToolOutput, ToolRequest, ToolSpec};
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::json;

use super::{
    CodeModeConfig, Shared,
    functions::{Function, functions},
    interpreter::{Ended, Job, Progress, run_all},
    stubs::stub,
};

/// The tool as an agent has it: it answers for programs that make no call. Those that do are taken out of the answer before
/// it is called.
pub(super) struct RunCode(pub(super) Arc<Shared>);

#[derive(Deserialize)]
pub(super) struct Args {
    pub(super) code: String,
}

/// What a model is told of the tool.
pub(super) fn spec(config: &CodeModeConfig, stubs: &str) -> ToolSpec {
    let (calls, seconds) = (config.calls, config.time.as_secs_f64());
    let mut about = format!(
        "Runs a program in Python, and gives back what it prints and the value of its last expression. Write one program for \
         work that takes several calls: it can loop, branch, compute and pass results on, and you see only what it prints. \
         It calls the functions below, which are there without an import. Await them: `x = await f(a=1)`, and \
         `await asyncio.gather(f(a=1), f(a=2))` makes calls at the same time. A function gives text, or the lists and dicts \
         of its JSON. A call that fails raises RuntimeError with the reason. There are no files, no network and no packages, \
         only parts of asyncio, collections, datetime, functools, itertools, json, math and re. A program starts afresh, may \
         make {calls} calls, and may compute for {seconds} seconds."
    );
    if !stubs.is_empty() {
        about.push_str("\n\n```python\n");
        about.push_str(stubs);
        about.push_str("```");
    }
    let parameters = json!({
        "type": "object",
        "properties": {"code": {"type": "string", "description": "The program."}},
        "required": ["code"],
        "additionalProperties": false,
    });
    ToolSpec::new(config.tool.as_str(), about, parameters)
}

/// The functions that programs have of these tools, and their stubs.
pub(super) fn offered(config: &CodeModeConfig, tools: &[ToolSpec]) -> (Vec<Function>, String) {
    let all = functions(tools.iter().filter(|tool| config.is_callable(tool)));
    let stubs = all.iter().map(|(function, tool)| stub(function, tool)).collect::<Vec<_>>().join("\n");
    (all.into_iter().map(|(function, _)| function).collect(), stubs)
}

#[async_trait]
impl Tool for RunCode {
    fn spec(&self) -> ToolSpec {
        spec(&self.0.config, "")
    }

    fn options(&self) -> ToolOptions {
        ToolOptions::default().effect(Effect::Pure)
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        let Args { code } = req.parse()?;
        let ended = match self.0.take_ended(&req.cx, &req.call.id, &code) {
            Some(ended) => ended,
            None => {
                let functions = offered(&self.0.config, &req.offered).0;
                match run_all(&self.0.config, vec![Job { code, functions, known: Vec::new() }]).await.pop() {
                    Some(Progress::Ended(ended)) => ended,
                    _ => Ended::error("This program calls tools, and cannot do that here. Call them yourself."),
                }
            }
        };
        Ok(if ended.is_error { ToolOutput::error(ended.text) } else { ToolOutput::text(ended.text) })
    }
}
