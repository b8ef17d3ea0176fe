//! Compacts recorded conversations with every strategy, and reports whether providers would still
//! accept them and the cost.
//!
//! `cargo run --release -p agent-checks -- compaction-check exchanges.jsonl.gz`
//!
//! Recorded sessions are short, so the longest of each wire are concatenated to twenty transcripts,
//! each like one user's long working day. Each transcript is replayed step by step under the real
//! middleware, against a provider that rejects prompts over the limit and has a prompt cache. Fails
//! if a conversation holds a call without its result, if one of the four wires would reject it, or
//! if the cache-aware planner costs more than the best of the fixed strategies it chooses from.

mod play;
mod report;
mod strategies;
mod transcript;

use std::{
    io::{self, IsTerminal},
    path::PathBuf,
};

use agent::{core::BoxError, llm::Catalogue, middleware::compaction::CachePrices};

use self::{play::Player, report::Report, transcript::Transcript};

/// Compacts recorded conversations with every strategy, at several limits.
///
/// Prints, for each limit and strategy, the number of compactions, tokens before and after, and the
/// cost of all model calls with the provider's prompt cache. Exits with 1 if a conversation became
/// invalid, or if the cache-aware planner costs more than the best fixed strategy.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Exchanges: JSON lines, compressed with gzip if the name ends in `.gz`.
    file: PathBuf,
    /// Number of transcripts made of the recorded sessions.
    #[arg(long, default_value_t = 20)]
    transcripts: usize,
    /// Model whose prices are used.
    #[arg(long, default_value = "claude-sonnet-4-5")]
    model: String,
    /// Limits, as fractions of each transcript's length.
    #[arg(long, value_delimiter = ',', default_values_t = [0.25, 0.4, 0.6])]
    limits: Vec<f64>,
}

/// Returns true if all conversations stayed valid, and the planner paid off.
pub(crate) async fn run(args: &Args) -> Result<bool, BoxError> {
    let prices = CachePrices::of(&Catalogue::builtin(), &args.model);
    let prices = prices.ok_or_else(|| format!("there are no prices for the model '{}'", args.model))?;
    let report = check(args, prices).await.map_err(|error| format!("{}: {error}", args.file.display()))?;
    print!("{report}");
    Ok(report.is_good())
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
