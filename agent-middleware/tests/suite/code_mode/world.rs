//! An agent whose tools record their effects, and a model that writes the programs of a test.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use agent_core::{
    Effect, Finished, Message, Result, RunEnd, Tool, ToolOutput, ToolRequest,
    testing::{ScriptedModel, Turn},
};
use agent_exec::{Agent, AgentBuilder};
use agent_middleware::CodeMode;
use agent_tools::{ToolExt, from_schema};
use serde_json::{Value, json};

/// Effects on the outside world, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outside(Arc<Mutex<Vec<String>>>);

impl Outside {
    pub(crate) fn done(&self) -> Vec<String> {
        self.0.lock().expect("lock").clone()
    }

    pub(crate) fn note(&self, done: impl Into<String>) {
        self.0.lock().expect("lock").push(done.into());
    }
}

fn tool<F, Fut>(name: &'static str, parameters: Value, outside: &Outside, run: F) -> impl Tool
where
    F: Fn(Value, ToolRequest) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<ToolOutput>> + Send + 'static,
{
    let outside = outside.clone();
    let run = move |args: Value, req: ToolRequest| {
        outside.note(format!("{}: {name} {args}", req.call.id));
        run(args, req)
    };
    from_schema(name, "", parameters, run).with_options(|options| options.effect(Effect::Idempotent))
}

/// Returns the middleware with more time than programs take on a busy machine.
pub(crate) fn code_mode() -> CodeMode {
    CodeMode::new().time(Duration::from_secs(60))
}

/// Adds the tools `add`, `item`, `say`, `fail` and `ask`.
pub(crate) fn with_tools(mut builder: AgentBuilder, outside: &Outside) -> AgentBuilder {
    let numbers = json!({
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    });
    let name = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    builder = builder.tool(tool("add", numbers, outside, async |args, _| {
        let number = |name: &str| args[name].as_i64().expect("checked");
        Ok(ToolOutput::value((number("a") + number("b")).into()))
    }));
    builder = builder.tool(tool("item", name.clone(), outside, async |args, _| {
        // As text, this is only the content.
        Ok(ToolOutput::value(json!({"content": args["name"], "returnDisplay": {"for": "people"}})))
    }));
    builder = builder.tool(tool("say", name.clone(), outside, async |args, _| {
        Ok(ToolOutput::text(args["name"].as_str().expect("checked")))
    }));
    builder = builder.tool(tool("fail", name.clone(), outside, async |args, _| {
        Err(agent_core::Error::tool(format!("There is no {}.", args["name"].as_str().expect("checked"))))
    }));
    builder.tool(tool("ask", name, outside, async |args, req| {
        req.ask::<String>("question", args["name"].clone()).map(ToolOutput::text)
    }))
}

pub(crate) fn program(id: &str, code: &str) -> Turn {
    Turn::call(id, "run_code", json!({"code": code}))
}

pub(crate) fn builder(turns: impl IntoIterator<Item = Turn>, outside: &Outside) -> (AgentBuilder, ScriptedModel) {
    let model = ScriptedModel::new(turns);
    (with_tools(Agent::builder("a", model.clone()), outside), model)
}

pub(crate) fn finished(end: Result<RunEnd>) -> Finished {
    end.expect("the run does not fail").finished().expect("the run finishes")
}

/// Returns the result of a program, and its effects.
pub(crate) async fn result_of(code: &str) -> (String, Vec<String>) {
    result_with(code, code_mode()).await
}

pub(crate) async fn result_with(code: &str, mode: CodeMode) -> (String, Vec<String>) {
    let outside = Outside::default();
    let (builder, model) = builder([program("p", code), Turn::text("so")], &outside);
    let agent = builder.middleware(mode).max_steps(200).build().expect("builds");
    finished(agent.run("go").await);
    let mut results = model.requests().pop().expect("was asked").results();
    assert_eq!(results.len(), 1, "{results:?}");
    (results.remove(0).1, outside.done())
}

/// Returns the messages of a conversation, with the ids of calls and results.
pub(crate) fn said<'a>(history: impl IntoIterator<Item = &'a Message>) -> Vec<String> {
    let said = history.into_iter().map(|message| match message {
        Message::Assistant(answer) if answer.has_calls() => {
            let calls: Vec<_> = answer.calls().map(|call| format!("{}({})", call.name, call.id)).collect();
            format!("calls {}", calls.join(" "))
        }
        Message::Tool(result) => {
            format!("{}{}: {}", result.call_id(), if result.is_error() { "!" } else { "" }, message.text())
        }
        other => format!("{}: {}", other.role(), other.text()),
    });
    said.collect()
}
