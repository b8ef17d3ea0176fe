//! Command line of `agent serve`.

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
    /// Load the agents from these files [default: the agent of the options]
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Do not reload agents when their files change
    #[arg(long)]
    pub(crate) no_watch: bool,
    /// Run jobs with this engine: `embedded`, `workers` or `restate://HOST:PORT`
    ///
    /// `restate://HOST:PORT` takes `?admin=URL` (default: port 9070), `&service=NAME` (default: `Sessions`)
    /// and `&blobs=PLACE` for large values: a shared folder, or `s3://BUCKET/FOLDER` (feature `s3`).
    #[arg(long, value_name = "ENGINE", default_value = "embedded")]
    pub(crate) engine: Engine,
    /// Listen at this address
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    pub(crate) listen: SocketAddr,
    /// Require a key of this file, which contains hashes
    #[arg(long, value_name = "FILE")]
    pub(crate) keys: Option<PathBuf>,
    /// Create a key of this name, write it to standard output, and exit
    #[arg(long, value_name = "NAME", requires = "keys")]
    pub(crate) new_key: Option<String>,
    /// Set the tenant of the new key
    #[arg(long, value_name = "NAME", default_value = "local", requires = "new_key")]
    pub(crate) tenant: String,
    /// Set scopes of the new key [default: read, run, answer, delete]
    #[arg(long, value_name = "SCOPE", value_parser = scope, requires = "new_key")]
    pub(crate) scope: Vec<Scope>,
    /// Set the lifetime of the new key
    #[arg(long, value_name = "DAYS", requires = "new_key")]
    pub(crate) expires: Option<u32>,
    /// Set a limit of the new key, such as `runs=4` or `tokens_per_run=100000`
    #[arg(long, value_name = "NAME=NUMBER", value_parser = limit, requires = "new_key")]
    pub(crate) limit: Vec<(String, Value)>,
    /// Publish the agents' cards (Agent2Agent) without a key
    #[arg(long)]
    pub(crate) public_cards: bool,
    /// Accept bearer tokens from this OpenID Connect issuer
    ///
    /// The claims `tenant`, `sub` and `scope` name the tenant, the user and the permissions.
    #[arg(long, value_name = "URL", requires = "audience")]
    pub(crate) issuer: Option<String>,
    /// Require this audience (`aud`) of bearer tokens
    #[arg(long, value_name = "NAME", requires = "issuer")]
    pub(crate) audience: Option<String>,
    #[command(flatten)]
    pub(crate) logs: LogOptions,
    /// Accept requests for this host name
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Vec<String>,
    /// Allow requests from pages of this origin, such as `https://shop.example`
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) origin: Vec<String>,
    /// Wait for active runs on shutdown
    #[arg(long = "drain-timeout", value_name = "SECONDS", default_value_t = 20)]
    pub(crate) drain: u64,
    /// Set the lease of runs: the time until a dead server's runs resume [default: 30]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) lease: Option<u64>,
    /// Limit the queued runs of workers [default: unlimited]
    #[arg(long, value_name = "N")]
    pub(crate) queued: Option<u64>,
    /// Limit the queued runs of one tenant [default: unlimited]
    #[arg(long, value_name = "N")]
    pub(crate) queued_per_tenant: Option<u64>,
    /// Delete sessions and finished jobs that are older than this
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) retain: Option<u32>,
    /// Accept uploads, and store them in this folder
    #[arg(long = "files", value_name = "DIR")]
    pub(crate) uploads: Option<PathBuf>,
    /// Notify this URL of every run, signed with a key derived from AGENT_WEBHOOK_SECRET
    #[arg(long, value_name = "URL")]
    pub(crate) webhook: Vec<String>,
    /// Allow webhooks at this private address, such as `10.1.0.0/16`
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) webhook_allow: Vec<String>,
}

/// Options of the log of a long-running process.
#[derive(Debug, Args)]
pub(crate) struct LogOptions {
    /// Set the log level on standard error, also per module, such as `info,agent_server=debug`
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
