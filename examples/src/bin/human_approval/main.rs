//! Haystack's human approval: of three tools, a person is asked about two, each time or once.

use std::collections::VecDeque;

use agent::{
    middleware::{Approval, ApprovalRequest, Approver, Decision, Remember},
    prelude::*,
    testing::Turn,
};
use agent_examples::{models::ModelArgs, show};
use clap::Parser;
use serde_json::{Value, json};
use tokio::sync::Mutex;

/// Answers questions about accounts. Asks before it looks at one.
#[derive(Parser, Debug)]
struct Args {
    /// The question.
    #[arg(long, default_value = "What is in account 56789? If it is less than 2000 dollars, what is in 12345?")]
    question: String,
    /// Answers to what will be asked, in place of the terminal's.
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

/// Who is asked: the given answers first, then the terminal. One question at a time.
struct Console(Mutex<VecDeque<String>>);

#[async_trait]
impl Approver for Console {
    async fn decide(&self, _: &RunCx, request: ApprovalRequest) -> Result<Decision> {
        let mut given = self.0.lock().await;
        println!("{} {}: (y)es, (a)lways so, new arguments as JSON, or why not?", request.tool, request.arguments);
        let answer = match given.pop_front() {
            Some(answer) => answer,
            None => tokio::task::spawn_blocking(read_line).await.map_err(|e| Error::tool(e.to_string()))?,
        };
        println!("> {}", answer.trim());
        Ok(match (answer.trim(), serde_json::from_str::<Value>(&answer)) {
            ("y" | "yes", _) => Decision::approve(),
            ("a" | "always", _) => Decision::Approve { remember: Some(Remember::Call), always: false },
            (_, Ok(arguments @ Value::Object(_))) => Decision::edit(arguments),
            ("", _) => Decision::reject("nobody answered"),
            (why, _) => Decision::reject(why),
        })
    }
}

fn read_line() -> String {
    let mut line = String::new();
    let _ = std::io::stdin().read_line(&mut line); // no terminal, no answer: that is a no
    line
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let args = Args::parse();
    let script = [
        Turn::call("c1", "get_bank_balance", json!({"account_id": "56789"})),
        Turn::call("c2", "get_bank_balance", json!({"account_id": "12345"})),
        Turn::call("c3", "addition", json!({"a": 1000, "b": 2500})),
        Turn::text("That is all that I was let see."),
    ];
    let approval = Approval::new().ask("*").allow("addition").decide_with(Console(Mutex::new(args.answers.into())));
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
