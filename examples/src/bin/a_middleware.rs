//! Custom middleware: it tells the model the time, blocks access to a table, and measures the
//! duration of tools.

use std::time::{Instant, SystemTime};

use agent::{core::ToolNext, prelude::*, testing::Turn};
use agent_examples::{models, show};
use serde_json::json;

/// Every hook has a default: override those that you need. One value serves all runs of the agent,
/// including concurrent ones.
struct House;

#[async_trait]
impl Middleware for House {
    fn name(&self) -> &str {
        "house"
    }

    // `before_*` runs once per call and decides whether the call continues, and with which request.
    async fn before_model(&self, cx: &RunCx, req: &mut ModelRequest) -> Result<Flow<ModelResponse>> {
        // The request belongs to this call: additions do not become part of the conversation.
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        req.messages.push(Message::user(format!("(Seconds since 1970: {time}. Step {}.)", cx.step())))?;
        Ok(Flow::Continue)
    }

    async fn before_tool(&self, _: &RunCx, req: &mut ToolRequest) -> Result<Flow<ToolOutput>> {
        Ok(match req.args["table"] == "salaries" {
            // The tool is not called; the model reads this as its result.
            true => Flow::Answer(ToolOutput::error("The table of salaries is not open to you.")),
            false => Flow::Continue,
        })
    }

    // `wrap_*` runs around each attempt, inside or outside of a retry, depending on the order of
    // registration.
    async fn wrap_tool_call(&self, req: ToolRequest, next: ToolNext<'_>) -> Result<ToolOutput> {
        let (name, began) = (req.call.name.clone(), Instant::now());
        let output = next.run(req).await;
        eprintln!("{name} took {:?}", began.elapsed());
        output
    }
}

/// Counts the rows of a table.
#[tool(effect = "pure")]
async fn count(table: String) -> String {
    format!("{table}: 12 rows")
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let model = models::or_script([
        Turn::call("c1", "count", json!({"table": "salaries"})).and_call("c2", "count", json!({"table": "orders"})),
        Turn::text("There are 12 orders. I may not look at the salaries."),
    ]);
    let agent = Agent::builder("analyst", model.await?).tool(count).middleware(House).build()?;

    println!("{}", agent.explain()); // the order in which everything was composed
    let end = agent.run("How many orders and salaries are there?").await?;
    show::history(&end.finished().map_err(|_| Error::tool("the run was stopped"))?.history);
    Ok(())
}
