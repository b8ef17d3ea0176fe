//! Simulated agents.

use agent::{
    Agent, Effect, Result, StateField, StateSchema, Tool, ToolOptions, ToolOutput, ToolRequest, async_trait,
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
    agent("root", world).middleware(helpers).tool_concurrency(3).store(world.journal()).build()
}
