//! What can be said of workers and their queue.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use agent::dispatch::StandingKind;
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
  agent worker *.yaml --at-once 64 --per-tenant 8
  agent worker librarian.yaml --engine restate://127.0.0.1:8080")]
pub(crate) struct Worker {
    /// The agents, each a file (`.yaml`); without one, the agent that the options mean
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Whom it works for: `workers`, which is the queue beside the store, or `restate://HOST:PORT`, with `?admin=URL` if that is not at port 9070,
    /// `&service=NAME` for a service that is not `Sessions`, and `&blobs=PLACE` for what is too large for its journal: a folder that all processes share, or
    /// `s3://BUCKET/FOLDER` (feature `s3`)
    #[arg(long, value_name = "ENGINE", default_value = "workers")]
    pub(crate) engine: Engine,
    /// For Restate: the address at which it serves [default: 127.0.0.1:9080]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<SocketAddr>,
    /// For Restate: the URL at which the server reaches it [default: the address, unless that is 0.0.0.0]
    #[arg(long, value_name = "URL")]
    pub(crate) advertise: Option<String>,
    /// What the worker calls itself [default: a new name]
    #[arg(long, value_name = "NAME")]
    pub(crate) worker: Option<String>,
    /// For workers: how many runs are under way at once [default: 16]
    #[arg(long, value_name = "N")]
    pub(crate) at_once: Option<usize>,
    /// For workers: how many runs of one tenant are under way at once, on all machines; give all workers the same
    #[arg(long, value_name = "N")]
    pub(crate) per_tenant: Option<u64>,
    #[command(flatten)]
    pub(crate) logs: LogOptions,
    /// How long runs have to reach a safe point when the worker is told to end [default: 20]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) drain: Option<u64>,
    /// For workers: how long a worker that died keeps its runs from others [default: 30]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) lease: Option<u64>,
}

impl Worker {
    /// How long runs have to reach a safe point.
    pub(crate) fn drain(&self) -> Duration {
        Duration::from_secs(self.drain.unwrap_or(20))
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  agent queue --store postgres://agent@db.example.com/agents
  agent queue --standing dead
  agent queue send --agent librarian --tenant teapots 'What do bees do?'
  agent queue show RUN
  agent queue retry RUN
  agent queue schedule nightly '0 3 * * *' --agent librarian --prompt 'Tidy up.'")]
pub(crate) struct Queue {
    #[command(subcommand)]
    pub(crate) act: Option<QueueAct>,
    /// List those alone that stand so
    #[arg(long, value_parser = standing())]
    pub(crate) standing: Option<StandingKind>,
    /// List those of this tenant alone
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// List no more than these [default: 100]
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
}

fn standing() -> impl TypedValueParser<Value = StandingKind> {
    let known =
        |name: String| StandingKind::ALL.into_iter().find(|kind| kind.as_str() == name).ok_or("no such standing");
    PossibleValuesParser::new(StandingKind::ALL.map(StandingKind::as_str)).try_map(known)
}

#[derive(Debug, Subcommand)]
pub(crate) enum QueueAct {
    /// Send a prompt to the workers, and write the run's id
    Send {
        /// The agent that is to answer, by name
        #[arg(long, value_name = "NAME")]
        agent: String,
        /// The session; a new one without it
        #[arg(long, value_name = "NAME")]
        session: Option<String>,
        /// Among whose jobs turns are shared out
        #[arg(long, value_name = "NAME", default_value = "")]
        tenant: String,
        /// The prompt
        prompt: String,
    },
    /// Show a job whole, as JSON
    Show {
        /// The run
        run: String,
    },
    /// Let a job that was given up or is at rest go on
    Retry {
        /// The run
        run: String,
    },
    /// Forget a job that no worker has
    Drop {
        /// The run
        run: String,
    },
    /// Forget the jobs that were done so long ago, of all tenants
    Purge {
        /// How long ago
        #[arg(long, value_name = "HOURS", default_value_t = 24)]
        older_than: u64,
    },
    /// List schedules
    Schedules,
    /// Send a prompt at certain times, in UTC
    Schedule {
        /// The schedule's name
        name: String,
        /// Its times as cron says them: minute, hour, day of the month, month, day of the week
        cron: String,
        /// The agent that is to answer, by name
        #[arg(long, value_name = "NAME")]
        agent: String,
        /// Among whose jobs turns are shared out
        #[arg(long, value_name = "NAME", default_value = "")]
        tenant: String,
        /// The prompt
        #[arg(long, value_name = "TEXT")]
        prompt: String,
    },
    /// Remove a schedule
    Unschedule {
        /// The schedule's name
        name: String,
    },
}
