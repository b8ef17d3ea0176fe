//! AgentFlow: a planner, a worker, a verifier and a generator solve a question step by step.

use agent::{
    flow::{Models, Output, Solver},
    prelude::*,
    testing::Turn,
};
use agent_examples::models::ModelArgs;
use clap::Parser;

/// Solves a question with four roles, and shows what each step did.
#[derive(Parser, Debug)]
struct Args {
    /// The question.
    #[arg(default_value = "How much longer is the Aare than the Reuss, in kilometres?")]
    question: String,
    /// Print what every role was asked and said, as JSON lines for training, with this reward.
    #[arg(long)]
    traces: Option<f64>,
    #[command(flatten)]
    model: ModelArgs,
}

/// Looks a river up and says how long it is.
#[tool(effect = "pure", name = "Wikipedia_Search_Tool")]
fn wikipedia(
    /// The river.
    query: String,
) -> String {
    let known = [("Aare", 288), ("Reuss", 164), ("Rhine", 1233)];
    let found = known.into_iter().find(|(river, _)| query.contains(river));
    found.map_or_else(|| format!("Nothing about '{query}'."), |(river, km)| format!("The {river} is {km} km long."))
}

/// Subtracts `b` from `a`.
#[tool(effect = "pure", name = "Subtraction_Tool")]
fn subtraction(a: f64, b: f64) -> f64 {
    a - b
}

/// Scripted responses of each role in turn: as JSON, or as text in the form that models are trained
/// on.
fn script() -> [Turn; 9] {
    [
        "Concise Summary: the difference of two lengths\nRequired Skills: looking up, subtracting",
        "Context: the Aare and the Reuss are rivers\nSub-Goal: their lengths\nTool Name: wikipedia search tool",
        r#"{"calls": [{"id": "call-1", "arguments": {"query": "Aare"}}, {"id": "call-2", "arguments": {"query": "Reuss"}}]}"#,
        "Both lengths are there, their difference is not.\nConclusion: CONTINUE",
        "Context: 288 and 164\nSub-Goal: the difference\nTool Name: Subtraction_Tool",
        "```python\nexecution = tool.execute(a=288, b=164)\n```",
        r#"{"analysis": "The difference is there.", "stop_signal": true}"#,
        "I looked both rivers up and subtracted their lengths: 288 - 164 = 124.",
        "The Aare is 124 km longer. <answer>124</answer>",
    ]
    .map(Turn::text)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let args = Args::parse();
    let model = args.model.or_script(script()).await?;
    // Each role may have its own model: `Models::list([main, fixed, verifier, executor])`.
    let solver = Solver::builder(Models::all(model)).tool(wikipedia).tool(subtraction).max_steps(5).build()?;

    println!("? {}", args.question);
    let solution = solver.solve(args.question).await?;
    for (n, action) in (1..).zip(&solution.memory.actions) {
        let goal = if action.sub_goal.is_empty() { "no goal" } else { &action.sub_goal };
        println!("Step {n}: {goal}, with {}", if action.tool_name.is_empty() { "no tool" } else { &action.tool_name });
        action.results.iter().for_each(|outcome| println!("    {}: {}", outcome.id, outcome.result));
        action.problem.iter().for_each(|problem| println!("    {problem}"));
    }
    println!("Ended by: {}", solution.ending.map_or_else(|| "the run's end".to_owned(), |ending| ending.to_string()));
    println!("{}", solution.output(Output::Final).unwrap_or("No solution was written."));
    println!("{}", solution.output(Output::Direct).unwrap_or("No answer was written."));
    if let Some(reward) = args.traces {
        print!("{}", solution.traces_json_lines(Some(reward)));
    }
    Ok(())
}
