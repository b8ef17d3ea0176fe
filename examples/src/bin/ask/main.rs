//! Answers a question about a directory: an agent with the workspace tools and one sub-agent, streamed to the terminal, with a
//! journal that is printed as a timeline at the end.
//!
//! `cargo run` asks about this repository. See `--help`.

mod agents;
mod show;
mod timeline;

use std::{path::PathBuf, sync::Arc};

use agent::{Error, Model, Result, RunEnd, RunRequest, SqliteJournal, llm::offline::OfflineModel};
use agent_examples::models::ModelArgs;
use clap::Parser;
use futures::StreamExt;

/// Answers a question about a directory.
#[derive(Parser, Debug)]
#[command(version)]
struct Args {
    /// The question.
    #[arg(
        default_value = "What does the documentation say about the order of middleware hooks, and which code runs them?"
    )]
    question: String,
    /// The directory that the question is about. Default: this repository, or the current directory.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Where the journal is kept.
    #[arg(long, default_value = "ask.db")]
    journal: PathBuf,
    #[command(flatten)]
    model: ModelArgs,
}

/// The model, and a line that says which it is.
async fn connect(args: &ModelArgs) -> Result<(Arc<dyn Model>, String)> {
    let offline =
        "Model: the embedded extractive stand-in (no model is connected; set OPENAI_BASE_URL, or try --local).";
    Ok(args.connect().await?.unwrap_or_else(|| (Arc::new(OfflineModel), offline.into())))
}

fn default_dir() -> PathBuf {
    let repository = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    if repository.is_dir() { repository } else { PathBuf::from(".") }
}

async fn run(args: Args) -> Result<()> {
    let dir = args.dir.unwrap_or_else(default_dir);
    let (model, which) = connect(&args.model).await?;
    println!("{which}\n\n? {}\n", args.question);
    let journal = SqliteJournal::open(&args.journal)?;
    let agent = agents::build(model, &dir, journal.clone())?;

    let session = agent::core::run::new_id();
    let mut run = agent.start(RunRequest::user(args.question).session(session.as_str()));
    let handle = run.handle();
    tokio::spawn(async move {
        // Ctrl-C ends the run in an orderly way; the journal keeps what was done.
        if tokio::signal::ctrl_c().await.is_ok() {
            handle.cancel();
        }
    });
    let mut shown = show::Terminal::default();
    while let Some(event) = run.next().await {
        shown.event(&event);
    }
    let end = run.await;
    shown.end(&end);
    timeline::print(&journal, &session).await?;
    println!("\nThe journal is kept in {}.", args.journal.display());
    match end? {
        RunEnd::Finished(_) => Ok(()),
        other => Err(Error::tool(format!("the run was {}", other.as_str()))),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::process::ExitCode {
    match run(Args::parse()).await {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{e:?}");
            std::process::ExitCode::FAILURE
        }
    }
}
