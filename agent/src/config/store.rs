//! Stores by their address.

use std::sync::Arc;

use agent_core::{Error, Journal, Result, journal::MemoryJournal};

/// Opens the store at an address: `memory`, `sqlite:PATH`, or `postgres://USER@HOST/DATABASE`. A path alone is a file of SQLite.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> agent::Result<()> {
/// let store = agent::config::open_store("memory").await?;
/// # drop(store);
/// # Ok(()) }
/// ```
///
/// # Errors
/// [`ErrorKind::Config`](crate::ErrorKind::Config) for an address of no store, and for one whose feature (`sqlite`, `postgres`) is off;
/// what the store says if it cannot be opened. The address of a database is in no message.
pub async fn open_store(address: &str) -> Result<Arc<dyn Journal>> {
    match address.split_once(':') {
        _ if address == "memory" => Ok(Arc::new(MemoryJournal::default())),
        Some(("postgres" | "postgresql", _)) => postgres(address).await,
        Some(("sqlite", path)) => sqlite(path.strip_prefix("//").unwrap_or(path)),
        Some((scheme, rest)) if rest.starts_with("//") => {
            Err(Error::config(format!("'{scheme}' is no kind of store; there are: memory, sqlite:PATH, postgres://..")))
        }
        _ => sqlite(address),
    }
}

#[cfg(feature = "sqlite")]
fn sqlite(path: &str) -> Result<Arc<dyn Journal>> {
    Ok(Arc::new(crate::SqliteJournal::open(path)?))
}

#[cfg(not(feature = "sqlite"))]
fn sqlite(_: &str) -> Result<Arc<dyn Journal>> {
    Err(off("sqlite"))
}

#[cfg(feature = "postgres")]
async fn postgres(url: &str) -> Result<Arc<dyn Journal>> {
    Ok(Arc::new(crate::PostgresJournal::connect(url).await?))
}

#[cfg(not(feature = "postgres"))]
async fn postgres(_: &str) -> Result<Arc<dyn Journal>> {
    Err(off("postgres"))
}

#[cfg(not(all(feature = "sqlite", feature = "postgres")))]
fn off(feature: &str) -> Error {
    Error::config(format!("this store needs the feature '{feature}' of the crate 'agent', which is off"))
}
