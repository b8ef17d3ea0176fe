//! Cost of idle built-in middlewares per step, relative to as many middlewares with empty hooks.
//!
//! Prints a table and exits with 1 if a bar is missed that does not depend on the machine's load.
//! See `--help`.

mod measure;

use agent::{Agent, AgentBuilder, middleware::Telemetry, testing::EveryHook};
use agent_checks::builtins::{BUILTINS, with};

use self::measure::{Idle, Instantly, Noop, cost, marks};

/// Measures the cost of a step with 0, 5, 10 and 20 built-in middlewares: nanoseconds and
/// allocations.
///
/// A step is a model call, a tool call, and their records; the model and the tool respond
/// immediately, so that only overhead is measured. Allocations are exact; times are the best of
/// several batches, and meaningless in a build without optimisation.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Number of steps of one run.
    #[arg(long, default_value_t = 50)]
    steps: usize,
    /// Number of batches; the best one counts.
    #[arg(long, default_value_t = 100)]
    batches: usize,
    /// Number of steps of the long run, whose end is compared with its beginning; at least 300.
    #[arg(long, default_value_t = 1000)]
    long: usize,
    /// List the built-in middlewares, outermost first.
    #[arg(long)]
    list: bool,
}

/// Returns true if no bar is missed that does not depend on the load.
pub(crate) fn run(args: &Args) -> agent::Result<bool> {
    if args.list {
        BUILTINS.iter().for_each(|(name, _)| println!("{name}"));
        return Ok(true);
    }
    let build = |steps: usize, add: &dyn Fn(AgentBuilder) -> AgentBuilder| {
        let model = Instantly::new(steps);
        // Few entries, so that each new entry evicts one from the first steps on, as in a long run.
        let agent = Agent::builder("bench", model.clone()).tool(Noop).max_steps(u32::MAX).entries_kept(16);
        let agent = add(agent).build()?;
        Ok::<_, agent::Error>((agent, model))
    };
    let of = |add: &dyn Fn(AgentBuilder) -> AgentBuilder| {
        let (agent, _) = build(args.steps, add)?;
        cost(&agent, args.steps, args.batches)
    };

    println!("{:<44} {:>10} {:>13} {:>10}", "one step", "ns", "allocations", "bytes");
    for count in [0, 5, 10, 20] {
        eprintln!("measuring {count} middlewares ..");
        let own = of(&|agent| with(agent, count))?;
        println!("{:<44} {own}", format!("{count} built-ins"));
        if count > 0 {
            let bare = of(&|agent| (0..count).fold(agent, |agent, _| agent.middleware(EveryHook)))?;
            println!("{:<44} {bare}", format!("{count} middlewares that override every hook"));
            let idle = of(&|agent| (0..count).fold(agent, |agent, _| agent.middleware(Idle)))?;
            println!("{:<44} {idle}", format!("{count} middlewares that override nothing"));
        }
    }

    let idle = of(&|agent| agent.middleware(Idle))?;
    let telemetry = of(&|agent| agent.middleware(Telemetry::new()))?;
    let (ns, allocations) = (telemetry.ns - idle.ns, telemetry.allocations - idle.allocations);
    println!(
        "\ntelemetry that nobody listens to: {ns:.0} ns and {allocations:.2} allocations a step (bars: 1000 and 0)"
    );
    // The two hooks around the run are shared by its steps.
    let free = allocations * args.steps as f64 <= 2.5;

    eprintln!("measuring a long run ..");
    let (agent, model) = build(args.long, &|agent| with(agent, 10))?;
    let (early, late) = marks(&agent, &model, args.long)?;
    println!(
        "ten built-ins, allocations of a step: {early:.1} at the beginning and {late:.1} at the end of {}",
        args.long
    );
    // The tree of a history is a level deeper by then.
    let flat = late <= early + 3.0;

    for (holds, what) in [(free, "telemetry without a subscriber allocates"), (flat, "a step costs more late in a run")]
    {
        if !holds {
            println!("MISSED: {what}");
        }
    }
    Ok(free && flat)
}
