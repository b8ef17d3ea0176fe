//! Human approval as in Haystack: a person approves one tool each time, one once, and one never.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use agent::{
    middleware::{
        Approval,
        approval::{ApprovalRequest, Approver, ConfirmationPolicy, ConfirmationStrategy, ConsoleApprover, Decision},
    },
    prelude::*,
    testing::Turn,
};
use agent_examples::{models::ModelArgs, show};
use clap::Parser;
use serde_json::json;

/// Answers questions about accounts. Asks at the terminal before it looks at one.
#[derive(Parser, Debug)]
struct Args {
    /// The question.
    #[arg(long, default_value = "What is in account 56789? If it is less than 2000 dollars, what is in 12345?")]
    question: String,
    /// Answers where nobody sits at a terminal: `yes`, or why not.
    answers: Vec<String>,
    #[command(flatten)]
    model: ModelArgs,
}

/// Says how much is in an account.
#[tool(effect = "pure")]
fn get_bank_balance(account_id: String) -> String {
    format!("{} dollars", if account_id == "56789" { 1000 } else { 2500 })
}

/// Finds a person's telephone number.
#[tool(effect = "pure")]
fn get_phone_number(name: String) -> String {
    format!("{name}: 555 0100")
}

/// Adds two numbers.
#[tool(effect = "pure")]
fn addition(a: f64, b: f64) -> f64 {
    a + b
}

/// Returns the approval rules: tools and frequency.
fn confirmed_by(approver: &(impl Approver + Clone)) -> Approval {
    let asked = |policy| ConfirmationStrategy::blocking(policy, approver.clone());
    Approval::new()
        .confirm(["get_bank_balance"], asked(ConfirmationPolicy::Always))
        .confirm(["get_phone_number"], asked(ConfirmationPolicy::Once))
        .confirm(["addition"], asked(ConfirmationPolicy::Never))
}

/// Returns an approver with scripted answers.
fn instructed(answers: Vec<String>) -> impl Approver + Clone {
    let answers = Arc::new(Mutex::new(VecDeque::from(answers)));
    move |_: RunCx, request: ApprovalRequest| {
        let answer = answers.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        println!("? {} {}: {}", request.tool, request.arguments, answer.as_deref().unwrap_or("(no answer)"));
        async move {
            Ok(match answer.as_deref() {
                Some("yes") => Decision::approve(),
                why => Decision::reject(why.unwrap_or("nobody answered")),
            })
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let args = Args::parse();
    let script = [
        Turn::call("c1", "get_bank_balance", json!({"account_id": "56789"})),
        Turn::call("c2", "get_bank_balance", json!({"account_id": "12345"})),
        Turn::call("c3", "addition", json!({"a": 1000, "b": 2500})),
        Turn::call("c4", "get_phone_number", json!({"name": "Ada"})),
        Turn::call("c5", "get_phone_number", json!({"name": "Ada"})),
        Turn::text("That is all that I was let see."),
    ];
    let approval = match args.answers.as_slice() {
        [] => confirmed_by(&ConsoleApprover::new()),
        _ => confirmed_by(&instructed(args.answers)),
    };
    let agent = Agent::builder("banker", args.model.or_script(script).await?)
        .system("You help with questions about accounts. Use the tools.")
        .tool(get_bank_balance)
        .tool(get_phone_number)
        .tool(addition)
        .middleware(approval)
        .build()?;
    let end = agent.run(args.question).await?.finished().map_err(|_| Error::tool("the run was stopped"))?;
    show::history(&end.history);
    Ok(())
}
