//! Cancels trees of agents at random moments: in streams, in tools, between retries, in sub-agents.
//! Afterwards no task of a run may be alive, and every wire must accept the remaining conversation.
//!
//! Prints the time from the cancellation until nothing was alive; exits with an error if that took
//! a second or a conversation is rejected.

mod tree;
mod wires;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use agent::{
    Agent, RunRequest,
    core::{Error, Journal, MemoryJournal, Result},
    llm::RetryLayer,
    middleware::Delegation,
};
use futures::{StreamExt, stream};

use self::tree::{Hang, Live, Nap, TreeModel};

/// Cancels runs at random moments and checks that nothing of them is left.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Number of runs to cancel.
    #[arg(long, default_value_t = 1000)]
    runs: u64,
    /// Number of concurrent runs.
    #[arg(long, default_value_t = 32)]
    at_once: usize,
    /// Seed of the moments and of the models' responses.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Maximum time until nothing of a run is alive.
const WORST: Duration = Duration::from_secs(1);

/// Outcome of one run.
struct Outcome {
    /// Time from the cancellation until nothing was alive; `None` if the run had ended before.
    gone: Option<Duration>,
    wrong: Vec<String>,
}

fn agent(seed: u64, journal: &MemoryJournal, live: &Arc<Live>) -> Result<Agent> {
    let model = |salt| TreeModel::new(seed ^ salt, live.clone());
    let retry = || RetryLayer::new().retries(3).max_delay(Duration::from_millis(200));
    let below = Agent::builder("below", model(1)).tool(Nap(live.clone())).tool(Hang(live.clone())).model_layer(retry());
    let middle = Agent::builder("middle", model(2))
        .tool(Nap(live.clone()))
        .middleware(Delegation::new().to("helper", "Helps.", below.streaming(true).build()?))
        .model_layer(retry());
    Agent::builder("boss", model(3))
        .tool(Nap(live.clone()))
        .tool(Hang(live.clone()))
        .middleware(Delegation::new().to("helper", "Helps.", middle.streaming(true).build()?))
        .model_layer(retry())
        .streaming(true)
        .store(journal.clone())
        .build()
}

async fn cancel_one(seed: u64, after: Duration) -> Result<Outcome> {
    let (journal, live) = (MemoryJournal::default(), Arc::<Live>::default());
    let agent = agent(seed, &journal, &live)?;
    let run = agent.start(RunRequest::user("go").session("storm"));
    let handle = run.handle();
    let task = tokio::spawn(run);
    tokio::time::sleep(after).await;
    let over = task.is_finished();
    let began = Instant::now();
    handle.cancel();
    let end = task.await.map_err(|e| Error::tool("a run's task failed").with_source(e))?;
    while live.count() > 0 && began.elapsed() < WORST * 20 {
        tokio::task::yield_now().await;
    }
    let gone = began.elapsed();
    let mut wrong = Vec::new();
    if live.count() > 0 {
        wrong.push(format!("{} calls are still alive", live.count()));
    }
    match end {
        Ok(end) if over || end.as_str() == "cancelled" || end.as_str() == "finished" => {}
        Ok(end) => wrong.push(format!("the run is {}", end.as_str())),
        Err(e) if over => drop(e),
        Err(e) => wrong.push(format!("the run failed: {e}")),
    }
    let kept = journal.index("storm").await?.look(|index| index.view("boss"));
    wrong.extend(wires::refusals(&kept.history)?);
    Ok(Outcome { gone: (!over).then_some(gone), wrong })
}

/// Returns true if nothing was left of any run.
pub(crate) async fn run(args: &Args) -> Result<bool> {
    let outcomes = stream::iter(0..args.runs).map(|i| async move {
        let seed = args.seed.wrapping_mul(1_000_003) ^ i;
        let after = Duration::from_micros(tree::mix(seed) % 60_000);
        cancel_one(seed, after).await.map(|outcome| (seed, outcome))
    });
    let mut outcomes = std::pin::pin!(outcomes.buffer_unordered(args.at_once));
    let (mut times, mut wrong, mut done) = (Vec::new(), 0, 0);
    while let Some(outcome) = outcomes.next().await {
        let (seed, outcome) = outcome?;
        outcome.wrong.iter().for_each(|what| eprintln!("seed {seed}: {what}"));
        wrong += outcome.wrong.len();
        times.extend(outcome.gone);
        done += 1;
        if done % 250 == 0 {
            eprintln!("{done} of {} runs", args.runs);
        }
    }
    times.sort_unstable();
    let at = |percent: usize| times.get((times.len().saturating_sub(1)) * percent / 100).copied().unwrap_or_default();
    println!("runs {}, cancelled on their way {}, over before {}", done, times.len(), done - times.len());
    println!("until nothing was alive: p50 {:?}, p99 {:?}, slowest {:?}", at(50), at(99), at(100));
    println!("goal of 100 ms at p99: {}", if at(99) <= Duration::from_millis(100) { "met" } else { "missed" });
    println!("violations: {wrong}");
    // Timings of a build without optimisation are meaningless.
    Ok(wrong == 0 && (at(100) <= WORST || cfg!(debug_assertions)))
}
