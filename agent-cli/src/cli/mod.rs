//! The command line.

#[cfg(feature = "chat")]
mod chat;
mod eval;
mod past;
#[cfg(feature = "serve")]
mod queue;
#[cfg(feature = "serve")]
mod serve;
#[cfg(feature = "serve")]
mod store;
mod unused;
mod work;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

#[cfg(feature = "chat")]
pub(crate) use self::chat::*;
pub(crate) use self::{eval::Eval, past::*, unused::refused, work::*};
#[cfg(feature = "serve")]
pub(crate) use self::{queue::*, serve::*, store::*};

/// Exit codes, for the help.
const EXIT_CODES: &str = "\
Exit codes:
  0    finished
  1    failed, ended by a limit or without an answer, or two runs differ
  2    what was asked for cannot be: arguments, configuration
  3    a run waits for an answer (see `agent approve`)
  130  interrupted
  143  terminated

Environment:
  AGENT_MODEL, AGENT_PROVIDERS, AGENT_STORE  the defaults of --model, --providers and --store
  NO_COLOR                  no colours
  ANTHROPIC_API_KEY, OPENAI_API_KEY, ..  keys, by provider (see `agent doctor`)";

/// Runs, chats with, inspects and serves agents.
#[derive(Debug, Parser)]
#[command(name = "agent", version, after_help = EXIT_CODES, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of all commands: the agent, and the store of its sessions.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Global {
    /// Load the agent from this file
    #[arg(long, short, global = true, value_name = "FILE", help_heading = "The agent")]
    pub(crate) file: Option<PathBuf>,
    /// Use this model, such as `anthropic:claude-opus-4-5` [default: an offline stand-in]
    #[arg(
        long,
        short,
        global = true,
        value_name = "PROVIDER:NAME",
        env = "AGENT_MODEL",
        hide_env = true,
        help_heading = "The agent"
    )]
    pub(crate) model: Option<String>,
    /// Add the providers of this JSON file
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "AGENT_PROVIDERS",
        hide_env = true,
        help_heading = "The agent"
    )]
    pub(crate) providers: Option<PathBuf>,
    /// Set the system prompt
    #[arg(long, global = true, value_name = "TEXT", help_heading = "The agent")]
    pub(crate) system: Option<String>,
    /// Add tools for the files of this directory, and ask before changes
    #[arg(long, global = true, value_name = "DIR", help_heading = "The agent")]
    pub(crate) dir: Option<PathBuf>,
    /// Add a shell in a sandbox of the directory, and ask before each command
    #[arg(long, global = true, requires = "dir", help_heading = "The agent")]
    pub(crate) shell: bool,
    /// Add the AGENTS.md files of the directory, up to its repository, to the system prompt
    #[arg(long, global = true, help_heading = "The agent")]
    pub(crate) agents_md: bool,
    /// Set a variable of the agent's file
    #[arg(long, global = true, value_name = "NAME=VALUE", value_parser = assigned, help_heading = "The agent")]
    pub(crate) set: Vec<(String, String)>,
    /// Leave out parts of a file of NexAU that cannot be translated, and list them
    #[arg(long, global = true, help_heading = "The agent")]
    pub(crate) lenient: bool,
    /// Run these tools without asking; `*` matches any characters
    #[arg(long, global = true, value_name = "TOOL", help_heading = "The agent")]
    pub(crate) allow_tool: Vec<String>,
    /// Set the agent's name in sessions [default: agent]
    #[arg(long, global = true, value_name = "NAME", help_heading = "The agent")]
    pub(crate) name: Option<String>,
    /// Store sessions in a SQLite file, `postgres://..` or `memory`
    #[arg(long, global = true, value_name = "URL", env = "AGENT_STORE", hide_env = true, help_heading = "Everywhere")]
    pub(crate) store: Option<String>,
    /// Write JSON
    #[arg(long, global = true, help_heading = "Everywhere")]
    pub(crate) json: bool,
}

/// `NAME=VALUE`.
fn assigned(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("it is a name and a value, with a = between them")?;
    if name.is_empty() { Err("there is no name before the =".to_owned()) } else { Ok((name.into(), value.into())) }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Answer one prompt, and exit
    Run(Run),
    #[cfg(feature = "chat")]
    /// Talk with the agent in the terminal
    Chat(Chat),
    /// List, search and delete sessions
    Sessions(Sessions),
    /// Show a session: timeline, durations, cost
    Inspect(Inspect),
    /// Replay a run with its recorded results
    Replay(Replay),
    /// Continue from a step of a run, in a new session
    Fork(Fork),
    /// Find the first difference of two runs
    Diff(Diff),
    /// Resume a run that stopped
    Resume(Resume),
    /// Answer the question of a run, and resume the run
    Approve(Approve),
    /// Write sessions as JSON lines, Markdown or HTML
    Export(Export),
    /// List models: context window, prices, capabilities
    Models(Models),
    /// List the agent's tools, or call one
    Tools(Tools),
    /// Check the requirements of agents, and give advice
    Doctor(Doctor),
    #[cfg(feature = "serve")]
    /// Serve agents over HTTP: runs, their events, questions, sessions
    Serve(Box<Serve>),
    #[cfg(feature = "serve")]
    /// Run jobs of a queue in PostgreSQL
    Worker(Worker),
    #[cfg(feature = "serve")]
    /// Manage the queue of workers: jobs, dead letters, schedules
    Queue(Queue),
    #[cfg(feature = "serve")]
    /// Maintain the store: migrations, checks, retention, erasure
    Store(Store),
    /// Serve the agent or its tools to clients of the Model Context Protocol
    Mcp(Mcp),
    /// Serve the agent to editors over the Agent Client Protocol
    #[command(after_help = "\
Over standard input and output: the editor starts this command. Nothing else is written to standard output.

Examples:
  agent acp librarian.yaml --store librarian.db
  agent acp --dir .")]
    Acp(OneAgent),
    /// Serve the agent to a program, over lines of JSON (NexAU's)
    #[command(after_help = "\
Over standard input and output. Methods are agent.stream, agent.query and agent.stop.

Examples:
  echo '{\"jsonrpc\": \"2.0-stream\", \"id\": \"1\", \"method\": \"agent.query\", \"params\": {\"messages\": \"Hi.\"}}' | agent stdio")]
    Stdio(OneAgent),
    /// Open the web UI: chats, traces, approvals, forks
    Studio(Studio),
    /// Evaluate an agent with the cases of a file
    Eval(Eval),
    /// Write a file for a new agent
    New(New),
    /// Write the JSON Schema of agent files, for editors
    #[command(after_help = "Examples:\n  agent schema > agent.schema.json")]
    Schema,
    /// Write completions for a shell
    Completions(Completions),
    /// Write the manual page
    #[command(after_help = "Examples:\n  agent man > agent.1")]
    Man,
}
