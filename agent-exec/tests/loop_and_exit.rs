//! The loop and how it ends.

use agent_core::{
    ExitReason, Finished, RunEnd, ToolOutput, ToolRequest,
    testing::{ScriptedModel, Turn},
};
use agent_exec::Agent;
use serde_json::json;

fn finished(end: RunEnd) -> Finished {
    end.finished().expect("the run finished")
}

fn double() -> impl agent_core::Tool {
    Double
}

struct Double;

#[agent_core::async_trait]
impl agent_core::Tool for Double {
    fn spec(&self) -> agent_core::ToolSpec {
        let parameters = json!({"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]});
        agent_core::ToolSpec::new("f", "Doubles x.", parameters)
    }

    async fn call(&self, req: ToolRequest) -> agent_core::Result<ToolOutput> {
        Ok(ToolOutput::value(json!(req.args["x"].as_i64().expect("checked") * 2)))
    }
}

#[tokio::test]
async fn a_tool_call_and_then_a_text_are_two_steps_and_four_messages() {
    let model = ScriptedModel::new([Turn::call("a", "f", json!({"x": 3})), Turn::text("done")]);
    let agent = Agent::builder("a", model.clone()).tool(double()).build().expect("builds");
    let end = finished(agent.run("go").await.expect("runs"));
    assert_eq!((end.answer.as_str(), end.steps, &end.reason), ("done", 2, &ExitReason::Text));
    assert_eq!(end.history.iter().map(|m| m.role()).collect::<Vec<_>>(), ["user", "assistant", "tool", "assistant"]);
    assert_eq!(model.requests()[1].results(), [("a".to_owned(), "6".to_owned())]);
    assert_eq!(end.tool_calls["f"], 1);
    model.assert_finished();
}
