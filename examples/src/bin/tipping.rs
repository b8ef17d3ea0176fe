//! Haystack's tipping agent: a prompt with inputs, two tools, a result stored in the run's state,
//! and a tool that ends the run.

use agent::{Json, StateField, StateSchema, prelude::*, testing::Turn};
use agent_examples::{models::ModelArgs, show};
use clap::Parser;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Recommends a tip: looks up the custom, calculates, and ends with the calculation.
#[derive(Parser, Debug)]
struct Args {
    /// Price of the meal in euros.
    #[arg(default_value_t = 85)]
    amount: u32,
    /// Country of the restaurant.
    #[arg(default_value = "France")]
    country: String,
    #[command(flatten)]
    model: ModelArgs,
}

/// Looks something up.
#[tool(effect = "pure")]
fn search(
    /// What to look for.
    query: String,
) -> String {
    let found = "In France, a service charge of 15 percent is in the bill; 5 to 10 percent more is kind.";
    format!("{query}: {found}")
}

/// What to calculate.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Operation {
    /// `a` times `b`.
    Multiply,
    /// `a` percent of `b`.
    Percentage,
}

/// Result of a calculation.
#[derive(Serialize)]
struct Calculated {
    result: f64,
}

/// Calculates with two numbers.
#[tool(effect = "pure", writes(calc_result = "result"))]
fn calculator(operation: Operation, a: f64, b: f64) -> Json<Calculated> {
    let result = match operation {
        Operation::Multiply => a * b,
        Operation::Percentage => a / 100.0 * b,
    };
    Json(Calculated { result })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let args = Args::parse();
    let script = [
        Turn::call("c1", "search", json!({"query": "tips in France"})),
        Turn::text("Ten percent is generous.").and_call(
            "c2",
            "calculator",
            json!({"operation": "percentage", "a": 10, "b": 85}),
        ),
    ];
    let agent = Agent::builder("tipping", args.model.or_script(script).await?)
        .system("Look up what is usual before you calculate. Your last step is the calculation of the tip.")
        .user_prompt("What tip is right for a meal of {{ amount }} euros in {{ country }}?")
        .input("amount", StateField::of::<u32>())
        .tool(search)
        .tool(calculator)
        .state(StateSchema::default().key("calc_result", StateField::of::<f64>()))
        .exit_on(["calculator"])
        .max_steps(10)
        .build()?;

    let request = RunRequest::new(Vec::new()).input("amount", args.amount).input("country", args.country);
    let end = agent.start(request).await?.finished().map_err(|_| Error::tool("the run was stopped"))?;
    show::history(&end.history);
    println!("The run ended by {} after {} steps, with {:?}.", end.reason, end.steps, end.tool_calls);
    match end.state.get("calc_result") {
        Some(tip) => println!("The tip is {tip} euros."),
        None => println!("Nothing was calculated."),
    }
    Ok(())
}
