//! `agent tools`.

use std::sync::Arc;

use agent::{
    AssistantMessage, Block, Error, Model, ModelRequest, ModelResponse, Result, RunRequest, async_trait,
    core::ModelInfo,
};
use serde_json::{Value, json};

use crate::{
    cli::{Global, Tools, ToolsAct},
    listing,
    load::load,
    output::{End, line, print, print_json, table},
    run::Driver,
};

/// Lists the agent's tools, or calls one.
pub(crate) async fn tools(wanted: Tools, global: &Global) -> Result<End> {
    // No model is needed to look at tools, so none is asked for.
    let model = global.model.clone().or_else(|| Some("offline:any".into()));
    let file = wanted.agent_file.or_else(|| global.file.clone());
    let global = &Global { model, file, ..global.clone() };
    let loaded = load(global).await?;
    let agent = loaded.build()?;
    let tools = listing::of_agent(&agent).await?;
    if let Some(ToolsAct::Call { tool: name, arguments }) = wanted.act {
        if !tools.iter().any(|tool| tool.name == name) {
            let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
            return Err(Error::config(format!("the agent has no tool '{name}': it has {}", listed(&names))));
        }
        if !serde_json::from_str::<Value>(&arguments).is_ok_and(|arguments| arguments.is_object()) {
            return Err(Error::config(format!("the arguments are no JSON object: {arguments}")));
        }
        let hand = Hand { name: name.as_str().into(), arguments };
        let agent = loaded.builder.model(hand).exit_on([name]).raise_tool_errors().build()?;
        return Driver::new(&agent, global).drive(RunRequest::user("A call by hand.").streaming(true)).await;
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

/// In the place of a model: the person who calls the tool.
struct Hand {
    name: Arc<str>,
    arguments: String,
}

#[async_trait]
impl Model for Hand {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("a call by hand")
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        let call = Block::tool_call(format!("call-{}", req.cx.step()), &*self.name, self.arguments.as_str());
        req.sink.collect(AssistantMessage::new(vec![call])).map(ModelResponse::new)
    }
}
