//! Middleware for the selection of tools, memory and the review of answers, in whole runs.

mod emulator;
mod knowledge;
mod memory;
mod replayed;
mod review;
mod selector;
mod tool_search;

use std::sync::{Arc, Mutex};

use agent_core::{
    Effect, Event, EventKind, Finished, Middleware, Result, RunEnd, Tool, ToolRequest,
    testing::{ScriptedModel, Turn},
};
use agent_exec::{Agent, AgentBuilder};
use agent_middleware::{
    Approval, ChatHistory, Events, Judge, Limits, LongTermMemory, PromptCaching, ToolEmulator, ToolSearch, ToolSelector,
};
use agent_store::{InMemoryChatMessageStore, InMemoryMemoryStore};
use agent_tools::{ToolExt, from_schema};
use serde_json::{Value, json};

/// Returns a tool that returns its own name.
fn tool(name: &'static str, description: &str) -> impl Tool {
    let anything = json!({"type": "object", "additionalProperties": true});
    from_schema(name, description, anything, move |_: Value, _: ToolRequest| async move { name })
        .with_options(|options| options.effect(Effect::Pure))
}

/// Returns a tool that waits for an answer and returns it.
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

/// Returns a model with these texts, one per call.
fn says(texts: &[&str]) -> ScriptedModel {
    ScriptedModel::new(texts.iter().map(|text| Turn::text(*text)))
}

/// Returns the tools that the model was offered, call by call.
fn offered(model: &ScriptedModel) -> Vec<Vec<String>> {
    model.requests().into_iter().map(|seen| seen.tools).collect()
}

/// Returns the results of the newest turn that the model received.
fn results(model: &ScriptedModel) -> Vec<String> {
    let requests = model.requests();
    requests.last().expect("was asked").results().into_iter().map(|(_, text)| text).collect()
}

async fn run(agent: &Agent) -> Finished {
    finished(agent.run("Go.").await)
}

/// Returns a recorder of warnings.
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

#[test]
fn orders_that_cannot_work_are_refused_with_what_to_change() {
    type Add = Box<dyn Fn(AgentBuilder) -> AgentBuilder>;
    fn of<M: Middleware>(make: impl Fn() -> M + 'static) -> Add {
        Box::new(move |builder| builder.middleware(make()))
    }
    let selector = || ToolSelector::new(says(&[]));
    let deferred = || ToolSearch::new().defer("*");
    let judge = || Judge::new(says(&[]));
    let critic = || Judge::critic(says(&[]));
    let chats = || ChatHistory::new(InMemoryChatMessageStore::default());
    let emulator = || ToolEmulator::new().emulate("*");
    let memory = || LongTermMemory::new(InMemoryMemoryStore::default());
    let wrong: [([Add; 2], &str); 9] = [
        ([of(PromptCaching::new), of(deferred)], "'tool_search' must be outside 'prompt_caching': register it before"),
        ([of(selector), of(deferred)], "'tool_search' must be outside 'tool_selector': register it before"),
        (
            [of(PromptCaching::new), of(selector)],
            "'tool_selector' must be outside 'prompt_caching': register it before",
        ),
        ([of(memory), of(PromptCaching::new)], "'long_term_memory' must be inside 'prompt_caching': register it after"),
        ([of(emulator), of(Approval::new)], "'tool_emulator' must be inside 'approval': register it after"),
        ([of(emulator), of(Limits::new)], "'tool_emulator' must be inside 'limits': register it after"),
        ([of(judge), of(judge)], "'judge' is registered twice"),
        ([of(critic), of(critic)], "'critic' is registered twice"),
        ([of(chats), of(chats)], "'chat_history' is registered twice"),
    ];
    for ([first, second], message) in wrong {
        let built = |one: &Add, two: &Add| two(one(Agent::builder("a", says(&[])))).build();
        let error = built(&first, &second).expect_err(message);
        assert!(error.message().contains(message), "{error}");
        if !message.contains("twice") {
            assert!(built(&second, &first).is_ok(), "the other way round: {message}");
        }
    }
}
