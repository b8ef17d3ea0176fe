//! Answer as a value of a Rust type instead of text.

use agent::{InvalidAnswer, Structured, prelude::*, testing::Turn};
use agent_examples::models;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// What a customer wants. (The model is told the type's JSON Schema, with these comments.)
#[derive(Debug, Deserialize, JsonSchema)]
struct Ticket {
    /// One line for the list of tickets.
    summary: String,
    /// From 1 (whenever) to 5 (now).
    urgency: u8,
    /// The order's number, if one is named.
    order: Option<String>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    // The first answer violates the rule below, so the model receives the problem and answers
    // again.
    let ticket = |urgency| json!({"summary": "The teapot came broken", "urgency": urgency, "order": "A-17"});
    let model =
        models::or_script([Turn::call("c1", "final_answer", ticket(50)), Turn::call("c2", "final_answer", ticket(4))]);

    // Rules that a schema cannot express are checked in code.
    let tickets = Structured::<Ticket>::new()?.check(|ticket| match ticket.urgency {
        1..=5 => Ok(()),
        other => Err(format!("'urgency' must be from 1 to 5, not {other}")),
    });
    let agent = Agent::builder("desk", model.await?)
        .system("Make a ticket of what the customer writes.")
        .middleware(tickets)
        .build()?;

    match agent.run("Order A-17 came broken, and my guests come at six!").await {
        Ok(RunEnd::Finished(end)) => {
            let ticket: Ticket = end.parse()?;
            println!("[{}] {} (order {:?})", ticket.urgency, ticket.summary, ticket.order);
        }
        Ok(other) => println!("The run was {}.", other.as_str()),
        // Branch on the kind of an error, never on its text.
        Err(e) if e.kind() == ErrorKind::InvalidAnswer => {
            println!("No ticket: {}", InvalidAnswer::of(&e).map_or("", |answer| &answer.problems));
        }
        Err(e) => return Err(e),
    }
    Ok(())
}
