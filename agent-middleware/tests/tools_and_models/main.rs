//! Middleware about what a model is offered, what it remembers and how its answers are looked at: in whole runs.

mod deferred;
mod emulator;
mod memory;
mod review;
mod selector;

use std::sync::{Arc, Mutex};

use agent_core::{
    Effect, Event, EventKind, Finished, Result, RunEnd, Tool, ToolRequest,
    testing::{ScriptedModel, Turn},
};
use agent_exec::Agent;
use agent_middleware::Events;
use agent_tools::{ToolExt, from_schema};
use serde_json::{Value, json};

/// A tool that says its own name.
fn tool(name: &'static str, description: &str) -> impl Tool {
    let anything = json!({"type": "object", "additionalProperties": true});
    from_schema(name, description, anything, move |_: Value, _: ToolRequest| async move { name })
        .with_options(|options| options.effect(Effect::Pure))
}

/// A tool that waits for an answer and gives it.
fn asks(name: &str) -> impl Tool {
    let anything = json!({"type": "object", "additionalProperties": true});
    from_schema(name, "Asks somebody.", anything, move |_: Value, req: ToolRequest| async move {
        req.ask::<String>("question", json!("well?"))
    })
    .with_options(|options| options.effect(Effect::Pure))
}

fn finished(end: Result<RunEnd>) -> Finished {
    end.expect("the run does not fail").finished().expect("the run finishes")
}

/// A model that says these texts, one a call.
fn says(texts: &[&str]) -> ScriptedModel {
    ScriptedModel::new(texts.iter().map(|text| Turn::text(*text)))
}

/// The tools that the model was offered, call by call.
fn offered(model: &ScriptedModel) -> Vec<Vec<String>> {
    model.requests().into_iter().map(|seen| seen.tools).collect()
}

/// The results of the newest turn that the model was shown.
fn results(model: &ScriptedModel) -> Vec<String> {
    let requests = model.requests();
    requests.last().expect("was asked").results().into_iter().map(|(_, text)| text).collect()
}

async fn run(agent: &Agent) -> Finished {
    finished(agent.run("Go.").await)
}

/// What was warned of.
fn warnings() -> (Arc<Mutex<Vec<String>>>, Events) {
    let warnings = Arc::new(Mutex::new(Vec::new()));
    let heard = warnings.clone();
    let events = Events::new().on(move |event: &Event| {
        if let EventKind::Warning { message } = &event.kind {
            heard.lock().expect("lock").push(message.clone());
        }
    });
    (warnings, events)
}
