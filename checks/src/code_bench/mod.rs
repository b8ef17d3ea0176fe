//! Savings of code mode: ten tasks, solved by individual tool calls and by a program that makes the
//! same calls.
//!
//! Prints a table and exits with 1 if the two methods differ in their results. See `--help`.

mod tasks;
mod world;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use agent::{
    Agent, RunRequest,
    core::{Flow, Message, TokenCounter},
    llm::tokens::Tiktoken,
    middleware::{CodeMode, before_model_fn},
    testing::{ScriptedModel, Turn},
};
use serde_json::json;

use self::{
    tasks::{Task, all},
    world::{Calls, with_tools},
};

/// Solves ten tasks twice: by tool calls, in parallel where a model can know them in advance, and
/// by one program in code mode.
///
/// The model is scripted: it writes what a sensible model would, and reasoning costs are excluded
/// for both methods. Both methods make the same calls and reach the same answer, which is checked.
/// Tokens are counted with a tokenizer; each prompt is counted in full, as providers bill it
/// without a cache. Exits with 1 if code mode needs more model calls or more tokens in total.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only run tasks whose names contain this text.
    #[arg(long, default_value = "")]
    only: String,
}

/// Cost of solving a task.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    asked: u64,
    /// Tokens of all prompts.
    read: u64,
    /// Tokens of all responses.
    written: u64,
}

impl Cost {
    fn tokens(self) -> u64 {
        self.read + self.written
    }

    fn plus(self, other: Self) -> Self {
        Self { asked: self.asked + other.asked, read: self.read + other.read, written: self.written + other.written }
    }
}

/// Returns true if code mode costs less and both methods reach the same result.
pub(crate) async fn run(args: &Args) -> agent::Result<bool> {
    println!("Each pair: by single calls / by a program. The ratio is that of all tokens.\n");
    println!(
        "{:<24} {:>6} {:>13} {:>16} {:>12} {:>7}",
        "task", "calls", "model asked", "tokens read", "written", "ratio"
    );
    let (mut sums, mut holds) = ((Cost::default(), Cost::default()), true);
    for task in all().into_iter().filter(|task| task.name.contains(&args.only)) {
        let (by_calls, made) = solve(&task, false).await?;
        let (by_program, also_made) = solve(&task, true).await?;
        row(task.name, &made.len().to_string(), by_calls, by_program);
        if made != also_made {
            println!("MISSED: the program makes other calls: {also_made:?} in place of {made:?}");
            holds = false;
        }
        if by_program.asked > by_calls.asked {
            println!("MISSED: the program asks the model more often");
            holds = false;
        }
        sums = (sums.0.plus(by_calls), sums.1.plus(by_program));
    }
    row("in all", "", sums.0, sums.1);
    Ok(holds && sums.1.tokens() <= sums.0.tokens())
}

fn row(name: &str, calls: &str, by_calls: Cost, by_program: Cost) {
    let pair = |of: fn(Cost) -> u64| format!("{} / {}", of(by_calls), of(by_program));
    let ratio = by_calls.tokens() as f64 / by_program.tokens().max(1) as f64;
    let (asked, read, written) = (pair(|cost| cost.asked), pair(|cost| cost.read), pair(|cost| cost.written));
    println!("{name:<24} {calls:>6} {asked:>13} {read:>16} {written:>12} {ratio:>6.1}x");
}

/// Solves a task; returns its cost, and its tool calls, sorted.
///
/// # Errors
/// If the run fails, or its program does not reach the answer.
async fn solve(task: &Task, by_program: bool) -> agent::Result<(Cost, Vec<String>)> {
    let (calls, counter) = (Calls::default(), Arc::new(Tiktoken::for_model("gpt-5")));
    let mut turns: Vec<_> = match by_program {
        true => vec![Turn::call("c", "run_code", json!({"code": task.program}))],
        false => task.turns.iter().enumerate().map(|(n, calls)| turn(n, calls)).collect(),
    };
    turns.push(Turn::text(task.answer.as_str()));
    let model = ScriptedModel::new(turns);
    let read = Arc::new(AtomicU64::new(0));
    let counts = {
        let (read, counter) = (read.clone(), counter.clone());
        before_model_fn("counts", move |_, req| {
            read.fetch_add(counter.prompt(req.system.as_ref(), &req.tools, &req.messages), Ordering::Relaxed);
            Ok(Flow::Continue)
        })
    };
    let agent = with_tools(Agent::builder("shop", model.clone()).max_steps(100), &calls);
    let agent = if by_program { agent.middleware(CodeMode::new()) } else { agent };
    let run = agent.middleware(counts).build()?.start(RunRequest::user(task.asks)).await?;
    let end = run.finished().map_err(|_| agent::Error::config(format!("'{}' did not finish", task.name)))?;
    let result = model.requests().last().and_then(|request| Some(request.results().pop()?.1)).unwrap_or_default();
    if by_program && result != task.answer {
        let (name, answer) = (task.name, &task.answer);
        return Err(agent::Error::config(format!("the program of '{name}' gave '{result}' in place of '{answer}'")));
    }
    let answers = end.history.iter().filter(|message| matches!(message, Message::Assistant(_)));
    let written = answers.map(|message| counter.message(message)).sum();
    let cost = Cost { asked: model.calls() as u64, read: read.load(Ordering::Relaxed), written };
    let mut made = calls.lock().expect("nobody panicked").clone();
    made.sort_unstable();
    Ok((cost, made))
}

/// Builds a model response with these calls.
fn turn(n: usize, calls: &[(&'static str, serde_json::Value)]) -> Turn {
    let ids: Vec<_> = (0..calls.len()).map(|at| format!("call_{n}_{at}")).collect();
    Turn::calls(ids.iter().zip(calls).map(|(id, (name, args))| (id.as_str(), *name, args.clone())))
}
