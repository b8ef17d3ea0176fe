//! The tool that runs the model's programs.

use std::sync::Arc;

use agent_core::{Effect, Result, Tool, ToolOptions, ToolOutput, ToolRequest, ToolSpec};
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::json;

use super::{
    CodeModeConfig,
    history::UNDER_WAY,
    interpreter::{Job, Progress},
    program::{Kept, Program},
    stubs::stub,
    threads::run_all,
    view::Shared,
};

/// The tool that runs a program up to its first call. A program without calls has ended; any other
/// resumes with the next step.
pub(super) struct RunCode(pub(super) Arc<Shared>);

#[derive(Deserialize)]
struct Args {
    code: String,
}

/// Returns the tool's spec for the model.
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

/// Returns the stubs of these tools.
pub(super) fn stubs(config: &CodeModeConfig, tools: &[ToolSpec]) -> String {
    let stubs = config.functions(tools).into_iter().map(|(function, tool)| stub(&function, tool));
    stubs.collect::<Vec<_>>().join("\n")
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
        let offered = self.0.told(&req.cx).unwrap_or_else(|| req.offered.clone());
        let functions = self.0.config.functions(&offered).into_iter().map(|(function, _)| function);
        let functions = functions.filter(|function| code.contains(&function.name)).collect();
        let job = Job { code, functions, known: Vec::new(), check: Some(offered) };
        match run_all(&self.0.config, vec![job.clone()]).await.pop() {
            Some(Progress::Ended(ended)) if ended.is_error => Ok(ToolOutput::error(ended.text)),
            Some(Progress::Ended(ended)) => Ok(ToolOutput::text(ended.text)),
            _ => {
                let Job { code, functions, .. } = job;
                let program = Program { run: req.cx.ids().run_id.clone(), code, functions };
                Kept::of(&req.cx).begin(&req.call.id, program)?;
                Ok(ToolOutput::text(UNDER_WAY))
            }
        }
    }
}
