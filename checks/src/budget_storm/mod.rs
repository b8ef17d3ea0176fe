//! Many runs under one cost cap: with random costs, sub-agents, failures and cancellations, the
//! settled cost must never exceed the cap, no child may exceed its share, and no reservation may be
//! left.
//!
//! Exits with an error if any of these is violated.

mod storm;

use std::{sync::Arc, time::Duration};

use agent::{
    Agent, Budget, Caps, Drain,
    core::{Error, Result, SubAgent},
    llm::RetryLayer,
    middleware::Delegation,
    shutdown_signal,
};

use self::storm::{Dice, Prices, StormModel, Truth};

/// Runs many concurrent agents under one cost cap and checks that the cap held.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Number of concurrent runs.
    #[arg(long, default_value_t = 200)]
    runs: u64,
    /// Cost cap in US dollars.
    #[arg(long, default_value_t = 5.0)]
    cap: f64,
    /// Number of trials, each with another seed.
    #[arg(long, default_value_t = 1)]
    trials: u64,
    /// First seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Outcome of one trial.
struct Outcome {
    settled: u64,
    truth: u64,
    calls: u64,
    ended: [u64; 4],
    wrong: Vec<String>,
}

/// Share of a sub-agent, in millionths of a US dollar.
const SHARE: u64 = 20_000;

async fn trial(args: &Args, seed: u64, drain: &Drain) -> Result<Outcome> {
    let cap = (args.cap * 1e6) as u64;
    let budget = Budget::builder().caps(Caps::default().cost(cap)).prices(Prices).build()?;
    let truth = Arc::new(Truth::default());
    let model = |name, seed| StormModel::new(name, seed, truth.clone());
    let helper = Agent::builder("helper", model("helper", seed ^ 0x5eed)).model_layer(retry()).max_steps(6).build()?;
    let helper = SubAgent::new("helper", "Helps.", helper).with_caps(Caps::default().cost(SHARE));
    let agent = Agent::builder("boss", model("boss", seed))
        .middleware(Delegation::new().agent(helper))
        .model_layer(retry())
        .budget(budget.clone())
        .max_steps(12)
        .drain(drain)
        .build()?;
    let runs = (0..args.runs).map(|i| {
        let (agent, mut dice) = (agent.clone(), Dice::new(seed.wrapping_mul(1_000_003) ^ i));
        tokio::spawn(async move {
            let run = agent.start(agent::RunRequest::user("go"));
            if dice.below(5) == 0 {
                let (handle, after) = (run.handle(), Duration::from_micros(dice.below(20_000)));
                tokio::spawn(async move {
                    tokio::time::sleep(after).await;
                    handle.cancel();
                });
            }
            run.await
        })
    });
    let mut ended = [0; 4];
    for run in runs.collect::<Vec<_>>() {
        match run.await.map_err(|e| Error::tool("a run's task failed").with_source(e))? {
            Ok(end) => match end.finished() {
                Ok(f) if f.reason == agent::ExitReason::Budget => ended[1] += 1,
                Ok(_) => ended[0] += 1,
                Err(_) => ended[2] += 1,
            },
            Err(_) => ended[3] += 1,
        }
    }
    let balance = budget.balance().await?;
    let (settled, spent) = (balance.settled.cost, truth.all());
    let mut wrong = Vec::new();
    let mut check = |holds: bool, what: String| wrong.extend((!holds).then_some(what));
    check(settled <= cap, format!("settled {settled} passes the cap of {cap}"));
    check(spent <= settled, format!("{spent} were really spent, and only {settled} settled"));
    check(balance.reserved.cost == 0, format!("{} are still set aside", balance.reserved.cost));
    let most = truth.most_of_a_child();
    check(most <= SHARE, format!("a child used {most} of a share of {SHARE}"));
    Ok(Outcome { settled, truth: spent, calls: truth.calls(), ended, wrong })
}

fn retry() -> RetryLayer {
    RetryLayer::new().retries(1).max_delay(Duration::from_millis(2))
}

/// Returns true if the cap held.
pub(crate) async fn run(args: &Args) -> Result<bool> {
    let (drain, mut all, mut worst) = (Drain::new(), Vec::new(), 0.0_f64);
    let mut shutdown = Box::pin(shutdown_signal());
    for n in 0..args.trials {
        let outcome = tokio::select! {
            outcome = trial(args, args.seed + n, &drain) => outcome?,
            _ = &mut shutdown => {
                let drained = drain.drain(Duration::from_secs(5)).await;
                eprintln!("ended early, after {n} trials: {drained:?}");
                return Ok(false);
            }
        };
        worst = worst.max(outcome.settled as f64 / 1e6);
        outcome.wrong.iter().for_each(|what| eprintln!("seed {}: {what}", args.seed + n));
        all.push(outcome);
        if (n + 1) % 10 == 0 {
            eprintln!("{} of {} trials, at most ${worst:.6} settled", n + 1, args.trials);
        }
    }
    let sum = |f: fn(&Outcome) -> u64| all.iter().map(f).sum::<u64>();
    let violations = sum(|o| o.wrong.len() as u64);
    println!("trials {}, runs {}, model calls {}", all.len(), args.trials * args.runs, sum(|o| o.calls));
    println!(
        "runs: {} done, {} ended by the budget, {} cancelled, {} failed",
        sum(|o| o.ended[0]),
        sum(|o| o.ended[1]),
        sum(|o| o.ended[2]),
        sum(|o| o.ended[3])
    );
    let least = all.iter().map(|o| o.settled).min().unwrap_or(0) as f64 / 1e6;
    println!("settled: ${least:.6} to ${worst:.6} under a cap of ${:.2}", args.cap);
    println!(
        "really spent: {:.1} % of what was settled",
        100.0 * sum(|o| o.truth) as f64 / sum(|o| o.settled).max(1) as f64
    );
    println!("violations: {violations}");
    Ok(violations == 0)
}
