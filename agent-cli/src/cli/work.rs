//! Commands that run an agent, or help to.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use agent_server::Scope;
use clap::{Args, Subcommand};
use clap_complete::Shell;
use serde_json::Value;
use tracing_subscriber::filter::Targets;

use super::assigned;
use crate::engine::{Engine, QueueOptions};

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
Enter sends, Alt-Enter begins a new line, Esc interrupts, Ctrl-R searches what was said before, `/help` tells the rest.

Examples:
  agent chat
  agent chat --session garden --dir docs")]
pub(crate) struct Chat {
    /// The agent's file
    #[arg(value_name = "FILE")]
    pub(crate) agent_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) inputs: Inputs,
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
Without keys, whoever reaches the address may ask: only this machine can. At any other address a key is made and written to standard
error, unless there are keys. What was under way when an earlier server died on the same store is gone on with. With a secret in
AGENT_WEBHOOK_SECRET, whoever starts a run may name an address that is told what becomes of it.

Examples:
  agent serve librarian.yaml --store agents.db
  agent serve --new-key ada --tenant teapots --keys keys.json
  agent serve *.yaml --listen 0.0.0.0:8080 --keys keys.json
  agent serve librarian.yaml --engine workers --store postgres://agent@db.example.com/agents
  agent serve librarian.yaml --engine restate://127.0.0.1:8080")]
pub(crate) struct Serve {
    /// The agents, each a file; without one, the agent that the options mean
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Who runs the runs: `here`, `workers` (see `agent worker`), or `restate://HOST:PORT` (`?admin=URL` if that is not at port 9070)
    #[arg(long, value_name = "ENGINE", default_value = "here")]
    pub(crate) engine: Engine,
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
    /// What the new key may be used for: read, run, answer, delete, metrics; everything but metrics if nothing is said
    #[arg(long, value_name = "SCOPE", value_parser = scope, requires = "new_key")]
    pub(crate) scope: Vec<Scope>,
    /// Days after which the new key is of no use
    #[arg(long, value_name = "DAYS", requires = "new_key")]
    pub(crate) expires: Option<u32>,
    /// What the new key may use: one of the limits of a row, such as `runs=4` or `tokens_per_run=100000`
    #[arg(long, value_name = "NAME=NUMBER", value_parser = limit, requires = "new_key")]
    pub(crate) limit: Vec<(String, Value)>,
    /// Let everybody read the agents' cards (Agent2Agent), also without a key
    #[arg(long)]
    pub(crate) public_cards: bool,
    /// Let callers ask who come with tokens of this issuer (OpenID Connect), such as `https://login.example`; the claims `tenant`, `sub` and
    /// `scope` say whose they are and what they may do
    #[arg(long, value_name = "URL", requires = "audience")]
    pub(crate) issuer: Option<String>,
    /// For whom the issuer's tokens must be
    #[arg(long, value_name = "NAME", requires = "issuer")]
    pub(crate) audience: Option<String>,
    /// What is written on standard error: a level, or one for each part, such as `info,agent_server=debug`
    #[arg(long, value_name = "LEVELS", env = "AGENT_LOG", default_value = "info")]
    pub(crate) log: Targets,
    /// Take requests by this name, too
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Vec<String>,
    /// Let pages of this origin ask, such as `https://shop.example`
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) origin: Vec<String>,
    /// How long runs have to reach a safe point when the server is told to end
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    pub(crate) drain: u64,
    /// How long a server that died keeps its runs from others [default: 30]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) lease: Option<u64>,
    #[command(flatten)]
    pub(crate) queue: QueueOptions,
    /// Take files that clients upload, and keep them in this folder
    #[arg(long = "files", value_name = "DIR")]
    pub(crate) uploads: Option<PathBuf>,
    /// Tell this address of every run; messages are signed with what follows from AGENT_WEBHOOK_SECRET
    #[arg(long, value_name = "URL")]
    pub(crate) webhook: Vec<String>,
    /// Let webhooks be at this address though it is not of the public internet, such as `10.1.0.0/16`
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) webhook_allow: Vec<String>,
}

fn scope(name: &str) -> Result<Scope, String> {
    let known = || Scope::ALL.map(Scope::as_str).join(", ");
    Scope::ALL.into_iter().find(|scope| scope.as_str() == name).ok_or_else(|| format!("the scopes are {}", known()))
}

fn limit(text: &str) -> Result<(String, Value), String> {
    let number = |number: &str| serde_json::from_str(number).ok().filter(Value::is_number);
    let read = text.split_once('=').and_then(|(name, most)| Some((name.to_owned(), number(most)?)));
    read.ok_or_else(|| "a limit is a name, '=' and a number".to_owned())
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
