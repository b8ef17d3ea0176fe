//! Agent with one scene for each feature of a protocol.

use std::{convert::Infallible, time::Duration};

use agent::{
    Agent, AgentBuilder, AssistantMessage, Block, Effect, Error, ErrorKind, Message, Model, ModelRequest,
    ModelResponse, Result, StateField, StateSchema, Tool, ToolOptions, ToolOutput, ToolRequest, Usage, async_trait,
    message::Reasoning,
    middleware::{Approval, Delegation},
    model::{Chunk, ModelInfo},
    storage::Merge,
    tool::ToolSpec,
};
use agent_server::ag_ui::SharedState;
use serde_json::{Value, json};

/// Returns the agent.
pub(crate) fn actor() -> Agent {
    acting().build().expect("builds")
}

/// Like [`actor`], for an agent with its own store.
pub(crate) fn acting() -> AgentBuilder {
    let deep = Agent::builder("deep", Actor).build().expect("builds");
    let helper = Agent::builder("helper", Actor).middleware(Delegation::new().to("deep", "Digs.", deep));
    let helper = helper.build().expect("builds");
    Agent::builder("actor", Actor)
        .tool(Prop::new("weather", |args| {
            ToolOutput::text(format!("17 degrees in {}", args["city"].as_str().unwrap_or("?")))
        }))
        .tool(Prop::new("plan", |args| ToolOutput::value(args.clone())))
        .tool(Prop::new("refund", |args| ToolOutput::text(format!("refunded {}", args["order"]))))
        .tool(GiveUp)
        .tool(Wait("wait", Duration::from_secs(16), "waited"))
        .tool(Wait("nap", Duration::from_millis(900), "napped"))
        .state(
            StateSchema::default()
                .key("plan", StateField::of::<Vec<String>>().merge(Merge::Replace))
                .key("secret", StateField::of::<String>()),
        )
        .middleware(SharedState::of(["plan"]))
        .middleware(Approval::new().ask("refund"))
        .middleware(Delegation::new().to("helper", "Helps.", helper))
}

/// Model that plays the scene named in the newest user message.
struct Actor;

#[async_trait]
impl Model for Actor {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("actor")
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        let since: Vec<_> =
            req.messages.iter().rev().take_while(|message| !matches!(message, Message::User(_))).collect();
        let asked = req.messages.iter().rfind(|message| matches!(message, Message::User(_))).map(Message::text);
        let results =
            since.iter().rev().filter(|message| matches!(message, Message::Tool(_))).map(|message| message.text());
        let results: Vec<_> = results.collect();
        let asked = asked.unwrap_or_default();
        let scene = asked.split([':', '\n']).next().unwrap_or_default();
        if scene == "fail" && results.is_empty() {
            req.sink.push(Chunk::Text { index: 0, delta: "I was about to".into() })?;
            return Err(Error::new(ErrorKind::Provider, "the model fell silent"));
        }
        if scene == "again" {
            req.sink.push(Chunk::Text { index: 0, delta: "Wrong".into() })?;
            req.sink.push(Chunk::Restart)?;
        }
        let message = AssistantMessage::new(blocks(scene, &results));
        let message = req.sink.collect(message)?;
        Ok(ModelResponse::new(message).with_usage(Usage::new(10, 5)))
    }
}

fn blocks(scene: &str, results: &[String]) -> Vec<Block> {
    let call = |id: &str, tool: &str, args: Value| Block::tool_call(id, tool, args.to_string());
    match (scene, results.len()) {
        ("tool", 0) => vec![Block::text("Let me look."), call("c1", "weather", json!({"city": "Bern"}))],
        ("parallel", 0) => {
            vec![call("c1", "weather", json!({"city": "Bern"})), call("c2", "weather", json!({"city": "Oslo"}))]
        }
        ("reasoning", 0) => {
            let thought = Reasoning { text: "Hm.".into(), encrypted: Some("sealed".into()), ..Reasoning::default() };
            vec![Block::Reasoning(thought), Block::text("I thought about it.")]
        }
        ("state", 0) => vec![call("c1", "plan", json!({"steps": ["look"]}))],
        ("state", 1) => vec![call("c2", "plan", json!({"steps": ["look", "leap"]}))],
        ("agents", 0) => vec![
            call("c1", "delegate", json!({"agent": "helper", "message": "dig: left"})),
            call("c2", "delegate", json!({"agent": "helper", "message": "dig: right"})),
        ],
        ("dig", 0) => vec![call("c1", "delegate", json!({"agent": "deep", "message": "stone"}))],
        ("sell", 1) => vec![call("c2", "pick_color", json!({"from": ["red"]}))],
        ("ask" | "sell", 0) => vec![call("c1", "refund", json!({"order": "A-17"}))],
        ("cancel", 0) => vec![call("c1", "give_up", json!({}))],
        ("fail", 0) => Vec::new(),
        ("slow", 0) => vec![call("c1", "wait", json!({}))],
        ("nap", 0) => vec![call("c1", "nap", json!({}))],
        ("color", 0) => vec![call("c1", "pick_color", json!({"from": ["red", "blue"]}))],
        ("both", 0) => {
            vec![call("c1", "weather", json!({"city": "Bern"})), call("c2", "pick_color", json!({"from": ["red"]}))]
        }
        (_, 0) => vec![Block::text(format!("You said: {scene}."))],
        _ => vec![Block::text(format!("So it is: {}.", results.join(", ")))],
    }
}

/// Tool of one line.
struct Prop(&'static str, fn(&Value) -> ToolOutput);

impl Prop {
    fn new(name: &'static str, play: fn(&Value) -> ToolOutput) -> Self {
        Self(name, play)
    }
}

#[async_trait]
impl Tool for Prop {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new(self.0, "A prop.", json!({"type": "object", "additionalProperties": true}))
    }

    fn options(&self) -> ToolOptions {
        let options = ToolOptions::default().effect(Effect::Pure);
        if self.0 == "plan" { options.writes("plan", Some("steps")) } else { options }
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        req.progress(json!({"at": "once"}));
        Ok(self.1(&req.args))
    }
}

/// Tool that cancels the run.
struct GiveUp;

#[async_trait]
impl Tool for GiveUp {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("give_up", "Cancels the run.", json!({"type": "object"}))
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        req.cx.cancellation().cancel();
        std::future::pending::<Infallible>().await;
        Ok(ToolOutput::text("never"))
    }
}

/// Tool that takes some time; `wait` takes longer than the keep-alive interval.
struct Wait(&'static str, Duration, &'static str);

#[async_trait]
impl Tool for Wait {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new(self.0, format!("Waits for {} milliseconds.", self.1.as_millis()), json!({"type": "object"}))
    }

    async fn call(&self, _: ToolRequest) -> Result<ToolOutput> {
        tokio::time::sleep(self.1).await;
        Ok(ToolOutput::text(self.2))
    }
}
