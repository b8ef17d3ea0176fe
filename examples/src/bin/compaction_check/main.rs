//! Compacts recorded conversations with every strategy, and says whether providers would still take them and what it costs.
//!
//! `cargo run --release -p agent-examples --bin compaction_check -- exchanges.jsonl.gz`
//!
//! Recorded sessions are short, so the longest of each wire are put one after the other, as one user's long working day:
//! twenty transcripts. Each is played step by step under the real middleware, against a provider that refuses prompts over
//! the limit and has a prompt cache. Fails if a conversation holds a call without its result, if one of the four wires would
//! refuse it, or if the cache-aware planner costs more than the best of the fixed strategies it chooses from.

#[allow(dead_code, reason = "the other program checks answers too; here only requests are read")]
#[path = "../corpus_check/exchange.rs"]
mod exchange;
mod play;
mod report;
mod strategies;
mod transcript;
#[allow(dead_code, reason = "the other program checks answers too; here only requests are read")]
#[path = "../corpus_check/wires/mod.rs"]
mod wires;

use std::{
    io::{self, IsTerminal},
    path::PathBuf,
    process::ExitCode,
};

use agent::llm::{Catalogue, conformance::json};
use agent::middleware::compaction::CachePrices;
use clap::Parser;

use self::{play::Player, report::Report, transcript::Transcript};

/// Compacts recorded conversations with every strategy, at several limits.
///
/// Prints, for each limit and strategy, how often was compacted, tokens before and after, and what all model calls cost with
/// the provider's prompt cache. Exits with 1 if a conversation became invalid, or if the cache-aware planner costs more than
/// the best fixed strategy.
#[derive(Debug, Parser)]
struct Args {
    /// The exchanges: JSON lines, compressed with gzip if the name ends in `.gz`.
    file: PathBuf,
    /// How many transcripts are made of the recorded sessions.
    #[arg(long, default_value_t = 20)]
    transcripts: usize,
    /// The model whose prices are used.
    #[arg(long, default_value = "claude-sonnet-4-5")]
    model: String,
    /// Limits, as parts of each transcript's own length.
    #[arg(long, value_delimiter = ',', default_values_t = [0.25, 0.4, 0.6])]
    limits: Vec<f64>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let args = Args::parse();
    let Some(prices) = CachePrices::of(&Catalogue::builtin(), &args.model) else {
        eprintln!("there are no prices for the model '{}'", args.model);
        return ExitCode::FAILURE;
    };
    match check(&args, prices).await {
        Ok(report) => {
            print!("{report}");
            if report.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("{}: {error}", args.file.display());
            ExitCode::FAILURE
        }
    }
}

async fn check(args: &Args, prices: CachePrices) -> io::Result<Report> {
    let transcripts = Transcript::read(&args.file, args.transcripts)?;
    if transcripts.is_empty() {
        return Err(io::Error::other("it holds no session with more than one turn"));
    }
    let player = Player::new(&args.model, prices);
    let mut report = Report::new(&transcripts, player.codecs());
    for (at, transcript) in transcripts.iter().enumerate() {
        if io::stderr().is_terminal() {
            eprint!("\rtranscript {} of {}", at + 1, transcripts.len());
        }
        for limit in &args.limits {
            for (name, strategy) in strategies::all(prices) {
                report.add(*limit, name, player.play(transcript, *limit, strategy).await);
            }
        }
    }
    if io::stderr().is_terminal() {
        eprintln!();
    }
    Ok(report)
}
