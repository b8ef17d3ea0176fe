//! Sessions that wait for an answer, some of which get one.

use std::{collections::BTreeMap, ops::RangeInclusive, time::Duration};

use agent::{
    PostgresJournal, PostgresQueue, RunRequest,
    core::{BoxError, Journal},
    dispatch::{Dispatch, Job},
};
use futures::{StreamExt, TryStreamExt, stream};
use tokio::time::sleep;

use super::{
    count,
    fleet::Fleet,
    quantile, settles,
    worker::{AGENT, now},
};
use crate::worker_kill::database::Database;

/// Maximum increase of the 99th percentile of the delay after an answer, from few to all waiting
/// sessions, in microseconds.
const OVER: u64 = 50_000;

/// Copies a waiting session, and its job, a given number of times.
const COPY: &str = "
WITH made AS (
    INSERT INTO agent_journal.session (name, head)
    SELECT convert_to('copy-' || n, 'UTF8'), head
    FROM agent_journal.session CROSS JOIN generate_series(1, {number}) AS n WHERE name = 'waits-0' RETURNING id
), entries AS (
    INSERT INTO agent_journal.entry (session, seq, run, time, version, body, parts)
    SELECT made.id, seq, run, time, version, body, parts FROM made CROSS JOIN agent_journal.entry
    WHERE session = (SELECT id FROM agent_journal.session WHERE name = 'waits-0')
)
INSERT INTO agent_queue.job (agent, session, run, tenant, priority, body, standing, ready_at, failures, begun, worker, expires, created, changed)
SELECT agent, convert_to('copy-' || n, 'UTF8'), convert_to('copy-' || n, 'UTF8'), tenant, priority, body, standing, ready_at, failures,
    begun, worker, expires, created, changed
FROM agent_queue.job CROSS JOIN generate_series(1, {number}) AS n WHERE run = 'waits-0'";

/// Returns true if the workers' memory and the time from an answer to the next step do not grow
/// with the number of sessions.
pub(super) async fn measure(
    queue: &PostgresQueue,
    fleet: &mut Fleet,
    database: &Database,
    sessions: u64,
    answers: u64,
) -> Result<bool, BoxError> {
    let journal = PostgresJournal::connect(&database.url(database.port())).await?;
    let few = 2 * answers + 1;
    send(queue, few).await?;
    settles(database).await?;
    let (floor, before) = (trickle(queue, &journal, fleet, 1..=answers).await?, fleet.memory());
    copy(database, sessions.saturating_sub(few))?;
    let waiting = count(database, "at_rest")?;
    let (delays, after) = (trickle(queue, &journal, fleet, answers + 1..=2 * answers).await?, fleet.memory());
    let (usual, late) = (quantile(&floor, 0.99), quantile(&delays, 0.99));
    let ms = |micros: u64| micros as f64 / 1e3;
    println!("sessions that wait           {waiting:>9}");
    for (before, after) in before.iter().zip(&after) {
        println!(
            "memory of a worker           {:>9.1} MB, and {:.1} MB when {few} waited",
            *after as f64 / 1024.,
            *before as f64 / 1024.
        );
    }
    println!("an answer to the next step   {:>9.1} ms, p99 {:.1} ms", ms(quantile(&delays, 0.5)), ms(late));
    println!("the same when {few:>5} waited   {:>9.1} ms, p99 {:.1} ms", ms(quantile(&floor, 0.5)), ms(usual));
    let is_flat = before.iter().zip(&after).all(|(before, after)| *after <= before + before / 5);
    // Timings of a build without optimisation are meaningless.
    Ok(is_flat && (late <= usual + OVER || cfg!(debug_assertions)))
}

/// Enqueues so many runs that ask.
async fn send(queue: &PostgresQueue, runs: u64) -> Result<(), BoxError> {
    let send = async |run| queue.dispatch(job(run)?).await.map(drop).map_err(BoxError::from);
    stream::iter((0..runs).map(Ok)).try_for_each_concurrent(8, send).await
}

/// Copies the first session, and its job: workers would take an hour to create so many.
fn copy(database: &Database, number: u64) -> Result<(), BoxError> {
    let (port, sql) = (database.port().to_string(), COPY.replace("{number}", &number.to_string()));
    let to = ["-h", "127.0.0.1", "-p", &port, "-U", "tests", "-q", "-v", "ON_ERROR_STOP=1"];
    Ok(database.run("psql", &[&to[..], &["-c", &sql, "-c", "ANALYZE", "postgres"]].concat())?)
}

/// Answers these sessions, one after the other; returns the sorted delays until the next step in
/// microseconds.
async fn trickle(
    queue: &PostgresQueue,
    journal: &PostgresJournal,
    fleet: &Fleet,
    runs: RangeInclusive<u64>,
) -> Result<Vec<u64>, BoxError> {
    let mut delays: Vec<_> = stream::iter(runs)
        .then(async |run| {
            sleep(Duration::from_millis(20)).await;
            let (name, at) = (name(run), job(run)?.at);
            let stands = journal.index(&name).await?.look(|index| index.unfinished(AGENT));
            let questions = stands.ok_or("a run does not wait")?.questions;
            let answers: BTreeMap<_, _> = questions.iter().map(|question| question.answer(true)).collect();
            let asked = now();
            queue.answer(&at, answers).await?;
            loop {
                if let Some(began) = fleet.began(&name, 1) {
                    return Ok::<_, BoxError>(began.saturating_sub(asked));
                }
                sleep(Duration::from_millis(1)).await;
            }
        })
        .try_collect()
        .await?;
    delays.sort_unstable();
    Ok(delays)
}

fn job(run: u64) -> agent::Result<Job> {
    Job::new(AGENT, &RunRequest::user("wait").session(name(run)).run_id(name(run)))
}

fn name(run: u64) -> String {
    format!("waits-{run}")
}
