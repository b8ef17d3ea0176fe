//! Tool: a function that the model may call. Its doc comment is the description for the model.

use std::collections::BTreeMap;

use agent::{Resource, prelude::*, testing::Turn};
use agent_examples::{models, show};
use serde_json::json;

/// Stock of the shop. Tools get it from the agent, so that tests can substitute another one.
struct Stock {
    pieces: BTreeMap<&'static str, u32>,
}

/// Looks up how many pieces of an article are in stock.
// `effect` determines what happens if the process dies during a call: a pure call is repeated.
// Without it, a call must not be repeated, and a person is asked.
#[tool(effect = "pure", timeout = "5s")]
async fn in_stock(
    /// The article, in the singular, such as `teapot`.
    article: String,
    // Not an argument: injected from the agent's resources, and hidden from the model.
    stock: Resource<Stock>,
) -> Result<u32> {
    // The model receives an error as the call's result. It may try again, so name the valid values.
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
