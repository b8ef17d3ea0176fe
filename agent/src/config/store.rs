//! Stores by their address.

use std::{fmt, path::PathBuf, str::FromStr, sync::Arc, time::Duration};

use agent_core::{
    Error, Journal, Result,
    budget::{Ledger, MemoryLedger},
    journal::MemoryJournal,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::near;

/// Address of a store: `memory`, `sqlite:PATH`, or `postgres://USER@HOST/DATABASE`. A path alone is a file of SQLite.
///
/// It is shown without a password.
///
/// ```
/// use agent::config::StoreAddress;
///
/// let address: StoreAddress = "postgres://ada:secret@db:5432/agents?password=secret".parse()?;
/// assert_eq!(address.to_string(), "postgres://db:5432/agents");
/// assert_eq!("runs.db".parse::<StoreAddress>()?, StoreAddress::Sqlite("runs.db".into()));
/// assert!("mysql://db".parse::<StoreAddress>().is_err());
/// # Ok::<(), agent::Error>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String", inline, extend("format" = "store"))]
#[non_exhaustive]
pub enum StoreAddress {
    /// In this process, as long as it runs.
    #[default]
    Memory,
    /// A file of SQLite.
    Sqlite(PathBuf),
    /// A database of PostgreSQL, by its URL.
    Postgres(String),
}

impl StoreAddress {
    /// Opens the journal. Creates a missing file and its folder.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for a store whose feature (`sqlite`, `postgres`) is off; what the store says if it
    /// cannot be opened. The URL of a database is in no message.
    pub async fn open(&self) -> Result<Arc<dyn Journal>> {
        self.open_leased(Duration::from_secs(30)).await
    }

    /// As [`open`](Self::open), where a process that dies keeps its sessions from others for so long; without a word, 30 seconds.
    ///
    /// # Errors
    /// As there, and for a lease that is too short to be kept.
    #[cfg_attr(
        not(any(feature = "sqlite", feature = "postgres")),
        expect(unused_variables, reason = "no store has leases")
    )]
    pub async fn open_leased(&self, lease: Duration) -> Result<Arc<dyn Journal>> {
        Ok(match self {
            Self::Memory => Arc::new(MemoryJournal::default()),
            #[cfg(feature = "sqlite")]
            Self::Sqlite(path) => {
                if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
                    let failed = |e| Error::config(format!("the folder {} cannot be made: {e}", folder.display()));
                    std::fs::create_dir_all(folder).map_err(failed)?;
                }
                Arc::new(crate::SqliteJournal::builder(path).lease_ttl(lease).open()?)
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(url) => Arc::new(crate::PostgresJournal::builder(url).lease_ttl(lease).connect().await?),
            #[cfg(not(all(feature = "sqlite", feature = "postgres")))]
            _ => return Err(self.off()),
        })
    }

    /// Opens the ledger beside the sessions: what budgets count there, all processes count together that have the store. That of a file is a file
    /// beside it, `runs.ledger.db` of `runs.db`.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub async fn open_ledger(&self) -> Result<Arc<dyn Ledger>> {
        Ok(match self {
            Self::Memory => Arc::new(MemoryLedger::new()),
            #[cfg(feature = "sqlite")]
            Self::Sqlite(path) => Arc::new(crate::SqliteLedger::open(path.with_extension("ledger.db"))?),
            #[cfg(feature = "postgres")]
            Self::Postgres(url) => Arc::new(crate::store::PostgresLedger::connect(url).await?),
            #[cfg(not(all(feature = "sqlite", feature = "postgres")))]
            _ => return Err(self.off()),
        })
    }

    /// Says that the feature is off that this store needs.
    #[cfg(not(all(feature = "sqlite", feature = "postgres")))]
    pub(super) fn off(&self) -> Error {
        let feature = if matches!(self, Self::Postgres(_)) { "postgres" } else { "sqlite" };
        Error::config(format!("this store needs the feature '{feature}' of the crate 'agent', which is off"))
    }
}

impl FromStr for StoreAddress {
    type Err = Error;

    fn from_str(address: &str) -> Result<Self> {
        Ok(match address.split_once(':') {
            _ if address == "memory" => Self::Memory,
            Some(("postgres" | "postgresql", _)) => Self::Postgres(address.to_owned()),
            Some(("sqlite", path)) => Self::Sqlite(path.strip_prefix("//").unwrap_or(path).into()),
            Some((scheme, _)) if is_scheme(scheme) => {
                let near = near::nearest(scheme, &["memory", "postgres", "postgresql", "sqlite"]);
                let near = near.map_or_else(String::new, |near| format!("; did you mean '{near}'?"));
                return Err(Error::config(format!(
                    "unknown store kind '{scheme}'{near} (kinds: memory, sqlite:PATH, postgres://..; a file of this name is \
                     sqlite:{address})"
                )));
            }
            _ => Self::Sqlite(address.into()),
        })
    }
}

/// True for the part before a colon that cannot be the start of a path: a single letter is a drive of Windows.
fn is_scheme(text: &str) -> bool {
    let rest = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    text.len() > 1 && text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(rest)
}

impl TryFrom<String> for StoreAddress {
    type Error = Error;

    fn try_from(address: String) -> Result<Self> {
        address.parse()
    }
}

impl fmt::Display for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory"),
            Self::Sqlite(path) => path.display().fmt(f),
            Self::Postgres(url) => {
                let shown = url.split(['?', '#']).next().unwrap_or_default();
                match (shown.split_once("//"), shown.rsplit_once('@')) {
                    (Some((scheme, _)), Some((_, host))) => write!(f, "{scheme}//{host}"),
                    _ => f.write_str(shown),
                }
            }
        }
    }
}

impl fmt::Debug for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreAddress({self})")
    }
}
