//! Answers questions about a SQLite database, with charts.
//!
//! `cargo run -p data-analyst`

mod analyst;
mod chart;
mod database;
mod script;
#[cfg(test)]
mod tests;
mod tools;

use std::path::PathBuf;

use agent::{llm::model, prelude::*};
use clap::Parser;

use crate::{database::Database, tools::Charts};

/// Answers a question about a SQLite database, with charts.
#[derive(Parser, Debug)]
struct Args {
    /// The question.
    #[arg(default_value = "How did revenue develop over the year, and which city buys most?")]
    question: String,
    /// Database file, which is only read. Default: a sample, the orders of a shop.
    #[arg(long)]
    database: Option<PathBuf>,
    /// Folder of the charts.
    #[arg(long, default_value = "charts")]
    out: PathBuf,
    /// Model, such as `openai:gpt-5` or `ollama:llama3.2`. Default: a script that knows the sample.
    #[arg(long, env = "MODEL")]
    model: Option<String>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    let charts = Charts::open(&args.out)?;
    let sample = database::sample()?;
    let database = Database::open(args.database.as_deref().unwrap_or(sample.path()))?;
    let analyst = if let Some(name) = &args.model {
        analyst::build(model(name).build()?, database, charts)?
    } else if args.database.is_some() {
        return Err(Error::config("the script knows only the sample database: name a model (--model, or MODEL)"));
    } else {
        eprintln!("No model is connected (--model, or MODEL): a script answers about the sample.");
        analyst::build(script::about_the_sample(&database).await?, database, charts)?
    };
    let end = analyst.run(args.question).await?.into_result()?.complete()?;
    println!("{}", end.answer);
    eprintln!("{} model calls, {} tokens, {:?}", end.usage.calls, end.usage.total(), end.tool_calls);
    Ok(())
}
