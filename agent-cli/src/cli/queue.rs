//! Command line of workers and their queue.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use agent::dispatch::JobStatusKind;
use clap::{
    Args, Subcommand,
    builder::{PossibleValuesParser, TypedValueParser},
};

use super::LogOptions;
use crate::engine::Engine;

#[derive(Debug, Args)]
#[command(after_help = "\
The store is a PostgreSQL database, which holds the queue too. Any number of workers, on any machines, share it. When a worker is ended, what it has under way goes
on with others; when it dies, they find out by its lease.

Examples:
  agent worker librarian.yaml --store postgres://agent@db.example.com/agents
  agent worker *.yaml --concurrency 64 --per-tenant 8
  agent worker librarian.yaml --engine restate://127.0.0.1:8080")]
pub(crate) struct Worker {
    /// Load the agents from these files [default: the agent of the options]
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Take jobs from this engine: `workers` or `restate://HOST:PORT`
    ///
    /// `restate://HOST:PORT` takes `?admin=URL` (default: port 9070), `&service=NAME` (default: `Sessions`)
    /// and `&blobs=PLACE` for large values: a shared folder, or `s3://BUCKET/FOLDER` (feature `s3`).
    #[arg(long, value_name = "ENGINE", default_value = "workers")]
    pub(crate) engine: Engine,
    /// Listen at this address, for Restate [default: 127.0.0.1:9080]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<SocketAddr>,
    /// Register this URL with the Restate server [default: the address, unless that is 0.0.0.0]
    #[arg(long, value_name = "URL")]
    pub(crate) advertise: Option<String>,
    /// Set the worker's name [default: a new name]
    #[arg(long, value_name = "NAME")]
    pub(crate) worker: Option<String>,
    /// Limit the concurrent runs of a worker [default: 16]
    #[arg(long = "concurrency", value_name = "N")]
    pub(crate) at_once: Option<usize>,
    /// Limit the concurrent runs of one tenant, equally on all workers
    #[arg(long, value_name = "N")]
    pub(crate) per_tenant: Option<u64>,
    #[command(flatten)]
    pub(crate) logs: LogOptions,
    /// Serve `/health`, `/ready` and `/metrics` at this address, without a key
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) admin: Option<SocketAddr>,
    /// Read uploaded files from this folder, which the server writes
    #[arg(long = "files", value_name = "DIR")]
    pub(crate) uploads: Option<PathBuf>,
    /// Wait for active runs on shutdown [default: 20]
    #[arg(long = "drain-timeout", value_name = "SECONDS")]
    pub(crate) drain: Option<u64>,
    /// Set the lease of runs: the time until a dead worker's runs resume [default: 30]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) lease: Option<u64>,
}

impl Worker {
    /// Time for active runs to reach a safe point.
    pub(crate) fn drain(&self) -> Duration {
        Duration::from_secs(self.drain.unwrap_or(20))
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  agent queue --store postgres://agent@db.example.com/agents
  agent queue --status dead
  agent queue send --agent librarian --tenant teapots 'What do bees do?'
  agent queue show RUN
  agent queue retry RUN
  agent queue schedule nightly '0 3 * * *' --agent librarian --prompt 'Tidy up.'")]
pub(crate) struct Queue {
    #[command(subcommand)]
    pub(crate) act: Option<QueueAct>,
    /// List only jobs with this status
    #[arg(long = "status", value_parser = status())]
    pub(crate) standing: Option<JobStatusKind>,
    /// List only jobs of this tenant
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// Limit the number of jobs [default: 100]
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
}

fn status() -> impl TypedValueParser<Value = JobStatusKind> {
    let known =
        |name: String| JobStatusKind::ALL.into_iter().find(|kind| kind.as_str() == name).ok_or("unknown status");
    PossibleValuesParser::new(JobStatusKind::ALL.map(JobStatusKind::as_str)).try_map(known)
}

#[derive(Debug, Subcommand)]
pub(crate) enum QueueAct {
    /// Enqueue a prompt, and write the run's id
    Send {
        /// Select the agent by name
        #[arg(long, value_name = "NAME")]
        agent: String,
        /// Use this session [default: a new one]
        #[arg(long, value_name = "NAME")]
        session: Option<String>,
        /// Set the tenant
        #[arg(long, value_name = "NAME", default_value = "")]
        tenant: String,
        /// Send this prompt
        prompt: String,
    },
    /// Show a job as JSON
    Show {
        /// Select the run
        run: String,
    },
    /// Retry a dead-lettered job, or resume a suspended one
    Retry {
        /// Select the run
        run: String,
    },
    /// Delete a job that no worker runs
    Drop {
        /// Select the run
        run: String,
    },
    /// Delete completed jobs of all tenants, by age
    Purge {
        /// Set the minimum age
        #[arg(long, value_name = "HOURS", default_value_t = 24)]
        older_than: u64,
    },
    /// List schedules
    Schedules,
    /// Enqueue a prompt on a schedule, in UTC
    Schedule {
        /// Name the schedule
        name: String,
        /// Set the times as cron fields: minute, hour, day, month, weekday
        cron: String,
        /// Select the agent by name
        #[arg(long, value_name = "NAME")]
        agent: String,
        /// Set the tenant
        #[arg(long, value_name = "NAME", default_value = "")]
        tenant: String,
        /// Send this prompt
        #[arg(long, value_name = "TEXT")]
        prompt: String,
    },
    /// Remove a schedule
    Unschedule {
        /// Name the schedule
        name: String,
    },
}
