//! Simulated agents.

use agent::{
    Agent, Effect, Finished, Flow, Middleware, ModelRequest, ModelResponse, Result, RunCx, StateField, StateSchema,
    Tool, ToolOptions, ToolOutput, ToolRequest, async_trait,
    core::{Error, ToolSpec},
    exec::{AgentBuilder, testing::World},
    middleware::Delegation,
};
use serde_json::json;

/// Tool of one of many kinds.
struct Kind {
    name: &'static str,
    options: fn(ToolOptions) -> ToolOptions,
}

const KINDS: [Kind; 9] = [
    Kind { name: "look", options: |o| o.effect(Effect::Pure) },
    Kind { name: "put", options: |o| o.effect(Effect::Idempotent) },
    Kind { name: "order", options: |o| o.effect(Effect::Reconcilable) },
    Kind { name: "pay", options: |o| o },
    Kind { name: "note", options: |o| o.effect(Effect::Idempotent).writes("notes", Some("note")) },
    Kind { name: "book", options: |o| o.writes("notes", Some("note")) },
    Kind { name: "read", options: |o| o.effect(Effect::Pure).reads("notes", "notes") },
    Kind { name: "alone", options: |o| o.effect(Effect::Reconcilable).serial() },
    Kind { name: "ask", options: |o| o },
];

#[async_trait]
impl Tool for Kind {
    fn spec(&self) -> ToolSpec {
        let properties = json!({"text": {"type": "string"}, "n": {"type": "integer"}, "notes": {"type": "array"}});
        // Parameters filled from the state are hidden from the model.
        let properties = match self.name {
            "read" => properties,
            _ => json!({"text": properties["text"], "n": properties["n"]}),
        };
        ToolSpec::new(self.name, "Does something.", json!({"type": "object", "properties": properties}))
    }

    fn options(&self) -> ToolOptions {
        (self.options)(ToolOptions::default())
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        if self.name == "ask" && !req.ask::<bool>("permission", req.args["text"].clone())? {
            return Err(Error::tool("not allowed"));
        }
        let note = format!("{} {} {}", self.name, req.call.id, req.args["text"]);
        Ok(ToolOutput::value(json!({"note": [note], "n": req.args["n"]})))
    }
}

/// Returns what a sub-agent said, also if it ended early. A leaf often ends at its step limit, and
/// its end is the same in every process: a hook that failed because of it would fail again whenever
/// the run is resumed, and the run would never come to its end.
fn said(end: Result<Finished>) -> Result<String> {
    match end {
        Ok(finished) => Ok(finished.answer),
        Err(e) if e.context("exit_reason").is_some() => Ok(e.message().to_owned()),
        Err(e) => Err(e),
    }
}

/// A tool that starts sub-agents in code: two one after the other, and two at once.
struct Survey;

#[async_trait]
impl Tool for Survey {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("survey", "Asks around.", json!({"type": "object"}))
    }

    fn options(&self) -> ToolOptions {
        ToolOptions::default().effect(Effect::Idempotent).delegates()
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        let one = said(req.call_sub_agent("leaf", "one").await)?;
        let two = said(req.call_sub_agent("leaf", "two").await)?;
        let (three, four) = (req.call_sub_agent("leaf", "three"), req.call_sub_agent("leaf", "four"));
        let (three, four) = futures::future::join(three, four).await;
        Ok(ToolOutput::text([one, two, said(three)?, said(four)?].join(", ")))
    }
}

/// Hooks that start sub-agents, decide and wait: for the run, for a step and around a call.
struct Consults;

#[async_trait]
impl Middleware for Consults {
    async fn before_agent(&self, cx: &RunCx) -> Result<()> {
        cx.decide("begun", async { Ok(json!(cx.now())) }).await.map(drop)
    }

    async fn before_model(&self, cx: &RunCx, _: &mut ModelRequest) -> Result<Flow<ModelResponse>> {
        if cx.step() == 2 {
            said(cx.call_sub_agent("leaf", "before the model").await)?;
        }
        Ok(Flow::Continue)
    }

    async fn after_tool(&self, cx: &RunCx, req: &ToolRequest, _: &mut ToolOutput) -> Result<()> {
        let seen = cx.decide("seen", async { Ok(json!(*req.call.id)) }).await?;
        if seen != *req.call.id {
            return Err(Error::config("the decision of another call"));
        }
        if &*req.call.name == "pay" {
            said(cx.call_sub_agent("leaf", "after the payment").await)?;
        }
        Ok(())
    }
}

fn agent(name: &str, world: &World) -> AgentBuilder {
    let notes = StateField::of::<Vec<String>>().default_value(json!([]));
    let builder = Agent::builder(name, world.model()).state(StateSchema::default().key("notes", notes));
    KINDS.into_iter().fold(builder, |builder, kind| builder.tool(world.tool(kind)))
}

/// Returns a tree on three levels, with tools of every kind.
pub(crate) fn tree(world: &World) -> Result<Agent> {
    let leaf = agent("leaf", world).max_steps(3).final_answer(true).build()?;
    let middle = agent("middle", world).middleware(Delegation::new().to("leaf", "Helps.", leaf.clone())).build()?;
    let helpers = Delegation::new().to("middle", "Helps.", middle).to("leaf", "Helps a little.", leaf);
    let root = agent("root", world).middleware(helpers).middleware(Consults).tool(Survey);
    root.tool_concurrency(3).store(world.journal()).build()
}
