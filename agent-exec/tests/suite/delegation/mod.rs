//! Features of the `Delegation` middleware for models: resumed, forked and background sub-agents,
//! and questions to the caller.

mod ask_parent;
mod background;
mod crash;
mod elsewhere;
mod events;
mod late;
mod limits;
mod recall;

use std::sync::Arc;

use agent_core::{
    AssistantMessage, Block, Checkpoint, Finished, History, Message, Model, ModelInfo, ModelRequest, ModelResponse,
    Result, Tool, ToolOutput, Usage, async_trait,
};
use agent_exec::{Agent, AgentBuilder};
use agent_middleware::Delegation;
use serde_json::{Value, json};

use crate::common::{FnTool, results, tool};

/// A model whose response depends on the conversation, and on the number of its earlier responses
/// in it.
#[derive(Clone)]
struct Thinks(Arc<Say>);

type Say = dyn Fn(usize, &History) -> AssistantMessage + Send + Sync;

fn thinks(say: impl Fn(usize, &History) -> AssistantMessage + Send + Sync + 'static) -> Thinks {
    Thinks(Arc::new(say))
}

#[async_trait]
impl Model for Thinks {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("thinks")
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        tokio::task::yield_now().await;
        let spoke = req.messages.iter().filter(|m| m.as_assistant().is_some()).count();
        Ok(ModelResponse::new((self.0)(spoke, &req.messages)).with_usage(Usage::new(1, 1)))
    }
}

#[expect(clippy::needless_pass_by_value, reason = "what is made by json! is handed over as it is")]
fn call(id: &str, name: &str, args: Value) -> AssistantMessage {
    AssistantMessage::new(vec![Block::tool_call(id, name, args.to_string())])
}

/// Returns a call of the helper with these arguments in addition to the message.
#[expect(clippy::needless_pass_by_value, reason = "what is made by json! is handed over as it is")]
fn ask(call_id: &str, message: &str, more: Value) -> AssistantMessage {
    let mut args = json!({"agent": "helper", "message": message});
    args.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
    call(call_id, "delegate", args)
}

fn says(text: impl Into<String>) -> AssistantMessage {
    AssistantMessage::from(&*text.into())
}

fn built(builder: AgentBuilder) -> Agent {
    builder.build().expect("builds")
}

/// Builds an agent over `helper`, with every delegation feature enabled.
fn boss(model: impl Model, helper: Agent) -> AgentBuilder {
    Agent::builder("boss", model).middleware(delegation(helper))
}

fn delegation(helper: Agent) -> Delegation {
    Delegation::new().recall().background().fork().to("helper", "Helps.", helper)
}

/// Builds an agent that repeats every message it has received.
fn parrot() -> Agent {
    let texts = |history: &History| {
        let told = history.iter().filter(|m| matches!(m, Message::User(_))).map(Message::text);
        told.collect::<Vec<_>>().join(", ")
    };
    built(Agent::builder("parrot", thinks(move |_, history| says(texts(history)))))
}

/// Returns the text of the newest message.
fn last(history: &History) -> String {
    history.last().map(Message::text).unwrap_or_default()
}

/// Returns the id of the sub-agent that an answer or a start report mentions.
fn id_in(text: &str) -> String {
    let start = text.find("id of this sub-agent: ").map(|at| at + 22).or(text.find("(id ").map(|at| at + 4));
    text[start.expect("tells an id")..].chars().take_while(char::is_ascii_hexdigit).collect()
}

/// Returns the first id in the conversation.
fn first_id(history: &History) -> String {
    let results = history.iter().filter(|m| m.as_tool().is_some()).map(Message::text);
    id_in(&results.into_iter().next().expect("a result"))
}

/// Returns the results of a finished run, in call order, without the lines about ids.
fn texts(end: &Finished) -> Vec<String> {
    let plain = |text: String| text.split("\n\n[The id").next().unwrap_or_default().to_owned();
    results(&end.history).into_iter().map(|(_, text, _)| plain(text)).collect()
}

/// Returns the messages that the run received from users and reports, without ids.
fn told(end: &Finished) -> Vec<String> {
    let users = end.history.iter().filter(|m| matches!(m, Message::User(_))).map(Message::text);
    users.map(|text| without_ids(&text)).collect()
}

/// Replaces every id in the text by `ID`.
fn without_ids(text: &str) -> String {
    let words = text.split_inclusive(|c: char| !c.is_ascii_alphanumeric());
    let is_id = |word: &str| word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric()).len() == 32;
    words.map(|word| if is_id(word) { format!("ID{}", &word[32..]) } else { word.to_owned() }).collect()
}

fn questions(checkpoint: &Checkpoint) -> Vec<&str> {
    checkpoint.questions.iter().map(|question| question.id.as_str()).collect()
}

/// Returns a tool that asks a person.
fn careful() -> FnTool {
    tool("careful", async |req: agent_core::ToolRequest| {
        let answer: String = req.ask("input", json!({}))?;
        Ok(ToolOutput::text(answer))
    })
}

#[test]
fn the_tools_that_look_after_sub_agents_are_there_when_they_can_be_in_the_background() {
    let names = |delegation: Delegation| -> Vec<String> {
        agent_core::Middleware::tools(&delegation).iter().map(|tool| Tool::spec(tool).name).collect()
    };
    assert_eq!(names(Delegation::new().to("helper", "", parrot())), ["delegate"]);
    let all = ["delegate", "delegate_status", "delegate_wait", "delegate_steer", "delegate_cancel"];
    assert_eq!(names(delegation(parrot())), all);
}
