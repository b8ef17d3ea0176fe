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
    /// The agent's file (`.yaml`, `.toml`, `.json`), if any, and the prompt; without one, standard input is read
    #[arg(value_name = "FILE] [PROMPT")]
    pub(crate) words: Vec<String>,
    /// Send these files along: images, documents, texts
    #[arg(long, short, value_name = "FILE")]
    pub(crate) attach: Vec<PathBuf>,
    /// Answer as JSON that fits the JSON Schema in this file
    #[arg(long, value_name = "FILE")]
    pub(crate) output_schema: Option<PathBuf>,
    /// Go on with this conversation, or begin it
    #[arg(long, short, value_name = "NAME")]
    pub(crate) session: Option<String>,
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    /// Steps at most, each one call of the model
    #[arg(long, value_name = "NUMBER")]
    pub(crate) max_steps: Option<u32>,
    /// Do not ask at the terminal: end with 3 where a question is open
    #[arg(long)]
    pub(crate) no_input: bool,
}

/// What the agent's prompts are filled with.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Inputs {
    /// Give an input of the agent's prompts this value: JSON, or else a text
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
    /// Only models whose name has this in it
    #[arg(value_name = "NAME")]
    pub(crate) part: Option<String>,
    /// Only those of this provider
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
    /// The agent's file
    #[arg(value_name = "FILE")]
    pub(crate) agent_file: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) act: Option<ToolsAct>,
    /// Show the JSON Schema of each
    #[arg(long)]
    pub(crate) schemas: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ToolsAct {
    /// Call a tool by hand; what the agent asks about is asked about
    Call {
        /// The tool
        tool: String,
        /// Its arguments, a JSON object
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
    /// The agent's file that is looked at, or a plugin's folder; without one, this machine
    #[arg(value_name = "FILE")]
    pub(crate) place: Option<PathBuf>,
    /// Also ask the servers of providers whose keys are set for nothing, through the proxy if there is one; no key is sent
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
    /// The agent's file
    #[arg(value_name = "FILE")]
    pub(crate) agent_file: Option<PathBuf>,
    /// Serve over HTTP at this address
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) http: Option<SocketAddr>,
    /// Serve the tools for files and commands, not the agent
    #[arg(long)]
    pub(crate) tools: bool,
}

/// The one agent that is meant.
#[derive(Debug, Args)]
pub(crate) struct OneAgent {
    /// The agent's file (`.yaml`)
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
    /// The store: a SQLite file or `postgres://..` [default: that of --store]
    #[arg(value_name = "STORE")]
    pub(crate) place: Option<String>,
    /// Agents, as files
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Keep the agents as they are; without this, runs that begin after a file changed have the agent as it is there
    #[arg(long)]
    pub(crate) no_watch: bool,
    /// Listen at this address
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:4177")]
    pub(crate) listen: SocketAddr,
    /// Let nothing be started or changed
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Wait so long for runs under way when it is ended
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
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
  agent new librarian --model offline:any --system 'You answer from files.'")]
pub(crate) struct New {
    /// The agent's name; the file is `NAME.yaml`
    #[arg(value_name = "NAME")]
    pub(crate) agent: String,
    /// Replace a file that is there
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  agent completions bash > agent.bash")]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(crate) of: Shell,
}
