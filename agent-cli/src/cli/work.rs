//! Commands that run an agent, or help to.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Args, Subcommand};
use clap_complete::Shell;

#[derive(Debug, Args)]
#[command(after_help = "\
Only the answer is written to standard output; tools, sub-agents and questions are told on standard error.

Examples:
  agent run 'What is a journal?'
  echo 'What is a journal?' | agent run
  agent run --dir docs 'What does a checkpoint hold?'
  agent run --json 'What is a journal?'")]
pub(crate) struct Run {
    /// The agent's file (`.yaml`), if any, and the prompt; without one, standard input is read
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
    /// Steps at most, each one call of the model
    #[arg(long, value_name = "NUMBER")]
    pub(crate) max_steps: Option<u32>,
    /// Do not ask at the terminal: end with 3 where a question is open
    #[arg(long)]
    pub(crate) no_input: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Enter sends, Alt-Enter begins a new line, Esc interrupts, Ctrl-R searches what was said before, `/help` tells the rest.

Examples:
  agent chat
  agent chat --session garden --dir docs")]
pub(crate) struct Chat {
    /// The agent's file (`.yaml`)
    #[arg(value_name = "FILE")]
    pub(crate) agent_file: Option<PathBuf>,
    /// The conversation; without one, a new one begins
    #[arg(long, short, value_name = "NAME")]
    pub(crate) session: Option<String>,
    /// The colours
    #[arg(long, value_enum, default_value_t)]
    pub(crate) theme: ThemeName,
}

/// The colours of `agent chat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ThemeName {
    /// For dark terminals
    #[default]
    Dark,
    /// For light terminals
    Light,
    /// No colours; also where NO_COLOR is set
    None,
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
  agent tools --file librarian.yaml
  agent tools --dir docs call read_file '{\"path\": \"start.md\"}'")]
pub(crate) struct Tools {
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
    /// Also try to reach the providers whose keys are set; nothing is sent but the beginning of a connection
    #[arg(long)]
    pub(crate) network: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Without keys, whoever reaches the address may ask: only this machine can. At any other address a key is made and written to standard
error, unless there are keys. What was under way when an earlier server died on the same store is gone on with.

Examples:
  agent serve librarian.yaml --store agents.db
  agent serve --new-key ada --tenant teapots --keys keys.json
  agent serve *.yaml --listen 0.0.0.0:8080 --keys keys.json")]
pub(crate) struct Serve {
    /// The agents, each a file (`.yaml`); without one, the agent that the options mean
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The address
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    pub(crate) listen: SocketAddr,
    /// Who may ask: a file of keys, of which it holds hashes alone
    #[arg(long, value_name = "FILE")]
    pub(crate) keys: Option<PathBuf>,
    /// Make a key of this name, add it to the file of keys and write it to standard output, and end
    #[arg(long, value_name = "NAME", requires = "keys")]
    pub(crate) new_key: Option<String>,
    /// Whose sessions the new key opens
    #[arg(long, value_name = "NAME", default_value = "local", requires = "new_key")]
    pub(crate) tenant: String,
    /// Take requests by this name, too
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Vec<String>,
    /// Let pages of this origin ask, such as `https://shop.example`
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) origin: Vec<String>,
    /// How long runs have to reach a safe point when the server is told to end
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    pub(crate) drain: u64,
    /// How long a server that died keeps its runs from others
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub(crate) lease: u64,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Over standard input and output unless an address is given. A client is told of one tool that is the agent, or of the agent's tools.
The bearer token of an HTTP server is read from AGENT_MCP_TOKEN.

Examples:
  agent mcp --tools --dir docs
  agent mcp --http 127.0.0.1:8000")]
pub(crate) struct Mcp {
    /// Serve over HTTP at this address
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) http: Option<SocketAddr>,
    /// Serve the tools for files and commands, not the agent
    #[arg(long)]
    pub(crate) tools: bool,
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
