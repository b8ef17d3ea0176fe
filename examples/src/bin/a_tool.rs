//! A tool: a function that the model may call. Its documentation is what the model reads.

use std::collections::BTreeMap;

use agent::{Resource, prelude::*, testing::Turn};
use agent_examples::{models, show};
use serde_json::json;

/// What the shop has. Tools get it from the agent, so that tests can give them another.
struct Stock {
    pieces: BTreeMap<&'static str, u32>,
}

/// Looks up how many pieces of an article are in stock.
// `effect` says what is done if the process dies in the middle of a call: a pure one is made again. Without it a call counts as
// one that must not be made twice, and a person is asked.
#[tool(effect = "pure", timeout = "5s")]
async fn in_stock(
    /// The article, in the singular, such as `teapot`.
    article: String,
    // Not an argument: filled in from the agent's resources, and the model does not know of it.
    stock: Resource<Stock>,
) -> Result<u32> {
    // An error goes to the model as the call's result. It may try again, so say what would have been right.
    let known = || stock.pieces.keys().copied().collect::<Vec<_>>().join(", ");
    let count = stock.pieces.get(article.as_str()).copied();
    count.ok_or_else(|| Error::tool(format!("there is no article '{article}'; there are: {}", known())))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let model = models::or_script([
        Turn::call("c1", "in_stock", json!({"article": "pot"})),
        Turn::call("c2", "in_stock", json!({"article": "teapot"})),
        Turn::text("We have 7 teapots."),
    ]);
    let agent = Agent::builder("clerk", model.await?)
        .system("You answer questions about what the shop has.")
        .tool(in_stock)
        .resource(Stock { pieces: BTreeMap::from([("teapot", 7), ("cup", 40)]) })
        .build()?;

    let end = agent.run("How many pots do you have?").await?;
    let end = end.finished().map_err(|_| Error::tool("the run was stopped"))?;
    show::history(&end.history);
    Ok(())
}
