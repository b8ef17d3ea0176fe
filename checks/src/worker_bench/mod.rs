//! Measures the throughput of workers on one queue, and the cost of a step relative to one bare
//! `INSERT`.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use agent::{
    Agent, Error, Model, ModelRequest, ModelResponse, PostgresJournal, PostgresQueue, Result, RunRequest, ToolOutput,
    Worker,
    core::{AssistantMessage, Block, BoxError, Journal, Message, ModelInfo, async_trait, journal::EntryBody},
    dispatch::{Dispatch, Job, JobStatusKind, QueueAdmin, Wanted},
    tools::from_schema,
};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::worker_kill::database::Database;

/// Number of steps of each run.
const STEPS: usize = 10;

/// Runs agents whose model takes 20 ms in 1, 2 and 4 workers that share a queue in the check's own
/// PostgreSQL server, and reports steps per second. Then one worker executes a single long run: the
/// time of a turn beside its model call, its number of transactions, and the time and size of its
/// first and last turns. A turn is a model call and a tool call whose effect must not be repeated:
/// two steps of the journal. Each is compared with one bare INSERT into the same server, by an
/// otherwise idle client. Results become durable during the model call, so a model that responds
/// immediately shows the cost of the database, and one of 5 ms the time that a run waits. Both wait
/// for the disk.
///
/// A turn is timed from one model response to the next, according to the journal, which excludes
/// the worker's start and the run's claim.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Number of runs of ten steps per worker.
    #[arg(long, default_value_t = 64)]
    runs: u64,
    /// Number of concurrent runs per worker.
    #[arg(long, default_value_t = 16)]
    at_once: usize,
    /// Duration of a model call, in milliseconds.
    #[arg(long, default_value_t = 20)]
    model: u64,
    /// Number of steps of the long run; at least two.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(2..))]
    turns: u32,
}

/// Always returns true, since it only measures.
pub(crate) async fn run(args: &Args) -> Result<bool, BoxError> {
    let Some(database) = Database::start_durable()? else {
        println!("skipped: no postgres");
        return Ok(true);
    };
    let model = Duration::from_millis(args.model);
    for workers in [1, 2, 4] {
        let runs = args.runs * workers;
        let load = Load { workers, at_once: args.at_once, runs, steps: STEPS, model };
        let Measured { took, .. } = load.measure(&database, &format!("of{workers}")).await?;
        println!("{workers} workers  {:>8.0} steps/s", runs as f64 * STEPS as f64 / took.as_secs_f64());
    }
    let turns = usize::try_from(args.turns)?;
    let bare = insert(&database)?;
    println!("one bare INSERT           {bare:>8.3} ms");
    for (schema, takes) in [("long", Duration::ZERO), ("slow", Duration::from_millis(5))] {
        let long = Load { workers: 1, at_once: 1, runs: 1, steps: turns, model: takes };
        let Measured { transactions, model, .. } = long.measure(&database, schema).await?;
        let steps = steps_of(&database, schema).await?;
        // The first response has no predecessor.
        let whole = steps.iter().map(|step| step.1).sum::<u64>() as f64 / (turns - 1) as f64;
        let turn = whole - model.as_secs_f64() * 1e3 / turns as f64;
        println!(
            "a model of {:>2} ms: a turn    {turn:>8.3} ms beside it in {:.1} transactions; each of its two calls {:.2} times an INSERT",
            takes.as_millis(),
            transactions as f64 / turns as f64,
            turn / bare / 2.
        );
    }
    let steps = steps_of(&database, "long").await?;
    let hundred = turns.min(100);
    for (which, steps) in [("first", &steps[..hundred]), ("last", &steps[steps.len() - hundred..])] {
        let (bytes, time) = steps.iter().fold((0, 0), |(bytes, time), step| (bytes + step.0, time + step.1));
        let each = |sum: u64| sum as f64 / hundred as f64;
        println!(
            "of {:>6} the {which:<5} {hundred}    {:>8.0} bytes and {:.2} ms a step",
            args.turns,
            each(bytes),
            each(time)
        );
    }
    Ok(true)
}

/// Workload.
struct Load {
    workers: u64,
    at_once: usize,
    runs: u64,
    steps: usize,
    model: Duration,
}

/// Measurements.
struct Measured {
    took: Duration,
    /// Total time of model calls.
    model: Duration,
    /// Transactions of the journals.
    transactions: u64,
}

impl Load {
    async fn measure(&self, database: &Database, schema: &str) -> Result<Measured, BoxError> {
        let Self { workers, at_once, runs, steps, model } = *self;
        let url = database.url(database.port());
        let open = async || PostgresQueue::builder(&url).schema(format!("queue_{schema}")).connect().await;
        let queue = open().await?;
        for run in 0..runs {
            let request = RunRequest::user("Go.").session(format!("s{run}")).run_id(format!("r{run}"));
            queue.dispatch(Job::new("bench", &request)?).await?;
        }
        let (mut working, mut journals, slept) = (tokio::task::JoinSet::new(), Vec::new(), Arc::default());
        let begun = Instant::now();
        for _ in 0..workers {
            let journal = PostgresJournal::builder(&url).schema(format!("journal_{schema}")).connect().await?;
            let note = from_schema("note", "Notes.", json!({"type": "object"}), |_: Value, _| async {
                Ok::<_, Error>(ToolOutput::text("noted"))
            });
            let agent = Agent::builder("bench", Slow { takes: model, steps, slept: Arc::clone(&slept) })
                .max_steps(u32::try_from(steps + 1)?)
                .tool(note)
                .store(journal.clone())
                .build()?;
            let worker = Worker::builder(Arc::new(open().await?)).agent(agent).at_once(at_once).build()?;
            drop(working.spawn(async move { worker.run_until(std::future::pending()).await }));
            journals.push(journal);
        }
        while !queue
            .jobs(&Wanted::default().most(usize::MAX))
            .await?
            .iter()
            .all(|job| job.standing.kind() == JobStatusKind::Done)
        {
            sleep(Duration::from_millis(20)).await;
        }
        let transactions = journals.iter().map(|journal| journal.stats().commits).sum();
        let model = Duration::from_nanos(slept.load(Ordering::Relaxed));
        Ok(Measured { took: begun.elapsed(), model, transactions })
    }
}

/// Returns the bytes of each step of the first run, and its duration in milliseconds.
async fn steps_of(database: &Database, schema: &str) -> Result<Vec<(u64, u64)>, BoxError> {
    let url = database.url(database.port());
    let journal = PostgresJournal::builder(&url).schema(format!("journal_{schema}")).connect().await?;
    let (mut steps, mut before) = (Vec::new(), None);
    for entry in journal.read("s0", 0, usize::MAX).await? {
        if let EntryBody::ModelFinished { .. } = entry.body {
            steps.push((0, entry.time - before.unwrap_or(entry.time)));
            before = Some(entry.time);
        }
        if let Some((bytes, _)) = steps.last_mut() {
            *bytes += entry.body.to_json()?.len() as u64;
        }
    }
    Ok(steps)
}

/// Returns the duration of inserting a single row, in milliseconds.
fn insert(database: &Database) -> Result<f64, BoxError> {
    let (port, host) = (database.port().to_string(), "127.0.0.1");
    let to = ["-h", host, "-p", &port, "-U", "tests", "postgres"];
    let table = "CREATE TABLE bare (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body TEXT)";
    database.run("psql", &[&["-q", "-c", table][..], &to].concat())?;
    let script =
        tempfile::Builder::new().permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644)).tempfile()?;
    std::fs::write(script.path(), "INSERT INTO bare (body) VALUES (repeat(md5(random()::text), 8));")?;
    let script = script.path().display().to_string();
    let said = database.output("pgbench", &[&["-n", "-f", &script, "-c", "1", "-T", "3"][..], &to].concat())?;
    let latency =
        said.lines().find_map(|line| line.strip_prefix("latency average = ")?.strip_suffix(" ms")?.parse::<f64>().ok());
    latency.ok_or_else(|| "pgbench did not say what an INSERT takes".into())
}

/// Slow model that calls a tool in each step but the last.
struct Slow {
    takes: Duration,
    steps: usize,
    /// Total nanoseconds.
    slept: Arc<AtomicU64>,
}

#[async_trait]
impl Model for Slow {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("slow")
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        if !self.takes.is_zero() {
            let began = Instant::now();
            sleep(self.takes).await; // takes a millisecond even for zero
            self.slept.fetch_add(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
        let step = req.messages.iter().filter(|message| matches!(message, Message::Assistant(_))).count() + 1;
        let call = || AssistantMessage::new(vec![Block::tool_call(step.to_string(), "note", "{}")]);
        Ok(ModelResponse::new(if step < self.steps { call() } else { "done".into() }))
    }
}
