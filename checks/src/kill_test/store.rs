//! Where the session is kept.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

use agent::{
    PostgresJournal, Result,
    core::{Error, Journal},
    store::SqliteJournal,
};
use clap::ValueEnum;

/// A store that runs can be killed over.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Store {
    /// A file for each session.
    Sqlite,
    /// A schema for each session, in the database that DATABASE_URL names. They are left there.
    Postgres,
}

/// Where the database is; the processes inherit it.
const DATABASE: &str = "DATABASE_URL";

/// How long a dead process keeps its lease, where it is waited for.
const SHORTEST: Duration = Duration::from_secs(1);

impl Store {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        }
    }

    /// The store of the session in `dir`, for the process that comes as number `generation`. A dead process keeps its lease
    /// until it expires. With SQLite the next one does not wait for that, but has a clock that is further on; a PostgreSQL
    /// server goes by its own clock, and the next one waits.
    pub(crate) async fn open(self, dir: &Path, generation: u64) -> Result<Arc<dyn Journal>> {
        match self {
            Self::Sqlite => {
                let ahead = Duration::from_secs(60).saturating_mul(u32::try_from(generation).unwrap_or(u32::MAX));
                let journal = SqliteJournal::builder(dir.join("agent.db")).clock(move || SystemTime::now() + ahead);
                Ok(Arc::new(journal.open()?))
            }
            Self::Postgres => {
                let missing = |_| Error::config(format!("set {DATABASE}, such as postgres://agent@localhost/agents"));
                let url = std::env::var(DATABASE).map_err(missing)?;
                let schema = dir.file_name().map(|name| format!("kill_test_{}", name.to_string_lossy()));
                let journal = PostgresJournal::builder(&url).schema(schema.unwrap_or_default()).lease_ttl(SHORTEST);
                Ok(Arc::new(journal.connect().await?))
            }
        }
    }
}
