//! Tests of an application that depends on `agent` and on nothing else of this workspace.

use agent::{
    ExitReason, Resource, ToolSet,
    prelude::*,
    testing::{ScriptedModel, Turn},
};
use serde_json::json;

struct Greeting(&'static str);

/// Greets somebody.
///
/// # Arguments
/// * `name` - Whom to greet.
#[tool(effect = "pure", crate = "agent::tools")]
async fn greet(greeting: Resource<Greeting>, name: String) -> Result<String> {
    Ok(format!("{}, {name}!", greeting.0.0))
}

/// Forbids a name.
struct NoName(&'static str);

#[async_trait]
impl Middleware for NoName {
    fn name(&self) -> &str {
        "no_name"
    }

    async fn before_tool(&self, _: &RunCx, req: &mut ToolRequest) -> Result<Flow<ToolOutput>> {
        let forbidden = req.args["name"] == self.0;
        Ok(if forbidden { Flow::Answer(ToolOutput::error("Not this one.")) } else { Flow::Continue })
    }
}

#[tokio::test]
async fn an_agent_with_a_tool_and_a_middleware_needs_the_facade_alone() {
    let both = [("c1", "greet", json!({"name": "Ada"})), ("c2", "greet", json!({"name": "Eve"}))];
    let model = ScriptedModel::new([Turn::calls(both), Turn::text("Greeted.")]);
    let agent = Agent::builder("greeter", model.clone())
        .tools(ToolSet::new("people").tool(greet))
        .resource(Greeting("Good morning"))
        .middleware(NoName("Eve"))
        .build()
        .expect("builds");

    let RunEnd::Finished(end) = agent.run("Greet them.").await.expect("runs") else { panic!("nothing stops it") };

    assert_eq!((end.answer.as_str(), &end.reason), ("Greeted.", &ExitReason::Text));
    let results = model.requests()[1].results();
    assert_eq!(results, [("c1".into(), "Good morning, Ada!".into()), ("c2".into(), "Not this one.".into())]);
    model.assert_finished();
}

#[test]
fn what_the_model_is_told_of_a_tool_leaves_out_what_is_filled_in() {
    let spec = greet.spec();
    assert_eq!((spec.name.as_str(), spec.description.as_str()), ("greet", "Greets somebody."));
    assert_eq!(spec.parameters["required"], json!(["name"]));
    assert_eq!(spec.parameters["properties"]["name"]["description"], "Whom to greet.");
    assert!(spec.parameters["properties"].get("greeting").is_none());
}

#[test]
fn the_modules_are_the_whole_crates() {
    fn same<T>(_: Option<T>, _: Option<T>) {}
    same(None::<agent::Agent>, None::<agent::exec::Agent>);
    same(None::<agent::Error>, None::<agent::core::Error>);
    same(None::<agent::ToolSet>, None::<agent::tools::ToolSet>);
    same(None::<agent::SqliteJournal>, None::<agent::store::SqliteJournal>);
    same(None::<agent::testing::Turn>, None::<agent::core::testing::Turn>);
}
