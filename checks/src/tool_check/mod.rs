//! Checks the reading of tool schemas, the checks of arguments and the search for tools on data of others.
//!
//! `cargo run --release -p agent-checks -- tool-check exchanges.jsonl.gz bfcl.jsonl`

mod case;
mod corrupt;
mod schemas;
mod search;

use std::path::PathBuf;

use agent::core::BoxError;

use self::{case::Case, schemas::Schemas, search::Search};

/// Checks schemas and calls of tools, and the search among many tools, on data of others.
///
/// The data are recorded exchanges, or questions as `checks/bfcl.py` prints them. Each schema of a tool must compile and come back
/// as it was; each call that is the right answer must fit its schema; and the same call with a parameter that is missing or of
/// another type must be refused with the name of the place. Of the search is told how many tokens the definitions of a thousand
/// deferred tools cost a model call, and how often the tool that the answer calls is found by the words of the question.
/// Exits with 1 if a schema does not come back, if a corrupted call is taken or its place is not named, if the definitions of deferred
/// tools cost 2,000 tokens or more, or if more right calls than allowed are refused.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// JSON lines, compressed with gzip if the name ends in `.gz`.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The tools that are searched at most.
    #[arg(long, default_value_t = 1000)]
    tools: usize,
    /// The questions that are searched at most.
    #[arg(long, default_value_t = 5000)]
    questions: usize,
    /// Recorded calls that may not fit their schemas, in percent: some models answered so, and some of the data is wrong.
    #[arg(long, default_value_t = 5.0, value_name = "PERCENT")]
    allowed: f64,
    /// Print each schema and call that is refused, and each question whose tool is not found.
    #[arg(long)]
    show: bool,
}

/// True if what is claimed holds.
pub(crate) fn run(args: &Args) -> Result<bool, BoxError> {
    let mut all = true;
    for file in &args.files {
        println!("{}", file.display());
        let cases = Case::read(file)?;
        let mut schemas = Schemas::default();
        cases.iter().for_each(|case| schemas.take(case, args.show));
        println!("{schemas}");
        let search = Search::of(&cases, args.tools, args.questions, args.show)?;
        println!("{search}");
        all &= schemas.hold(args.allowed) && search.holds();
    }
    Ok(all)
}
