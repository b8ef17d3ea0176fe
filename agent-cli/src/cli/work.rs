//! Commands that run an agent, or help to.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Args, Subcommand};
use clap_complete::Shell;

use super::assigned;

#[derive(Debug, Args)]
#[command(after_help = "\
Only the answer is written to standard output; tools, sub-agents and questions are told on standard error.

Examples:
  agent run 'What is a journal?'
  echo 'What is a journal?' | agent run
  agent run --dir docs 'What does a checkpoint hold?'
  agent run librarian.yaml 'What is a journal?'
  agent run --json 'What is a journal?'")]
pub(crate) struct Run {
    /// Load the agent from FILE, if given, and answer PROMPT [default: standard input]
    #[arg(value_name = "FILE] [PROMPT")]
    pub(crate) words: Vec<String>,
    /// Attach these files: images, documents, texts
    #[arg(long, short, value_name = "FILE")]
    pub(crate) attach: Vec<PathBuf>,
    /// Answer as JSON that matches the JSON Schema of this file
    #[arg(long, value_name = "FILE")]
    pub(crate) output_schema: Option<PathBuf>,
    /// Continue this conversation, or start it
    #[arg(long, short, value_name = "NAME")]
    pub(crate) session: Option<String>,
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    /// Limit the steps, each of which is a model call
    #[arg(long, value_name = "NUMBER")]
    pub(crate) max_steps: Option<u32>,
    /// Exit with 3 at an open question, instead of asking at the terminal
    #[arg(long)]
    pub(crate) no_input: bool,
}

/// Inputs of the agent's prompts.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Inputs {
    /// Set an input of the agent's prompts, as JSON or text
    #[arg(long = "input", value_name = "NAME=JSON", value_parser = assigned)]
    pub(crate) all: Vec<(String, String)>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Prices are US dollars per million tokens.

Examples:
  agent models --provider anthropic
  agent models --json gpt-5")]
pub(crate) struct Models {
    /// List only models whose name contains this text
    #[arg(value_name = "NAME")]
    pub(crate) part: Option<String>,
    /// List only models of this provider
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  agent tools --dir docs
  agent tools librarian.yaml
  agent tools --dir docs call read_file '{\"path\": \"start.md\"}'")]
pub(crate) struct Tools {
    /// Load the agent from this file
    #[arg(value_name = "FILE")]
    pub(crate) agent_file: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) act: Option<ToolsAct>,
    /// Show the JSON Schema of each tool
    #[arg(long)]
    pub(crate) schemas: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ToolsAct {
    /// Call a tool once, with the agent's permissions
    Call {
        /// Select the tool
        tool: String,
        /// Pass these arguments, a JSON object
        #[arg(default_value = "{}")]
        arguments: String,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "\
Of a file, its servers of tools are started or reached, and nothing is asked of a model. Of a plugin's folder, what it would be let do is
shown, and the digest by which a file trusts it.

Examples:
  agent doctor
  agent doctor librarian.yaml
  agent doctor --network")]
pub(crate) struct Doctor {
    /// Check this agent's file, or a plugin's folder [default: this machine]
    #[arg(value_name = "FILE")]
    pub(crate) place: Option<PathBuf>,
    /// Check that the servers of models are reachable, without sending a key
    #[arg(long)]
    pub(crate) network: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Over standard input and output unless an address is given. A client is told of one tool that is the agent, or of the agent's tools.
Tools that the agent's file denies are not served. The bearer token of an HTTP server is read from AGENT_MCP_TOKEN.

Examples:
  agent mcp --tools --dir docs
  agent mcp --http 127.0.0.1:8000")]
pub(crate) struct Mcp {
    /// Load the agent from this file
    #[arg(value_name = "FILE")]
    pub(crate) agent_file: Option<PathBuf>,
    /// Serve over HTTP at this address
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) http: Option<SocketAddr>,
    /// Serve the agent's tools instead of the agent
    #[arg(long)]
    pub(crate) tools: bool,
}

/// The one agent that is meant.
#[derive(Debug, Args)]
pub(crate) struct OneAgent {
    /// Load the agent from this file
    #[arg(value_name = "FILE")]
    pub(crate) agent_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Without an agent's file, sessions can be looked at, searched and exported; with one, it can be talked to, and its runs can be gone on with,
forked and replayed. The page asks for no key and listens on this machine alone.

Examples:
  agent studio
  agent studio runs.db --read-only
  agent studio runs.db librarian.yaml
  agent studio postgres://localhost/agents --listen 127.0.0.1:8080")]
pub(crate) struct Studio {
    /// Open this store: a SQLite file or `postgres://..` [default: that of --store]
    #[arg(value_name = "STORE")]
    pub(crate) place: Option<String>,
    /// Load agents from these files
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Do not reload agents when their files change
    #[arg(long)]
    pub(crate) no_watch: bool,
    /// Listen at this address
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:4177")]
    pub(crate) listen: SocketAddr,
    /// Allow no changes
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Wait for active runs on shutdown
    #[arg(long = "drain-timeout", value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    pub(crate) grace: Duration,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().map_err(|_| "it is no number of seconds".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|_| "it is no length of time".to_owned())
}

#[derive(Debug, Args)]
#[command(after_help = "\
At a terminal, what is not said is asked.

Examples:
  agent new librarian --model offline:any --system 'You answer from files.'
  agent new --from librarian.yaml clerk")]
pub(crate) struct New {
    /// Name the agent, and its file `NAME.yaml`
    #[arg(value_name = "NAME", required_unless_present = "from")]
    pub(crate) agent: Option<String>,
    /// Write all that this file says, such as one of NexAU, into one file beside it
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  agent completions bash > agent.bash")]
pub(crate) struct Completions {
    /// Select the shell
    #[arg(value_name = "SHELL")]
    pub(crate) of: Shell,
}
