//! Store of the session.

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

/// Store for killed runs.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Store {
    /// One file per session.
    Sqlite,
    /// One schema per session, in the database that DATABASE_URL names. The schemas are not
    /// removed.
    Postgres,
}

/// Environment variable with the database URL, inherited by child processes.
const DATABASE: &str = "DATABASE_URL";

/// Lease duration of a dead process, where the next one waits for its expiry.
const SHORTEST: Duration = Duration::from_secs(1);

impl Store {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        }
    }

    /// Opens the store of the session in `dir`, for process number `generation`. A dead process
    /// holds its lease until it expires. With SQLite the next process does not wait, but uses a
    /// clock that runs ahead; a PostgreSQL server uses its own clock, so the next process waits.
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
