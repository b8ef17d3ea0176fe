//! Command line of store maintenance.

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
#[command(after_help = "\
The store is that of --store or AGENT_STORE: a SQLite file, or a PostgreSQL database with its journal, queue and ledger.
With migrate=false in its URL, no other command changes the tables of a PostgreSQL database.

Examples:
  agent store migrate --store postgres://agent@db.example.com/agents
  agent store migrate --check --store postgres://agent@db.example.com/agents
  agent store check && agent store vacuum
  agent store retain --older-than 90
  agent store erase --tenant teapots")]
pub(crate) struct Store {
    #[command(subcommand)]
    pub(crate) act: StoreAct,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StoreAct {
    /// Create the tables, or migrate those of an earlier release
    Migrate {
        /// Change nothing; exit with 1 if a migration is needed
        #[arg(long)]
        check: bool,
    },
    /// Check the integrity; exit with 1 if there are problems
    Check,
    /// Remove expired leases and unused texts
    Repair,
    /// Free the space of deleted sessions
    Vacuum,
    /// Rebuild the summaries of sessions and runs
    Rebuild,
    /// Delete old sessions, and jobs that finished long ago
    Retain {
        /// Delete what is older than this
        #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..))]
        older_than: u32,
        /// Restrict to sessions whose names begin so
        #[arg(long, value_name = "TEXT", default_value = "")]
        prefix: String,
    },
    /// Delete all data of a session, a user or a tenant
    Erase(Erased),
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Erased {
    /// Name of the session in the store
    #[arg(long, value_name = "NAME")]
    pub(crate) session: Option<String>,
    /// Name of the user in the store, such as `teapots/ada`
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// Name of the tenant
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
}
