//! Where the session is kept.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

use agent::{
    Result,
    core::{Error, Journal},
    store::SqliteJournal,
};
use clap::ValueEnum;

/// A store that runs can be killed over.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Store {
    Sqlite,
    Postgres,
}

impl Store {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        }
    }

    /// The store of the session in `dir`, for the process that comes as number `generation`. A dead process keeps its lease
    /// until it expires; the next one does not wait for that, but has a clock that is further on.
    pub(crate) fn open(self, dir: &Path, generation: u64) -> Result<Arc<dyn Journal>> {
        match self {
            Self::Sqlite => {
                let ahead = Duration::from_secs(60).saturating_mul(u32::try_from(generation).unwrap_or(u32::MAX));
                let journal = SqliteJournal::builder(dir.join("agent.db")).clock(move || SystemTime::now() + ahead);
                Ok(Arc::new(journal.open()?))
            }
            Self::Postgres => Err(Error::config("this build has no PostgreSQL journal: use --store sqlite")),
        }
    }
}
