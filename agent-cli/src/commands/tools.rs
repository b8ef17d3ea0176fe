//! `agent tools`.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use agent::{
    AssistantMessage, Block, Error, ErrorKind, Message, Model, ModelRequest, ModelResponse, Result, Retry, RunRequest,
    async_trait,
    core::{MemoryJournal, ModelInfo},
};
use serde_json::{Value, json};

use crate::{
    cli::{Global, Tools, ToolsAct},
    listing,
    load::{NO_MODEL, assemble},
    output::{End, line, print, print_json, table},
    run::Driver,
};

/// Lists the agent's tools, or calls one.
pub(crate) async fn tools(wanted: Tools, global: &Global) -> Result<End> {
    // No model is needed to look at tools, so none is asked for.
    let model = global.model.clone().or_else(|| Some(NO_MODEL.into()));
    let file = wanted.agent_file.or_else(|| global.file.clone());
    let global = &Global { model, file, ..global.clone() };
    // Sessions are not needed: neither opens nor creates a store.
    let assembled = assemble(global)?;
    let agent = assembled.build()?;
    let tools = listing::of_agent(&agent).await?;
    if let Some(ToolsAct::Call { tool: name, arguments }) = wanted.act {
        if !tools.iter().any(|tool| tool.name == name) {
            let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
            return Err(Error::config(format!("the agent has no tool '{name}': it has {}", listed(&names))));
        }
        if !serde_json::from_str::<Value>(&arguments).is_ok_and(|arguments| arguments.is_object()) {
            return Err(Error::config(format!("the arguments are no JSON object: {arguments}")));
        }
        let call = SingleCall { name: name.as_str().into(), arguments, is_done: AtomicBool::new(false) };
        // Nothing could resume a run of this model: its session is not stored.
        let builder = assembled.builder.model(call).store(MemoryJournal::default());
        let agent = builder.exit_on([name.clone()]).raise_tool_errors().build()?;
        let end = Driver::new(&agent, global).call_by_hand().drive(RunRequest::user("A call by hand.").streaming(true));
        return end.await;
    }
    if global.json {
        for tool in &tools {
            print_json(&json!({"name": tool.name, "description": tool.description, "parameters": tool.parameters}))?;
        }
        return Ok(End::Finished);
    }
    if tools.is_empty() {
        eprintln!("agent: the agent has no tools; --dir gives it those for files");
    }
    if wanted.schemas {
        for tool in &tools {
            let schema = serde_json::to_string_pretty(&tool.parameters).unwrap_or_default();
            print(&format!("{}\n{}\n{schema}\n\n", tool.name, tool.description))?;
        }
        return Ok(End::Finished);
    }
    let rows: Vec<_> = tools.iter().map(|t| vec![t.name.clone(), line(&t.description, 100)]).collect();
    print(&table(&rows))?;
    Ok(End::Finished)
}

fn listed(names: &[&str]) -> String {
    if names.is_empty() { "none".into() } else { names.join(", ") }
}

/// Stand-in for a model: calls the tool once, and takes the tool's output for the answer.
struct SingleCall {
    name: Arc<str>,
    arguments: String,
    /// Set once the tool was called: it must not run twice.
    is_done: AtomicBool,
}

#[async_trait]
impl Model for SingleCall {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("a call by hand")
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        if !self.is_done.swap(true, Ordering::Relaxed) {
            let call = Block::tool_call("call", &*self.name, self.arguments.as_str());
            return req.sink.collect(AssistantMessage::new(vec![call])).map(ModelResponse::new);
        }
        let output = req.messages.iter().rev().find_map(|message| match message {
            Message::Tool(output) => Some((message.text(), output.is_error())),
            _ => None,
        });
        match output {
            Some((text, false)) => Ok(ModelResponse::new(text.as_str())),
            output => {
                let why = output.map_or_else(|| "the call has no output".to_owned(), |(text, _)| text);
                let error = Error::new(ErrorKind::Tool, format!("{}: {why}", self.name));
                Err(error.with_retry(Retry::Permanent))
            }
        }
    }
}
