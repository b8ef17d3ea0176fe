//! What can be said of a server.

use std::{net::SocketAddr, path::PathBuf};

use agent_server::Scope;
use clap::Args;
use serde_json::Value;
use tracing_subscriber::filter::Targets;

use crate::engine::Engine;

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
    /// Keep the agents as they are; without this, runs that begin after a file changed have the agent as it is there
    #[arg(long)]
    pub(crate) no_watch: bool,
    /// Who runs the runs: `here`, `workers` (see `agent worker`), or `restate://HOST:PORT`, with `?admin=URL` if that is not at port 9070,
    /// `&service=NAME` for a service that is not `Sessions`, and `&blobs=PLACE` for what is too large for its journal: a folder that all processes share, or
    /// `s3://BUCKET/FOLDER` (feature `s3`)
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
    #[command(flatten)]
    pub(crate) logs: LogOptions,
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
    /// For workers: how many runs may wait in the queue; more are refused [default: any number]
    #[arg(long, value_name = "N")]
    pub(crate) queued: Option<u64>,
    /// For workers: how many runs of one tenant may wait in the queue; more are refused [default: any number]
    #[arg(long, value_name = "N")]
    pub(crate) queued_per_tenant: Option<u64>,
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

/// What is said of what a process that stays writes.
#[derive(Debug, Args)]
pub(crate) struct LogOptions {
    /// What is written on standard error: a level, or one for each part, such as `info,agent_server=debug`
    #[arg(long, value_name = "LEVELS", env = "AGENT_LOG", default_value = "info")]
    pub(crate) log: Targets,
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
