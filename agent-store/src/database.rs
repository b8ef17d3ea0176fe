//! SQLite file of the stores beside the journal.

use std::{
    fs,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use agent_core::{Error, ErrorKind, Result};
use rusqlite::{Connection, Transaction, TransactionBehavior};

/// Identity and schema of a database file.
pub(crate) struct Layout {
    /// SQLite application id, which marks the file as one of this kind.
    pub(crate) application: i32,
    /// Version of the tables. A released schema is never edited: later versions only add to it.
    pub(crate) format: i32,
    pub(crate) schema: &'static str,
    /// Page size of a new file in bytes, unless SQLite's default.
    pub(crate) page_bytes: Option<u32>,
}

/// Layout of the chat and memory stores: application id "AGST".
const BESIDE: Layout =
    Layout { application: 0x4147_5354, format: 1, schema: include_str!("schema.sql"), page_bytes: None };

/// Time to wait for another process's transaction.
const PATIENCE: Duration = Duration::from_secs(10);

/// Connection that tokio's blocking threads use one at a time. Clones share it.
#[derive(Clone)]
pub(crate) struct Database {
    path: Arc<Path>,
    connection: Arc<Mutex<Connection>>,
}

impl Database {
    /// Opens the file; creates it and its directory if missing.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        Self::open_as(path, &BESIDE)
    }

    /// Opens a file with another layout; see [`open`](Self::open).
    pub(crate) fn open_as(path: &Path, layout: &Layout) -> Result<Self> {
        if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
            fs::create_dir_all(directory).map_err(|e| {
                let message = "the store's directory cannot be created: check the path and its permissions";
                Error::new(ErrorKind::Store, message).with_context("path", path.display().to_string()).with_source(e)
            })?;
        }
        let connection = Self::connect(path, layout).map_err(|e| failed(path, e))??;
        Ok(Self { path: path.into(), connection: Arc::new(Mutex::new(connection)) })
    }

    fn connect(path: &Path, layout: &Layout) -> rusqlite::Result<Result<Connection>> {
        let mut connection = Connection::open(path)?;
        connection.busy_timeout(PATIENCE)?;
        if let Some(bytes) = layout.page_bytes {
            connection.pragma_update(None, "page_size", bytes)?;
        }
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let pragma = |name| transaction.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
        let (id, version) = (pragma("application_id")?, pragma("user_version")?);
        let tables: i64 = transaction.query_row("SELECT count(*) FROM sqlite_schema", (), |row| row.get(0))?;
        let refused = match (id, version, tables) {
            (0, 0, 0) => None,
            (id, version, _) if (id, version) == (layout.application, layout.format) => None,
            (id, ..) if id == layout.application => {
                Some("another release wrote the store in an unsupported format: use that release")
            }
            _ => Some("the file belongs to another program or is a journal: use another path"),
        };
        if let Some(message) = refused {
            return Ok(Err(Error::new(ErrorKind::Store, message).with_context("path", path.display().to_string())));
        }
        if tables == 0 {
            transaction.execute_batch(layout.schema)?;
            transaction.pragma_update(None, "application_id", layout.application)?;
            transaction.pragma_update(None, "user_version", layout.format)?;
        }
        transaction.commit()?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        Ok(Ok(connection))
    }

    /// Runs `work` in a transaction, which is rolled back if `work` fails.
    pub(crate) async fn run<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Transaction<'_>) -> rusqlite::Result<T> + Send + 'static,
    {
        self.transact(TransactionBehavior::Immediate, |done| Ok(Ok(work(done)?))).await
    }

    /// Like [`run`](Self::run), for work with errors of its own, which also roll back.
    pub(crate) async fn try_run<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Transaction<'_>) -> rusqlite::Result<Result<T>> + Send + 'static,
    {
        self.transact(TransactionBehavior::Immediate, work).await
    }

    /// Like [`try_run`](Self::try_run), for read-only work: other processes may write meanwhile.
    pub(crate) async fn try_read<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Transaction<'_>) -> rusqlite::Result<Result<T>> + Send + 'static,
    {
        self.transact(TransactionBehavior::Deferred, work).await
    }

    async fn transact<T, F>(&self, behavior: TransactionBehavior, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Transaction<'_>) -> rusqlite::Result<Result<T>> + Send + 'static,
    {
        let database = self.clone();
        let done = tokio::task::spawn_blocking(move || {
            let mut connection = database.connection.lock().unwrap_or_else(PoisonError::into_inner);
            let attempt = || {
                let transaction = connection.transaction_with_behavior(behavior)?;
                let done = work(&transaction)?;
                if done.is_ok() {
                    transaction.commit()?;
                }
                Ok(done)
            };
            attempt().unwrap_or_else(|e| Err(failed(&database.path, e)))
        });
        done.await.map_err(|e| Error::new(ErrorKind::Store, "access to the store was interrupted").with_source(e))?
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

fn failed(path: &Path, e: rusqlite::Error) -> Error {
    let message = "the store's database failed: see the cause";
    Error::new(ErrorKind::Store, message).with_context("path", path.display().to_string()).with_source(e)
}

/// Parses JSON text from SQLite.
pub(crate) fn from_json<T: serde::de::DeserializeOwned>(text: &str) -> rusqlite::Result<T> {
    let wrong = |e| rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(e));
    serde_json::from_str(text).map_err(wrong)
}

/// Encodes a value as JSON text for SQLite.
pub(crate) fn to_json(value: &impl serde::Serialize) -> rusqlite::Result<String> {
    serde_json::to_string(value).map_err(|e| rusqlite::Error::ToSqlConversionFailure(Box::new(e)))
}
