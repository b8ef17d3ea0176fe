//! `agent eval`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "\
Cases are a list in YAML or JSON, or one a line in `.jsonl`: `name` and `input`, and of what must come of it what is wanted: `equals`,
`contains`, `matches`, `schema`, `judge`, `tools`, `no_tools`, `budget`. It ends with 1 if a try failed.

Examples:
  agent eval librarian.yaml cases.yaml
  agent eval librarian.yaml cases.yaml --repeat 3 --save before.json
  agent eval librarian.yaml cases.yaml --baseline before.json --junit report.xml")]
pub(crate) struct Eval {
    /// Load the agent from this file
    #[arg(value_name = "FILE")]
    pub(crate) agent_file: PathBuf,
    /// Read the cases from this file
    pub(crate) cases: PathBuf,
    /// Run each case this number of times
    #[arg(long, default_value_t = 1, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repeat: u32,
    /// Limit the concurrent tries
    #[arg(long = "concurrency", default_value_t = 4, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) at_once: u32,
    /// Judge answers with this model, for cases with `judge`
    #[arg(long, value_name = "PROVIDER:NAME")]
    pub(crate) judge: Option<String>,
    /// Write the results as JUnit, for CI
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Save the pass rate of each case
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    /// Fail only if a case passes less often than in this earlier result
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
}
