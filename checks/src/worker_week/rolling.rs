//! Rolling replacement of all workers during active runs.

use agent::{
    PostgresQueue, RunRequest,
    core::BoxError,
    dispatch::{Dispatch, Job},
};

use super::{
    count,
    fleet::Fleet,
    quantile, settles,
    worker::{AGENT, MODEL, STEPS},
};
use crate::{kill_test::counter::Counter, worker_kill::database::Database};

/// Maximum of the 99th percentile of a step's delay, in microseconds.
const LATE: u64 = 3_000_000;

/// Returns true if the replacement has no visible effect.
pub(super) async fn measure(
    queue: &PostgresQueue,
    fleet: &mut Fleet,
    database: &Database,
    runs: u64,
    rounds: usize,
) -> Result<bool, BoxError> {
    for round in 0..rounds {
        for at in 0..fleet.number() {
            for run in 0..runs {
                let name = format!("works-{round}-{at}-{run}");
                let request = RunRequest::user("work").session(name.as_str()).run_id(name.as_str());
                queue.dispatch(Job::new(AGENT, &request)?).await?;
            }
            fleet.replace(at).await?;
        }
    }
    let sent = runs * (rounds * fleet.number()) as u64;
    settles(database).await?;
    let mut delays: Vec<_> = fleet.steps("works-").iter().flat_map(|steps| delays(steps)).collect();
    delays.sort_unstable();
    let effects = Counter::open(fleet.dir())?.all()?;
    let (dead, twice) = (count(database, "dead")?, effects.values().filter(|times| **times > 1).count());
    let wanted = sent * (STEPS as u64 - 1);
    println!("workers replaced             {:>9}", rounds * fleet.number());
    println!("runs meanwhile               {sent:>9}, failed {dead}");
    println!("effects                      {:>9} of {wanted}, twice {twice}", effects.len());
    println!("a step is late by            {:>9.1} ms, p99 {:.1} ms", ms(&delays, 0.5), ms(&delays, 0.99));
    // Timings of a build without optimisation are meaningless.
    let in_time = quantile(&delays, 0.99) < LATE || cfg!(debug_assertions);
    Ok(dead == 0 && twice == 0 && effects.len() as u64 == wanted && in_time)
}

/// Returns the delay of each step beyond the duration of its model call, in microseconds.
fn delays(steps: &[(usize, u64)]) -> Vec<u64> {
    let mut steps = steps.to_vec();
    steps.sort_unstable_by_key(|(_, at)| *at);
    let model = u64::try_from(MODEL.as_micros()).unwrap_or(u64::MAX);
    steps.windows(2).map(|pair| (pair[1].1 - pair[0].1).saturating_sub(model)).collect()
}

fn ms(sorted: &[u64], part: f64) -> f64 {
    quantile(sorted, part) as f64 / 1e3
}
