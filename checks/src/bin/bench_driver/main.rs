//! Agent workload that benchmarks compare with a bare loop over the same requests: N concurrent
//! conversations with the tools `echo`, `calculator` and `wait`, through the public API, against a
//! scripted server.
//!
//! Prints its measurements as one JSON line. See `--help`.

mod measure;

use std::{path::PathBuf, sync::Arc, time::Instant};

use agent::{
    Agent, AgentBuilder, RunEnd, RunRequest,
    core::{
        Chunk, Effect, Error, EventKind, MemoryJournal, Result, Tool, ToolOptions, ToolOutput, ToolRequest, ToolSpec,
    },
    llm::{Provider, Wire},
    store::SqliteJournal,
    testing::EveryHook,
};
use agent_checks::builtins;
use clap::{Parser, ValueEnum};
use futures::{StreamExt, future::try_join_all};
use serde_json::json;

use self::measure::{Mark, Report, Seen};

/// Runs agents against a scripted model server and prints the cost.
#[derive(Parser, Clone, Debug)]
pub(crate) struct Args {
    /// Base URL of the server, up to and including `/v1`.
    #[arg(long)]
    base_url: String,
    /// Name of the model, which selects the server's script.
    #[arg(long, default_value = "mock-tools-1x1")]
    model: String,
    /// Number of concurrent conversations.
    #[arg(long, default_value_t = 1)]
    agents: usize,
    /// Stream the responses if 1.
    #[arg(long, default_value_t = 0)]
    stream: u8,
    /// Number of measured batches.
    #[arg(long, default_value_t = 1)]
    repeat: usize,
    /// Number of single runs before the first batch.
    #[arg(long, default_value_t = 1)]
    warmup: usize,
    /// Store for runs.
    #[arg(long, default_value = "none")]
    store: Store,
    /// File for `--store sqlite`.
    #[arg(long)]
    db: Option<PathBuf>,
    /// Number of user turns in one stored session.
    #[arg(long, default_value_t = 1)]
    turns: usize,
    /// Number of middlewares that override every hook and do nothing.
    #[arg(long, default_value_t = 0)]
    middlewares: usize,
    /// Add ten built-in middlewares, all idle.
    #[arg(long)]
    builtins: bool,
    /// Output format of the report.
    #[arg(long, default_value = "json")]
    out: String,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Store {
    None,
    Memory,
    Sqlite,
}

/// Maximum of responses processed concurrently by the thread. Ready runs take turns: with a
/// thousand of them, none would find its data from the previous turn in the CPU caches.
const ANSWERS_AT_ONCE: usize = 16;

/// The tools `echo`, `calculator` and `wait`: each returns its text, the last one after 10 ms.
struct Text(&'static str);

#[agent::core::async_trait]
impl Tool for Text {
    fn spec(&self) -> ToolSpec {
        let text = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
        ToolSpec::new(self.0, "returns its text", text)
    }

    fn options(&self) -> ToolOptions {
        ToolOptions::default().effect(Effect::Pure)
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        if self.0 == "wait" {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        measure::tick();
        Ok(ToolOutput::text(req.args["text"].as_str().unwrap_or_default()))
    }
}

fn agent(args: &Args) -> Result<Agent> {
    let model =
        Provider::new("bench", Wire::Chat, &args.base_url).model(&args.model).api_key("x").retries(0).build()?;
    let builder = Agent::builder("bench", model)
        .tool(Text("echo"))
        .tool(Text("calculator"))
        .tool(Text("wait"))
        .streaming(args.stream == 1)
        .max_steps(u32::MAX)
        .tool_concurrency(usize::MAX);
    let builder = (0..args.middlewares).fold(builder, |b: AgentBuilder, _| b.middleware(EveryHook));
    let builder = if args.builtins { builtins::with(builder, 10) } else { builder };
    match args.store {
        Store::None => builder,
        Store::Memory => builder.store(MemoryJournal::default()),
        Store::Sqlite => {
            let db = args.db.clone().ok_or_else(|| Error::config("--store sqlite needs --db FILE"))?;
            builder.store(SqliteJournal::open(db)?)
        }
    }
    .build()
}

/// Runs one conversation until its final text.
async fn converse(agent: Agent, request: RunRequest, stream: bool) -> Result<Seen> {
    let (start, mut seen) = (Instant::now(), Seen::default());
    let mut run = agent.start(request);
    if stream {
        while let Some(event) = run.next().await {
            if matches!(&event.kind, EventKind::Chunk(Chunk::Text { delta, .. }) if !delta.is_empty()) {
                seen.deltas += 1;
                seen.first_delta_s.get_or_insert_with(|| start.elapsed().as_secs_f64());
            }
        }
    }
    match run.await? {
        RunEnd::Finished(_) => Ok(seen),
        other => Err(Error::tool(format!("the run was {}", other.as_str()))),
    }
}

/// Runs `agents` concurrent conversations.
async fn batch(agent: &Agent, agents: usize, stream: bool) -> Result<Seen> {
    let runs = (0..agents).map(|_| tokio::spawn(converse(agent.clone(), RunRequest::user("go"), stream)));
    let ended = try_join_all(runs).await.map_err(|e| Error::tool("a run's task failed").with_source(e))?;
    ended.into_iter().try_fold(Seen::default(), |all, seen| Ok(all.and(&seen?)))
}

/// Runs one conversation of several user turns in one stored session.
async fn turns(agent: &Agent, args: &Args) -> Result<Vec<Mark>> {
    let (mut marks, session) = (Vec::new(), Arc::<str>::from("bench"));
    let start = Mark::now();
    for _ in 0..args.turns {
        let request = RunRequest::user("go").session(session.clone());
        converse(agent.clone(), request, args.stream == 1).await?;
        marks.push(Mark::now().since(&start));
    }
    Ok(marks)
}

async fn run(args: &Args, started: Instant) -> Result<Report> {
    let mut report = Report::begin();
    let agent = agent(args)?;
    for _ in 0..args.warmup {
        batch(&agent, 1, args.stream == 1).await?;
    }
    report.warm(started);
    for _ in 0..args.repeat {
        let before = report.before_batch();
        if args.turns > 1 {
            let marks = turns(&agent, args).await?;
            report.after_batch(&before, &Seen::default(), &marks, args.db.as_deref());
        } else {
            let seen = batch(&agent, args.agents, args.stream == 1).await?;
            report.after_batch(&before, &seen, &[], args.db.as_deref());
        }
    }
    Ok(report)
}

fn main() -> std::process::ExitCode {
    let (started, args) = (Instant::now(), Args::parse());
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().max_io_events_per_tick(ANSWERS_AT_ONCE).build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(e) => {
            eprintln!("no runtime: {e}");
            return std::process::ExitCode::FAILURE;
        }
    };
    match runtime.block_on(run(&args, started)) {
        Ok(report) => {
            println!("{}", report.to_json());
            std::process::ExitCode::SUCCESS
        }
        Err(e) => {
            eprintln!("{e:?}");
            std::process::ExitCode::FAILURE
        }
    }
}
