//! Classifies thousands of documents concurrently, within a budget, and reports what customers say.
//! A second run continues where the first one stopped.
//!
//! `cargo run -p customer-voice`

mod batch;
mod classifier;
mod documents;
mod report;
mod results;
mod rules;
#[cfg(test)]
mod tests;

use std::{fs, path::PathBuf};

use agent::{llm::model, prelude::*};
use clap::Parser;

use crate::{batch::Outcome, results::Results, rules::Rules};

/// Reports what customers say in thousands of documents.
#[derive(Parser, Debug)]
struct Args {
    /// Documents, one `{"id": "..", "text": ".."}` per line. Default: 10,000 generated reviews.
    #[arg(long)]
    input: Option<PathBuf>,
    /// Folder of the results and the report.
    #[arg(long, default_value = "voice")]
    out: PathBuf,
    /// Total budget of all runs with this folder.
    #[arg(long, value_name = "DOLLARS", default_value_t = 2.0)]
    budget: f64,
    /// Number of documents that are classified at the same time.
    #[arg(long, default_value_t = 32)]
    concurrency: usize,
    /// Model, such as `openai:gpt-5-nano` or `ollama:llama3.2`. Default: rules that look for words,
    /// with the prices of a small model.
    #[arg(long, env = "MODEL")]
    model: Option<String>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    fs::create_dir_all(&args.out).map_err(|e| {
        let message = format!("the folder {} cannot be created: name another one with --out", args.out.display());
        Error::config(message).with_source(e)
    })?;
    let documents = documents::read_or_generate(args.input.as_deref())?;
    let mut results = Results::open(&args.out.join("results.jsonl"))?;
    let budget = classifier::budget(args.budget, results.spent())?;
    let classifier = if let Some(name) = &args.model {
        classifier::build(model(name).build()?, budget)?
    } else {
        eprintln!("No model is connected (--model, or MODEL): rules answer.");
        classifier::build(Rules::new()?, budget)?
    };

    let outcome = batch::run(&classifier, documents, &mut results, args.concurrency).await?;
    let report = report::markdown(results.rows());
    let path = args.out.join("report.md");
    fs::write(&path, &report).map_err(|e| Error::config("the report cannot be written").with_source(e))?;
    println!("{report}");
    tell(&outcome, &args);
    Ok(())
}

/// Prints the progress to standard error, and how to continue.
fn tell(outcome: &Outcome, args: &Args) {
    let Outcome { classified, known, failed, left } = outcome;
    eprintln!("{classified} classified, {known} known before, {failed} failed, {left} left.");
    if *left > 0 {
        eprintln!(
            "The budget of {} dollars is used up. To continue, run it again with a larger --budget.",
            args.budget
        );
    } else if *failed > 0 {
        eprintln!("To try the failed documents again, run it again.");
    }
}
