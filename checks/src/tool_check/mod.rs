//! Checks the handling of tool schemas, the validation of arguments and the tool search on
//! third-party data.
//!
//! `cargo run --release -p agent-checks -- tool-check exchanges.jsonl.gz bfcl.jsonl`

mod case;
mod corrupt;
mod schemas;
mod search;

use std::path::PathBuf;

use agent::core::BoxError;

use self::{case::Case, schemas::Schemas, search::Search};

/// Checks schemas and calls of tools, and the tool search, on third-party data.
///
/// The data are recorded exchanges, or questions as `checks/bfcl.py` prints them. Each tool schema
/// must compile and survive serialisation unchanged; each correct call must match its schema; and
/// the same call with a parameter missing or of another type must be rejected with the name of the
/// place. For the search, reports the tokens that the definitions of a thousand deferred tools add
/// to a model call, and how often the words of the question find the correct tool. Exits with 1 if
/// a schema changes, if a corrupted call is accepted or its place is not named, if the definitions
/// of deferred tools cost 2,000 tokens or more, or if more correct calls than allowed are rejected.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// JSON lines, compressed with gzip if the name ends in `.gz`.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Maximum number of tools to search.
    #[arg(long, default_value_t = 1000)]
    tools: usize,
    /// Maximum number of questions to search for.
    #[arg(long, default_value_t = 5000)]
    questions: usize,
    /// Percentage of recorded calls that may violate their schemas: some models answered so, and
    /// some of the data is wrong.
    #[arg(long, default_value_t = 5.0, value_name = "PERCENT")]
    allowed: f64,
    /// Print each rejected schema and call, and each question whose tool is not found.
    #[arg(long)]
    show: bool,
}

/// Returns true if the claims hold.
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
