//! Answers a question from documents: a lead asks one researcher for each collection, and writes a
//! report whose citations are checked before it is accepted.
//!
//! `cargo run -p research -- "How are tool calls in doubt handled?"`

mod citation;
mod library;
mod report;
mod script;
mod team;
#[cfg(test)]
mod tests;

use agent::{llm::model, prelude::*};
use clap::Parser;
use futures::StreamExt;

use crate::report::Report;

/// Answers a question from documents, with citations.
#[derive(Parser, Debug)]
struct Args {
    /// The question.
    #[arg(default_value = "What happens to a tool call if the process dies before its result is stored?")]
    question: String,
    /// A collection of Markdown files, which gets a researcher of its own. Default: the guide and
    /// the design decisions of this repository.
    #[arg(long = "collection", value_name = "NAME=DIR")]
    collections: Vec<String>,
    /// Model of all agents, such as `openai:gpt-5` or `ollama:llama3.2`. Default: a script that
    /// quotes the best passage of each collection.
    #[arg(long, env = "MODEL")]
    model: Option<String>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    let libraries = library::open_all(&args.collections).await?;
    for library in &libraries {
        eprintln!("{}: {} documents", library.name(), library.len());
    }
    let lead = if let Some(name) = &args.model {
        let model = model(name).build()?;
        team::build(&libraries, |_| Ok(model.clone()))?
    } else {
        eprintln!("No model is connected (--model, or MODEL): a script answers.");
        let mut script = script::quoting(&libraries, &args.question).await?;
        team::build(&libraries, |role| script.take(role))?
    };
    println!("{}", ask(&lead, args.question).await?.to_markdown(&libraries)?);
    Ok(())
}

/// Runs the lead, and reports the calls of all agents to standard error.
async fn ask(lead: &Agent, question: String) -> Result<Report> {
    let mut run = lead.start(RunRequest::user(question));
    while let Some(event) = run.next().await {
        match &event.kind {
            EventKind::ToolStarted { name, .. } => eprintln!("{}: {name}", event.ids.path),
            EventKind::Warning { message } => eprintln!("{}: warning: {message}", event.ids.path),
            _ => {}
        }
    }
    run.await?.into_result()?.complete()?.parse()
}
