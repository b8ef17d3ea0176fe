//! Sub-agents that a model calls like tools: each has its own prompt, tools and history, and
//! returns its result.

use agent::{Budget, Caps, middleware::Delegation, prelude::*, testing::Turn};
use agent_examples::models;
use futures::StreamExt;
use serde_json::json;

/// Looks a city up.
#[tool(effect = "pure")]
async fn encyclopedia(city: String) -> String {
    format!("{city} was founded in 1191, on a bend of the Aare. It has 137,000 inhabitants.")
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    // One model plays both roles here. Use different ones if you like: a large one to plan, a small
    // one to look things up.
    let model = models::or_script([
        Turn::call("c1", "delegate", json!({"agent": "researcher", "message": "When was Bern founded, and where?"})),
        Turn::call("r1", "encyclopedia", json!({"city": "Bern"})), // the researcher
        Turn::text("In 1191, on a bend of the Aare."),             // the researcher
        Turn::text("Bern has stood on a bend of the Aare since 1191."),
    ]);
    let model = model.await?;

    let researcher = Agent::builder("researcher", model.clone())
        .system("Look things up before you answer, and answer in one sentence.")
        .tool(encyclopedia)
        .build()?;
    let writer = Agent::builder("writer", model)
        .system("Write one sentence for a travel guide. Ask the researcher for facts.")
        .middleware(Delegation::new().to("researcher", "Finds things out.", researcher))
        // Budgets, deadlines and cancellation apply to the whole tree.
        .budget(Budget::new(Caps::default().tokens(100_000)))
        .build()?;

    // Events cover the whole tree too: each names its agent.
    let mut run = writer.start(RunRequest::user("Write about Bern."));
    while let Some(event) = run.next().await {
        match &event.kind {
            EventKind::ToolStarted { name, .. } => println!("{}: calls {name}", event.ids.path),
            EventKind::ModelAnswered { message, .. } if message.has_text() => {
                println!("{}: {}", event.ids.path, message.text());
            }
            _ => {}
        }
    }
    if let RunEnd::Finished(end) = run.await? {
        println!("{} model calls in all, {} of them the writer's.", end.tree_usage.calls, end.usage.calls);
    }
    Ok(())
}
