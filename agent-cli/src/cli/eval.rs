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
    /// The agent's file
    #[arg(value_name = "FILE")]
    pub(crate) agent_file: PathBuf,
    /// The cases
    pub(crate) cases: PathBuf,
    /// Try each case so often
    #[arg(long, default_value_t = 1, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repeat: u32,
    /// Tries at the same time, at most
    #[arg(long, default_value_t = 4, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) at_once: u32,
    /// The model that judges answers, where a case says `judge`
    #[arg(long, value_name = "PROVIDER:NAME")]
    pub(crate) judge: Option<String>,
    /// Write the tries as JUnit, for CI
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Keep how often each case passed
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    /// End with 1 only if a case passes less often than it did then
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
}
