//! Measures what workers do over one queue, and what a step of theirs costs beside one bare `INSERT`.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use agent::{
    Agent, Error, Model, ModelRequest, ModelResponse, PostgresJournal, PostgresQueue, Result, RunRequest, ToolOutput,
    Worker,
    core::{AssistantMessage, Block, BoxError, Message, ModelInfo, async_trait},
    dispatch::{Dispatch, Job, StandingKind, Upkeep, Wanted},
    tools::from_schema,
};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::worker_kill::database::Database;

/// Steps of each run.
const STEPS: usize = 10;

/// Runs agents whose model takes 20 ms in 1, 2 and 4 workers that share a queue in a PostgreSQL of the check's own, and tells steps a second; and what a
/// step of one run costs beyond its model, beside one bare INSERT.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Runs of ten steps for each worker.
    #[arg(long, default_value_t = 64)]
    runs: u64,
    /// Runs under way at once in each worker.
    #[arg(long, default_value_t = 16)]
    at_once: usize,
    /// What the model takes, in milliseconds.
    #[arg(long, default_value_t = 20)]
    model: u64,
}

/// Always true: it measures.
pub(crate) async fn run(args: &Args) -> Result<bool, BoxError> {
    let Some(database) = Database::start()? else {
        println!("skipped: no postgres");
        return Ok(true);
    };
    let model = Duration::from_millis(args.model);
    for workers in [1, 2, 4] {
        let runs = args.runs * workers;
        let took = measure(&database, &format!("of{workers}"), workers, args.at_once, runs, model).await?;
        println!("{workers} workers  {:>8.0} steps/s", runs as f64 * STEPS as f64 / took.as_secs_f64());
    }
    let alone = measure(&database, "alone", 1, 1, args.runs.min(20), model).await?;
    let step = alone.as_secs_f64() / (args.runs.min(20) as f64 * STEPS as f64) - model.as_secs_f64();
    let insert = insert(&database)?;
    println!("a step beyond its model   {:>8.3} ms", step * 1e3);
    println!("one bare INSERT           {:>8.3} ms", insert.as_secs_f64() * 1e3);
    println!("ratio                     {:>8.1}", step / insert.as_secs_f64());
    Ok(true)
}

async fn measure(
    database: &Database,
    schema: &str,
    workers: u64,
    at_once: usize,
    runs: u64,
    model: Duration,
) -> Result<Duration, BoxError> {
    let url = database.url(database.port());
    let open = async || PostgresQueue::builder(&url).schema(format!("queue_{schema}")).connect().await;
    let queue = open().await?;
    for run in 0..runs {
        let request = RunRequest::user("Go.").session(format!("s{run}")).run_id(format!("r{run}"));
        queue.dispatch(Job::new("bench", &request)?).await?;
    }
    let mut working = tokio::task::JoinSet::new();
    let begun = Instant::now();
    for _ in 0..workers {
        let journal = PostgresJournal::builder(&url).schema(format!("journal_{schema}")).connect().await?;
        let note = from_schema("note", "Notes.", json!({"type": "object"}), |_: Value, _| async {
            Ok::<_, Error>(ToolOutput::text("noted"))
        });
        let agent = Agent::builder("bench", Slow(model)).tool(note).store(journal).build()?;
        let worker = Worker::builder(Arc::new(open().await?)).agent(agent).at_once(at_once).build()?;
        drop(working.spawn(async move { worker.run_until(std::future::pending()).await }));
    }
    while !queue
        .jobs(&Wanted::default().most(usize::MAX))
        .await?
        .iter()
        .all(|job| job.standing.kind() == StandingKind::Done)
    {
        sleep(Duration::from_millis(20)).await;
    }
    Ok(begun.elapsed())
}

/// What one row costs that is inserted by itself.
fn insert(database: &Database) -> Result<Duration, BoxError> {
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
    Ok(Duration::from_secs_f64(latency.ok_or("pgbench did not say what an INSERT takes")? / 1e3))
}

/// A model that takes its time, and calls a tool in each step but the last.
struct Slow(Duration);

#[async_trait]
impl Model for Slow {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("slow")
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        sleep(self.0).await;
        let step = req.messages.iter().filter(|message| matches!(message, Message::Assistant(_))).count() + 1;
        let call = || AssistantMessage::new(vec![Block::tool_call(step.to_string(), "note", "{}")]);
        Ok(ModelResponse::new(if step < STEPS { call() } else { "done".into() }))
    }
}
